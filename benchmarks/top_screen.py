"""What the screen of ``mcad top`` costs per update, tick and letter of a filter, in CPU time.

    python -m benchmarks.top_screen

The computation of the figures is not counted: it is that of ``mcad queue``, in another thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

from msgspec.structs import replace
from textual.pilot import Pilot

from mcad.cli.terminal.app import Top

Json = dict[str, Any]

SIZES = (100, 2_000, 10_000)
SCREEN = (160, 50)
TIMES = 20
BOOKS = ("allocatable", "used", "reserved", "free")


def rows(count: int, first: int) -> list[Json]:
    """A queue whose head has left ``first`` times; every position has changed then."""
    return [
        {
            "uid": f"uid-{number}",
            "namespace": f"team-{number % 7}",
            "name": f"training-job-{number}",
            "position": place,
            "state": "Pending",
            "priority": number % 3,
            "demand": {"cpu": str(number % 64), "memory": f"{number % 512}Gi", "pods": "8"},
            "firstSeen": "2026-11-25T08:00:00Z",
            "waitsFor": "cpu",
            "why": f"cpu: {number % 64} requested, 3 available.",
        }
        for place, number in enumerate(range(first, first + count), start=1)
    ]


class Queue:
    """Figures, and their feed, which gives what ``put`` gets."""

    notes: tuple[str, ...] = ()
    only, trouble, is_stored = None, "", False

    def __init__(self, count: int) -> None:
        self._count, self._first = count, 0
        self._latest: list[Json] = []
        self._changed = asyncio.Event()

    async def next(self) -> Any:
        self._latest = rows(self._count, self._first)
        self._first += 1
        if self._first > 1:
            await asyncio.Event().wait()
        return self

    async def rows(self, **_: bool) -> list[Json]:
        return self._latest

    async def capacity(self) -> Json:
        total = {book: {"cpu": "512", "memory": "4Ti"} for book in BOOKS}
        return {"nodes": [], "total": total, "unplaced": {}}

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[tuple[Any, None]]:
        yield self, None


async def cost_ms(pilot: Pilot[None], change: Callable[[int], Awaitable[None]]) -> float:
    """The median CPU time of a change, with its drawing."""
    spent = []
    for number in range(TIMES):
        begun = time.thread_time()
        await change(number)
        await pilot.pause()
        spent.append(time.thread_time() - begun)
    return median(spent) * 1000


async def measure(count: int) -> None:
    """Print a line for a queue of this length."""
    queue = Queue(count)
    app = Top(queue.follow, lambda: time.time_ns() // 1000, None, where="here", namespace=None)  # type: ignore[arg-type]
    async with app.run_test(size=SCREEN) as pilot:
        while app._snapshot is None:
            await pilot.pause(0.05)
        snapshot = app._snapshot
        coming = [rows(count, number) for number in range(TIMES)]

        async def update(number: int) -> None:
            app._take(replace(snapshot, rows=coming[number], at_us=app._now_us()))

        async def tick(_: int) -> None:
            app._tick()

        async def letter(number: int) -> None:
            await pilot.press("1" if number % 2 else "backspace")

        async def nothing(_: int) -> None:
            pass

        idle = await cost_ms(pilot, nothing)
        updates, ticks = await cost_ms(pilot, update), await cost_ms(pilot, tick)
        await pilot.press("slash")
        letters = await cost_ms(pilot, letter)
    told = (f"{one - idle:6.1f}" for one in (updates, ticks, letters))
    print(f"{count:9}", *told, sep="   ")


if __name__ == "__main__":
    print("     rows   update     tick   letter   (ms of CPU)")
    for size in SIZES:
        asyncio.run(measure(size))
