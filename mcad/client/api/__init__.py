"""The Python client: ``from mcad import Client``. Its public names are those of ``mcad``."""
