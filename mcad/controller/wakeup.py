"""One timer for all requested wake-ups, on any clock."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from mcad.core.state.units import Instant
from mcad.kube.clock import Clock


class Alarm:
    """Calls ``on_timer`` at each requested instant; once for the same millisecond."""

    def __init__(self, clock: Clock, on_timer: Callable[[], None]) -> None:
        self._clock = clock
        self._on_timer = on_timer
        self._requested: list[Instant] = []
        self._task: asyncio.Task[None] | None = None
        self._target: Instant = 0

    def wake_at(self, at: Instant) -> None:
        """Call at this instant, or now if it has passed."""
        if at <= self._clock.now_us():
            self._on_timer()
            return
        heappush(self._requested, at)
        if self._task is None or at < self._target:
            self._arm()

    def close(self) -> None:
        """Cancel all calls."""
        self._requested.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _arm(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._target = self._requested[0]
        self._task = asyncio.ensure_future(self._sleep(self._target))

    async def _sleep(self, until: Instant) -> None:
        await self._clock.sleep((until - self._clock.now_us()) / 1e6)
        self._task = None
        while self._requested and self._requested[0] <= until + 1_000:
            heappop(self._requested)
        self._on_timer()
        if self._requested and self._task is None:
            self._arm()
