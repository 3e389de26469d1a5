"""The clock as an argument; the only module of the transport that asks the operating system."""

import asyncio
import time
from typing import Protocol

_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux has a clock that goes on while the machine sleeps: a laptop that wakes up must see that its
lease ran out and that its watches were silent."""


class Clock(Protocol):
    """Time for the transport and the controller; a simulator passes virtual time instead."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary origin; for durations and timers."""
        ...

    def now_us(self) -> int:
        """Wall-clock microseconds since the epoch; never decreases within a process."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller; a value of 0 or less only yields to other tasks."""
        ...


class RealClock:
    """The machine's clock.

    Wall time is the monotonic clock plus an offset that only grows: when the wall clock jumps
    ahead we follow it, when it is set back we go on counting, so persisted order stays true.
    """

    def __init__(self) -> None:
        """Anchor wall time at the present moment."""
        self._offset_us = _wall_us() - _monotonic_us()

    def monotonic(self) -> float:
        """Seconds since an arbitrary origin; those in which the machine slept count."""
        return _monotonic_us() / 1e6

    def now_us(self) -> int:
        """Wall-clock microseconds since the epoch; never decreases."""
        monotonic = _monotonic_us()
        self._offset_us = max(self._offset_us, _wall_us() - monotonic)
        return monotonic + self._offset_us

    async def sleep(self, seconds: float) -> None:
        """Suspend the calling task for ``seconds``."""
        await asyncio.sleep(seconds)


def _monotonic_us() -> int:
    return (time.monotonic_ns() if _BOOT is None else time.clock_gettime_ns(_BOOT)) // 1000


def _wall_us() -> int:
    return time.time_ns() // 1000
