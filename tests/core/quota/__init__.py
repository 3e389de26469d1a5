"""Tests of ``mcad.core.quota``."""
