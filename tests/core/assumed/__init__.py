"""Tests of ``mcad.core.assumed``."""
