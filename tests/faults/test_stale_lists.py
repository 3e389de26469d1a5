"""A process is killed at every write, and the first lists of the next one are of the past: at rest
everything is whole, and the books are true.

The API promises that such a list tells the present. What is decided until the watch tells better
may be wrong, so an attempt may be taken back; it is put right.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.injection import Fault, Plan
from tests.faults.scenarios import COMPLETED, IN_TURN, Scenario
from tests.faults.weather import STREAMS, StaleList, Weather
from tests.faults.world import run, undisturbed

OF_APPWRAPPERS = ("appwrappers",)
OF_ALL = tuple(one.plural for one in STREAMS)
AGE_S = 25.0  # in which an AppWrapper is dispatched and has run


@pytest.mark.parametrize("plurals", [OF_APPWRAPPERS, OF_ALL], ids=["appwrappers", "all"])
@pytest.mark.parametrize("scenario", [IN_TURN, COMPLETED], ids=lambda one: one.name)
def test_first_lists_of_the_past_leave_everything_whole(
    scenario: Scenario, plurals: tuple[str, ...]
) -> None:
    stale = 0
    for k in range(undisturbed(scenario).writes):
        weather = Weather(tuple(StaleList(plural, AGE_S) for plural in plurals))
        killed = {k: Fault.KILLED_AFTER}
        outcome = run(
            replace(scenario, ends=dict.fromkeys(scenario.ends, "*")),
            Plan(killed.get, weather=weather),
        )
        assert outcome.lives == 2
        stale += weather.was_stale
    assert stale > k // 2
