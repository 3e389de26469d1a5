"""The clock as an argument; the only module of the transport that asks the operating system."""

import asyncio
import logging
import time
from typing import Protocol

_log = logging.getLogger(__name__)

STEP_US = 2_000_000
"""A difference that is reported: what NTP slews in a day is less, what it sets is mostly more."""

_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux has a clock that goes on while the machine sleeps: a laptop that wakes up must see that its
lease ran out and that its watches were silent."""


class Clock(Protocol):
    """Time for the transport and the controller; a simulator passes virtual time instead."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary origin; for durations and timers."""
        ...

    def now_us(self) -> int:
        """Wall-clock microseconds since the epoch; within a process it goes as ``monotonic`` does,
        whatever becomes of the machine's wall clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller; a value of 0 or less only yields to other tasks."""
        ...


class RealClock:
    """The machine's clock.

    Wall time is the monotonic clock plus an offset that is taken once. So a step of the wall clock,
    ahead or back, moves no deadline and no order: it is logged, and counts from the next start on.
    """

    def __init__(self) -> None:
        """Anchor wall time at the present moment."""
        self._offset_us = _wall_us() - _monotonic_us()
        self._step_us = 0  # how far the wall clock was found to be ahead, when that was logged

    def monotonic(self) -> float:
        """Seconds since an arbitrary origin; those in which the machine slept count."""
        return _monotonic_us() / 1e6

    def now_us(self) -> int:
        """Wall-clock microseconds since the epoch; neither steps nor decreases."""
        now = _monotonic_us() + self._offset_us
        step = _wall_us() - now
        if abs(step - self._step_us) >= STEP_US:
            self._step_us = step
            _log.warning(
                "the wall clock was set, deadlines do not move seconds=%+.0f: times follow the"
                " clock of the start of this process until it is started again",
                step / 1e6,
            )
        return now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _monotonic_us() -> int:
    return (time.monotonic_ns() if _BOOT is None else time.clock_gettime_ns(_BOOT)) // 1000


def _wall_us() -> int:
    return time.time_ns() // 1000
