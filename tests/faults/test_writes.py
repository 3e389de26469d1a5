"""One fault at every write of every scenario: the end is that of a run in which nothing went wrong.

Sieve's intermediate states (OSDI 22), enumerated: what is killed, lost, refused or late is each
write in turn.
"""

from __future__ import annotations

import pytest

from tests.faults.injection import SPELLS, Fault, Plan
from tests.faults.meddling import Edit
from tests.faults.scenarios import IN_TURN, SCENARIOS, SUSPENDED, TWINS, Scenario
from tests.faults.world import MORE_WRITES, run, undisturbed

ALONE = [one for one in Fault if one not in (*SPELLS, Fault.BEQUEATHED)]  # the rest takes a lease
WRITES_OF_AN_EDIT = 16  # an attempt is taken back, and another one is made of what was edited


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_nothing_goes_wrong(scenario: Scenario) -> None:
    outcome = undisturbed(scenario)
    assert outcome.lives == 1
    assert outcome.made >= 3
    assert outcome.writes >= 9


@pytest.mark.parametrize("fault", ALONE, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_one_fault_changes_nothing_in_the_end(scenario: Scenario, fault: Fault) -> None:
    expected = undisturbed(scenario)
    for k in range(expected.writes):
        plan = Plan(writes=lambda number, k=k: fault if number == k else None)
        outcome = run(scenario, plan)
        where = f"{fault.value}: write {k}, {expected.requests[k]}"
        assert outcome.lives == (2 if fault.name.startswith("KILLED") else 1), where
        assert outcome.objects == expected.objects, where
        assert outcome.writes <= expected.writes + MORE_WRITES, where


OUTAGES = (Fault.LOST_AFTER, Fault.UNAUTHORIZED, Fault.NOT_FOUND, Fault.NOT_ALLOWED)
IN_A_ROW = 10


@pytest.mark.parametrize("fault", OUTAGES, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", [IN_TURN, TWINS], ids=lambda one: one.name)
def test_an_outage_from_any_write_on_changes_nothing_in_the_end(
    scenario: Scenario, fault: Fault
) -> None:
    expected = undisturbed(scenario)
    for k in range(expected.writes):
        plan = Plan(writes=lambda number, k=k: fault if k <= number < k + IN_A_ROW else None)
        outcome = run(scenario, plan)
        where = f"{fault.value}: writes from {k} on, {expected.requests[k]}"
        assert outcome.objects == expected.objects, where
        assert outcome.writes <= expected.writes + IN_A_ROW + MORE_WRITES, where


@pytest.mark.parametrize("scenario", [IN_TURN, SUSPENDED], ids=lambda one: one.name)
def test_whoever_toggles_all_the_time_gets_no_more_than_pauses(scenario: Scenario) -> None:
    """From any write on, at each of so many: every attempt costs a toggle, and they wait."""
    expected = undisturbed(scenario)
    for k in range(expected.writes):
        plan = Plan(writes=lambda number, k=k: Edit.TOGGLED if k <= number < k + IN_A_ROW else None)
        outcome = run(scenario, plan)
        where = f"writes from {k} on, {expected.requests[k]}"
        assert outcome.lives == 1, where
        assert outcome.writes <= expected.writes + 2 * IN_A_ROW, where


@pytest.mark.parametrize("edit", Edit, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_one_edit_at_any_write_leaves_everything_whole(scenario: Scenario, edit: Edit) -> None:
    """Of what is edited another attempt may be made, so its objects may be others in the end."""
    expected = undisturbed(scenario)
    for k in range(expected.writes):
        plan = Plan(writes=lambda number, k=k: edit if number == k else None)
        outcome = run(scenario, plan)
        where = f"{edit.value}: write {k}, {expected.requests[k]}"
        assert outcome.lives == 1, where
        assert outcome.writes <= expected.writes + WRITES_OF_AN_EDIT, where
