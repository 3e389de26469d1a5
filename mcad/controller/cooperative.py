"""Splits long work into slices, so that other tasks run in between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

SLICE_S = 0.01  # of work between two turns of the event loop


async def with_pauses(steps: Iterator[T]) -> AsyncIterator[T]:
    """Yield the steps, with one turn of the event loop after each."""
    for step in steps:
        yield step
        await asyncio.sleep(0)


async def in_slices(
    steps: Iterator[T | None], now: Callable[[], float], renew: Callable[[], None] = lambda: None
) -> list[T]:
    """Return the results of the steps without None. ``renew`` is called after each pause for other
    tasks.

    ``now`` is ``Clock.monotonic``.
    """
    made, until = [], now() + SLICE_S
    for step in steps:
        if step is not None:
            made.append(step)
        if now() >= until:
            await asyncio.sleep(0)
            renew()
            until = now() + SLICE_S
    return made
