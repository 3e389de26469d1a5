"""Two dispatchers: one fault at every write of the leader, and spells that outlast its lease."""

from __future__ import annotations

from functools import cache

import pytest

from mcad.api.config import LeaderElection
from mcad.kube import reflector
from tests import budget
from tests.faults.injection import SPELLS, Fault, Plan
from tests.faults.scenarios import (
    BORROWED,
    COMPLETED,
    IN_TURN,
    PREEMPTED,
    RECLAIMED,
    ROLLED_BACK,
    Scenario,
)
from tests.faults.two_processes import Leases, run
from tests.faults.weather import STREAMS, SlowStream, Weather
from tests.faults.world import MORE_WRITES, Outcome

OF_EACH = 3
"""So many writes of a scenario have each fault in a push."""

LOSING = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER, Fault.BEQUEATHED, *SPELLS)
KEEPING = (Fault.LOST_AFTER, Fault.LATE, Fault.BROKEN)  # those of a write are another suite's
CASES = [
    *((IN_TURN, fault) for fault in (*LOSING, *KEEPING)),
    *((scenario, fault) for scenario in (ROLLED_BACK, COMPLETED) for fault in LOSING),
    *((BORROWED, fault) for fault in (Fault.KILLED_AFTER, Fault.BEQUEATHED)),
    (RECLAIMED, Fault.KILLED_AFTER),
    (PREEMPTED, Fault.BEQUEATHED),
]
PLAYED = budget.half(CASES, "leaders")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One object is many: a copy catches up by a watch, as where a list would cost much."""
    monkeypatch.setattr(reflector, "FEW", 0)


@cache
def undisturbed(scenario: Scenario) -> Outcome:
    """How it ends if nothing goes wrong: one has done everything."""
    outcome, pair = run(scenario)
    assert (outcome.lives, pair.losses, pair.writers()) == (2, 0, [1])
    return outcome


@pytest.mark.parametrize(
    ("scenario", "fault"),
    PLAYED,
    ids=[f"{one.name}: {fault.name.lower()}" for one, fault in PLAYED],
)
def test_one_fault_changes_nothing_in_the_end(scenario: Scenario, fault: Fault) -> None:
    expected = undisturbed(scenario)
    for k in budget.draw(range(expected.writes), OF_EACH, fault.name, scenario.name):
        plan = Plan(writes=lambda number, k=k: fault if number == k else None)
        outcome, pair = run(scenario, plan)
        where = f"{fault.value}: write {k}, {expected.requests[k]}"
        assert outcome.lives == (3 if fault in LOSING else 2), where
        assert pair.losses == (fault in SPELLS), where
        assert pair.writers() in ([[1, 2], [1]] if fault in LOSING else [[1]]), where
        assert outcome.objects == expected.objects, where
        assert outcome.evictions <= expected.evictions, where  # the late one finds the preemptor
        assert outcome.writes <= expected.writes + MORE_WRITES, where


# -- slow renewals, and a rolling upgrade that changes the terms of the Lease --------------------

SHORT = LeaderElection(leaseDuration=60, renewDeadline=52, retryPeriod=8)
LONG = LeaderElection(leaseDuration=90, renewDeadline=82, retryPeriod=8)
ANSWER_S = 12.0  # of each renewal: longer than from the renew deadline to the end of the Lease
TERMS = {"equal": (SHORT, SHORT), "longer": (SHORT, LONG), "shorter": (LONG, SHORT)}
ENDS = (Fault.KILLED_AFTER, *SPELLS)


@pytest.mark.parametrize("fault", ENDS, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_slow_renewals_and_other_terms_change_nothing(
    terms: tuple[LeaderElection, ...], fault: Fault
) -> None:
    """The holder's own record says for how long it holds, and a renewal counts from when it was
    sent: otherwise the first leader would write after the second one has begun."""
    leases, expected = Leases(terms, ANSWER_S), undisturbed(IN_TURN)
    for k in budget.draw(range(0, expected.writes, 2), OF_EACH // 2, fault.name, terms):
        plan = Plan(writes=lambda number, k=k: fault if number == k else None)
        outcome, pair = run(IN_TURN, plan, leases)
        where = f"{fault.value}: write {k}, {expected.requests[k]}"
        assert pair.writers() in ([1, 2], [1]), where
        assert outcome.objects == expected.objects, where


# -- a standby with a copy that is behind, and one without a copy --------------------------------

LAGS_S = {0.0: 1, 0.7: 2, 10.0: 2, 30.0: 2}
"""How late all watches tell what happens -> how often the successor has then listed AppWrappers:
to copy them, and again if the copy could not catch up. A late watch sends no bookmark of now."""


@pytest.mark.parametrize("lag_s", LAGS_S)
@pytest.mark.parametrize("scenario", [IN_TURN, COMPLETED], ids=lambda one: one.name)
def test_a_copy_that_is_behind_changes_nothing_in_the_end(scenario: Scenario, lag_s: float) -> None:
    """Nothing is decided before the copy has caught up, or everything is listed."""
    slow = tuple(SlowStream(one.plural, lag_s) for one in STREAMS)
    expected, lists = undisturbed(scenario), set()
    for k in budget.draw(range(expected.writes), OF_EACH, "behind", scenario.name, lag_s):
        killed = {k: Fault.KILLED_AFTER}
        outcome, pair = run(scenario, Plan(killed.get, weather=Weather(slow)))
        where = f"write {k}, {expected.requests[k]}"
        assert outcome.lives == 3, where
        assert outcome.objects == expected.objects, where
        lists.add(pair.lists[1])
    assert max(lists) == LAGS_S[lag_s]
