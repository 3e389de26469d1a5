"""Tests of ``mcad.core.attempts``."""
