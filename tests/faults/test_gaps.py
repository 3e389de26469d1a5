"""One gap at every event of every watch: the end is that of a run in which nothing went wrong.

Sieve's unobserved states (OSDI 22), enumerated. After a gap the reflector goes on from where it
was, or lists anew and tells the difference: what came and went in between is never seen.
"""

from __future__ import annotations

import pytest

from tests.faults.injection import Gap, Plan
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.world import MORE_WRITES, run, undisturbed


@pytest.mark.parametrize("gap", Gap, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_one_gap_in_a_watch_changes_nothing_in_the_end(scenario: Scenario, gap: Gap) -> None:
    expected = undisturbed(scenario)
    for k in range(expected.events):
        plan = Plan(events=lambda number, k=k: gap if number == k else None)
        outcome = run(scenario, plan)
        where = f"{gap.value}: event {k}"
        assert outcome.objects == expected.objects, where
        assert outcome.writes <= expected.writes + MORE_WRITES, where
