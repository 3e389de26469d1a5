"""What was spent: CPU time and memory of this process."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time_ns


def cpu_ms(act: Callable[..., object], *given: object) -> float:
    """The CPU time of one call, in milliseconds."""
    began = process_time_ns()
    act(*given)
    return (process_time_ns() - began) / 1e6


def spread(times: list[float]) -> tuple[float, float, float]:
    """The least, the middle and the most."""
    return min(times), median(times), max(times)


def rss_mb(field: str = "VmRSS") -> float:
    """What this process holds in memory now, or has held at most (``VmHWM``)."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
