"""Tests of ``mcad.core.reservations``."""
