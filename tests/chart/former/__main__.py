"""``python -m tests.chart.former``."""

from tests.chart.former import record

record()
