"""Tests of ``mcad.core.running``."""
