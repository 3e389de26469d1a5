"""One fault at every write of every scenario: the end is that of a run in which nothing went wrong.

Sieve's intermediate states (OSDI 22), enumerated: what is killed, lost, refused or late is each
write in turn; in a push, of writes that are alike (alike.py) one for each fault.
"""

from __future__ import annotations

import pytest

from tests import budget
from tests.faults.alike import befall, writes
from tests.faults.catalog import SCENARIOS
from tests.faults.evictions import PREEMPTED, RECLAIMED, UNMOVED
from tests.faults.injection import REFUSALS, SPELLS, Fault, Plan
from tests.faults.scenarios import IN_TURN, TWINS, Scenario
from tests.faults.world import MORE_WRITES, run, undisturbed

ALONE = [  # the rest takes a lease, or is refused (test_refusals.py)
    one for one in Fault if one not in (*SPELLS, Fault.BEQUEATHED, *REFUSALS)
]
CASES = [
    *((scenario, fault) for scenario in SCENARIOS for fault in ALONE),
    (UNMOVED, Fault.KILLED_AFTER),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_nothing_goes_wrong(scenario: Scenario) -> None:
    outcome = undisturbed(scenario)
    assert outcome.lives == 1
    assert outcome.made >= 3
    assert outcome.writes >= 9


@pytest.mark.parametrize("scenario", [RECLAIMED, PREEMPTED, UNMOVED], ids=lambda one: one.name)
def test_somebody_is_evicted_and_once(scenario: Scenario) -> None:
    assert undisturbed(scenario).evictions == 1


@pytest.mark.parametrize(
    ("scenario", "fault"), CASES, ids=[f"{one.name}: {fault.name.lower()}" for one, fault in CASES]
)
def test_one_fault_changes_nothing_in_the_end(scenario: Scenario, fault: Fault) -> None:
    befall(scenario, fault, writes(scenario, fault))


OUTAGES = (Fault.LOST_AFTER, Fault.UNAUTHORIZED, Fault.NOT_FOUND, Fault.NOT_ALLOWED)
IN_A_ROW = 10
OUTAGES_OF_EACH = 6


@pytest.mark.parametrize("fault", OUTAGES, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", [IN_TURN, TWINS], ids=lambda one: one.name)
def test_an_outage_from_any_write_on_changes_nothing_in_the_end(
    scenario: Scenario, fault: Fault
) -> None:
    expected = undisturbed(scenario)
    for k in budget.draw(range(expected.writes), OUTAGES_OF_EACH, fault.name, scenario.name):
        plan = Plan(writes=lambda number, k=k: fault if k <= number < k + IN_A_ROW else None)
        outcome = run(scenario, plan)
        where = f"{fault.value}: writes from {k} on, {expected.requests[k]}"
        assert outcome.objects == expected.objects, where
        assert outcome.writes <= expected.writes + IN_A_ROW + MORE_WRITES, where
