"""Tests of ``mcad.core.answers``."""
