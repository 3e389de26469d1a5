"""Tests of ``mcad.core.observed``."""
