"""The wall clock of the dispatcher's machine is set, by an hour, ahead or back, while it runs.

The process has the clock of production (``RealClock``) over a machine whose monotonic clock is the
virtual one. Every write is that of a run in which nothing was set: no deadline passes early or
late, no Job is Failed instead of Completed, no eviction comes before minRunTime.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from mcad.kube import clock as clocks
from mcad.kube.client import Client
from mcad.sim.clock import START_US
from tests import budget
from tests.faults.injection import Wire
from tests.faults.scenarios import (
    COMPLETED,
    KEPT_AND_CLEARED,
    LATE,
    PREEMPTED,
    PROTECTED,
    RECLAIMED,
    REQUEUED,
    RESET,
    Scenario,
)
from tests.faults.world import World, run, undisturbed

HOUR_US = 3600 * 1_000_000
STEPS = 6  # in a run
SCENARIOS = (COMPLETED, RESET, LATE, KEPT_AND_CLEARED, REQUEUED, PREEMPTED, RECLAIMED, PROTECTED)


class Machine:
    """A machine whose wall clock is set at these moments, seconds of the loop."""

    def __init__(self, steps: dict[float, int]) -> None:
        self.steps = steps  # in microseconds

    def monotonic_us(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e6)

    def wall_us(self) -> int:
        now = asyncio.get_running_loop().time()
        stepped = sum(step for at, step in self.steps.items() if at <= now)
        return START_US + self.monotonic_us() + stepped


class Stepped(World):
    """A run with the clock of production."""

    def _client(self, wire: Wire, number: int) -> Client:
        return Client(wire, clocks.RealClock(), Random(number))


@pytest.mark.parametrize("seed", budget.draw(range(3), 1, "clocks"))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_wall_clock_that_is_set_moves_nothing(
    scenario: Scenario, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, end_s = Random(seed), scenario.acts[-1][0] + scenario.settles_s
    steps = {rng.uniform(2.0, end_s): rng.choice((HOUR_US, -HOUR_US)) for _ in range(STEPS)}
    machine = Machine(steps)
    monkeypatch.setattr(clocks, "_monotonic_us", machine.monotonic_us)
    monkeypatch.setattr(clocks, "_wall_us", machine.wall_us)

    outcome = run(scenario, build=Stepped)
    expected = undisturbed(scenario)
    assert outcome.requests == expected.requests
    assert outcome.objects == expected.objects
    assert outcome.evictions == expected.evictions
