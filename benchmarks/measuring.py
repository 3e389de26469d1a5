"""What was spent: CPU time and memory of this process; and how fast the machine is."""

from __future__ import annotations

from collections.abc import Callable
from os import getloadavg
from statistics import median
from time import process_time, process_time_ns


def cpu_ms(act: Callable[..., object], *given: object) -> float:
    """The CPU time of one call, in milliseconds."""
    began = process_time_ns()
    act(*given)
    return (process_time_ns() - began) / 1e6


def spread(times: list[float]) -> tuple[float, float, float]:
    """The least, the middle and the most."""
    return min(times), median(times), max(times)


def quantile(values: list[float], share: float) -> float:
    """The value that so many do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def rss_mb(field: str = "VmRSS") -> float:
    """What this process holds in memory now, or has held at most (``VmHWM``)."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def speed() -> str:
    """How fast the machine is now: figures of different days are compared by this one."""
    began = process_time()
    exec("i = 0\nwhile i < 10_000_000:\n    i += 1", {})
    took = process_time() - began
    return f"10 million additions: {took:.2f} s of CPU; load {getloadavg()[0]:.1f}"
