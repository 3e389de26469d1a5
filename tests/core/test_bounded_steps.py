"""No step of the core is long, whatever shapes it meets (core R5, ADR 50).

A step is measured by the calls of functions that it makes, which no machine and no other load
changes: about a fifth of a microsecond each. Before passes had bounds these stories had steps of
700,000 to 3,800,000 calls.
"""

from __future__ import annotations

import sys
from random import Random
from types import FrameType

import pytest

from benchmarks import bench_core_hostile as hostile
from mcad.core.commands import Command
from mcad.core.events import Event
from mcad.core.state.settings import Policy, Settings

CALLS_MAX = 400_000
KINDS = (
    hostile.plain,
    hostile.mixed,
    hostile.many_sets,
    hostile.gangs,
    hostile.selectors,
    hostile.hosts("In", 8),
    hostile.hosts("NotIn", 8),
)


class Counted(hostile.Story):
    """A story that counts the calls of each step."""

    longest: tuple[int, Event | None] = (0, None)

    def step(self, event: Event) -> tuple[Command, ...]:
        calls = 0

        def count(frame: FrameType, what: str, _: object) -> None:
            nonlocal calls
            calls += what in ("call", "c_call")

        sys.setprofile(count)
        try:
            return super().step(event)
        finally:
            sys.setprofile(None)
            self.longest = max(self.longest, (calls, event), key=lambda one: one[0])


def drawn(seed: int) -> hostile.Shape:
    """AppWrappers of several hostile kinds in one line, under settings that cost work."""
    rng = Random(seed)
    kinds = rng.sample(KINDS, 4)
    settings = Settings(
        policy=rng.choice((Policy.BEST_EFFORT_FIFO, Policy.BACKFILL)),
        preemption=rng.random() < 0.7,
        min_run_time=0,
    )

    def sets(number: int, own: Random) -> hostile.Sets:
        return own.choice(kinds)(number, own)

    return hostile.Shape(
        f"drawn by {seed}",
        sets,
        distinct=1_000,
        settings=settings,
        queued=1_000,
        trees=rng.random() < 0.5,
        counted=rng.random() < 0.5,
    )


@pytest.mark.parametrize("seed", range(4))
def test_no_step_makes_more_calls_than_the_bound(seed: int) -> None:
    shape = drawn(seed)
    story = Counted(shape, hostile.percent(shape, 10))
    story.tell()
    calls, event = story.longest
    assert calls <= CALLS_MAX, event
