"""Tests of ``mcad.core.fit``."""
