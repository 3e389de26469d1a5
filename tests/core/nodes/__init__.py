"""Tests of ``mcad.core.nodes``."""
