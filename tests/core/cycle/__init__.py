"""Tests of ``mcad.core.cycle``."""
