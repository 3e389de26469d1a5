"""Tests of ``mcad.core.views``."""
