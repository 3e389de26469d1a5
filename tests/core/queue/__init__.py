"""Tests of ``mcad.core.queue``."""
