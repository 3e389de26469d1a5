"""Tests of ``mcad.core.eligibility``."""
