"""A standalone AppWrapper dispatcher for Kubernetes."""

__version__ = "0.1.0"
