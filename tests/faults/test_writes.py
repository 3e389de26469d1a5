"""One fault at every write, and one gap at every event, of every scenario: the end is that of a run
in which nothing went wrong.

Sieve's intermediate and unobserved states (OSDI 22), enumerated: what is killed, lost, refused or
late is each write in turn. A push plays half of the pairs of scenario and fault, drawn by the
commit, and of writes that are alike (representatives.py) one for a fifth of the faults. After a gap
the reflector goes on from where it was, or lists anew and reports the difference: what came and
went in between is never seen. Of events that are alike, as those of the pods of one Job, one has
its gap in some pushes; in a soak the first and the last have.
"""

from __future__ import annotations

import pytest

from tests import budget
from tests.faults.injection import REFUSED_GAPS, SPELLS, Fault, Gap, Plan
from tests.faults.representatives import befall, events, writes
from tests.faults.scenarios import (
    IN_TURN,
    KEPT,
    PREEMPTED,
    RECLAIMED,
    SCENARIOS,
    SUSPENDED,
    TWINS,
    UNMOVED,
    Scenario,
)
from tests.faults.world import MORE_WRITES, REPEATS, run, undisturbed

ALIKE = (Fault.NOT_ALLOWED, Fault.TIMED_OUT, Fault.REDIRECTED)
"""Answers that the dispatcher takes for the same; these scenarios have every kind of write."""
CASES = [
    (scenario, fault)
    for scenario in SCENARIOS
    for fault in Fault
    if fault not in (*SPELLS, Fault.BEQUEATHED)  # which take a lease (test_leaders.py)
    if fault not in ALIKE or scenario in (IN_TURN, SUSPENDED, KEPT)
]
CASES += [(UNMOVED, Fault.KILLED_AFTER)]
GAPS = [(scenario, gap) for scenario in SCENARIOS for gap in Gap]
PLAYED, MISSED = budget.half(CASES, "faults"), budget.half(GAPS, "gaps")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_nothing_goes_wrong(scenario: Scenario) -> None:
    outcome = undisturbed(scenario)
    assert outcome.lives == 1
    assert outcome.made >= 3
    assert outcome.writes >= 9


@pytest.mark.parametrize("scenario", [RECLAIMED, PREEMPTED, UNMOVED], ids=lambda one: one.name)
def test_one_is_evicted_and_once(scenario: Scenario) -> None:
    assert undisturbed(scenario).evictions == 1


@pytest.mark.parametrize(
    ("scenario", "fault"),
    budget.slow_by_turns(PLAYED, 4),
    ids=[f"{one.name}: {fault.name.lower()}" for one, fault in PLAYED],
)
def test_one_fault_changes_nothing_in_the_end(scenario: Scenario, fault: Fault) -> None:
    befall(scenario, fault, writes(scenario, fault))


OUTAGES = (Fault.LOST_AFTER, Fault.UNAUTHORIZED, Fault.NOT_FOUND, Fault.NOT_ALLOWED)
IN_A_ROW = 10
OUTAGES_OF_EACH = 6


@pytest.mark.parametrize("fault", OUTAGES, ids=lambda one: one.name.lower())
@pytest.mark.parametrize(
    "scenario", budget.slow_but_first([IN_TURN, TWINS]), ids=lambda one: one.name
)
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


# -- a gap at an event of a watch ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "gap"),
    budget.slow_by_turns(MISSED, 4),
    ids=[f"{one.name}: {gap.name.lower()}" for one, gap in MISSED],
)
def test_one_gap_in_a_watch_changes_nothing_in_the_end(scenario: Scenario, gap: Gap) -> None:
    expected = undisturbed(scenario)
    # A status is repeated until the kind can be read, also where the AppWrapper is gone.
    more_writes = MORE_WRITES + (REPEATS if gap in REFUSED_GAPS else 0)
    for k in events(scenario, gap):
        plan = Plan(events=lambda number, line, k=k: gap if number == k else None)
        outcome = run(scenario, plan)
        where = f"{gap.value}: event {k}"
        assert outcome.objects == expected.objects, where
        assert outcome.evictions == expected.evictions, where
        assert outcome.writes <= expected.writes + more_writes, where
