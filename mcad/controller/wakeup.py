"""One timer for all wishes to be woken: rings at the earliest, on whatever clock is given."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from mcad.core.state.units import Instant
from mcad.kube.clock import Clock


class Alarm:
    """Calls ``ring`` at each wished instant; wishes for the same millisecond ring once."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._wishes: list[Instant] = []
        self._task: asyncio.Task[None] | None = None
        self._target: Instant = 0

    def wish(self, at: Instant) -> None:
        """Ring at this instant, at once if it has passed."""
        if at <= self._clock.now_us():
            self._ring()
            return
        heappush(self._wishes, at)
        if self._task is None or at < self._target:
            self._arm()

    def close(self) -> None:
        """Ring no more."""
        self._wishes.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _arm(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._target = self._wishes[0]
        self._task = asyncio.ensure_future(self._sleep(self._target))

    async def _sleep(self, until: Instant) -> None:
        await self._clock.sleep((until - self._clock.now_us()) / 1e6)
        self._task = None
        while self._wishes and self._wishes[0] <= until + 1_000:
            heappop(self._wishes)
        self._ring()
        if self._wishes and self._task is None:
            self._arm()
