"""Tests of ``mcad.core.status``."""
