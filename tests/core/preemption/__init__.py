"""Tests of ``mcad.core.preemption``."""
