"""Tests of ``mcad.core.snapshot``."""
