"""One gap at the events of every watch: the end is that of a run in which nothing went wrong.

Sieve's unobserved states (OSDI 22), enumerated. After a gap the reflector goes on from where it
was, or lists anew and tells the difference: what came and went in between is never seen.

Of events that are alike (alike.py), as those of the pods of one Job, one has its gap in a push; in
a soak the first and the last have.
"""

from __future__ import annotations

import pytest

from tests.faults.alike import events
from tests.faults.catalog import SCENARIOS
from tests.faults.injection import Gap, Plan
from tests.faults.scenarios import Scenario
from tests.faults.world import MORE_WRITES, run, undisturbed


@pytest.mark.parametrize("gap", Gap, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_one_gap_in_a_watch_changes_nothing_in_the_end(scenario: Scenario, gap: Gap) -> None:
    expected = undisturbed(scenario)
    for k in events(scenario, gap):
        plan = Plan(events=lambda number, line, k=k: gap if number == k else None)
        outcome = run(scenario, plan)
        where = f"{gap.value}: event {k}"
        assert outcome.objects == expected.objects, where
        assert outcome.evictions == expected.evictions, where
        assert outcome.writes <= expected.writes + MORE_WRITES, where
