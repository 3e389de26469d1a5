"""Virtual time on a real event loop: nothing sleeps, the test moves time."""

import asyncio
from heapq import heappop, heappush

TURNS = 60  # of the loop after each wake; what is under way takes a few


class LoopClock:
    """Implements ``mcad.kube.clock.Clock``."""

    def __init__(self) -> None:
        self._now = 1_800_000_000_000_000
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._serial = 0

    def monotonic(self) -> float:
        """Seconds."""
        return self._now / 1e6

    def now_us(self) -> int:
        """Microseconds."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Until time has been moved on by that much."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._serial += 1
        future = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self._now + int(seconds * 1e6), self._serial, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time on, waking every sleeper at its moment."""
        until = self._now + int(seconds * 1e6)
        await self._turn()
        while self._sleepers and self._sleepers[0][0] <= until:
            at, _, future = heappop(self._sleepers)
            self._now = max(self._now, at)
            if not future.done():
                future.set_result(None)
                await self._turn()
        self._now = until
        await self._turn()

    async def _turn(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
