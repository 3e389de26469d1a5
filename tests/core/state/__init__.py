"""Tests of ``mcad.core.state``."""
