"""Random histories: every line of the table is walked, and no eviction is in vain."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TABLE, Phase, Signal
from mcad.core.state.model import Dialect
from mcad.core.state.reasons import EventReason
from mcad.core.state.units import Instant
from tests import budget
from tests.core import bench
from tests.core.histories import Lives, PausedTeams, QuietTeams, RackedTeams, Teams

RARE = (17, 25, 43, 78, 167, 193, 199, 236, 249)  # together they walk every line at present
SEEDS = 350
IN_A_PUSH = 70

ONE_EACH = frozenset(
    (
        "PAUSED_PER_PASS",
        "REPORTS_PER_PASS",
        "RECOVERED_PER_PASS",
        "RANKED_PER_PASS",
        "JUDGED_PER_PASS",
        "NOTED_PER_PASS",
        "SWEPT_PER_PASS",
        "TIMERS_PER_PASS",
        "ENDS_PER_PASS",
    )
)
"""Bounds of a pass that are numbers of AppWrappers, or the like; the others are steps."""

Walked = set[tuple[Dialect, Phase, Signal]]

RESETS = {
    (Phase.SETTLING, Signal.SETTLED_RESET),
    (Phase.INTENDING, Signal.RETRY_REFUSED),
    *((Phase.PAUSING, signal) for phase, signal in TABLE if phase is Phase.PAUSING),
}
"""Rare in MCAD's dialect: only a bare Pod that the cluster took away is tried again (ADR 57)."""

ERRORS = {line for line in TABLE if line[1] is Signal.ERROR or line[0] is Phase.HELD}
"""What an error of the dispatcher itself does: test_internal_errors.py."""


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> Walked:
    """The lines of the table that AppWrappers go along, filled while a test runs."""
    found: Walked = set()

    def noted(entry: Entry, signal: Signal, now: Instant) -> None:
        found.add((entry.workload.dialect, entry.phase, signal))
        move(entry, signal, now)

    move = Entry.move
    monkeypatch.setattr(Entry, "move", noted)
    return found


def test_every_line_of_the_table_is_walked_in_both_dialects(walked: Walked) -> None:
    """In a push by seeds that its commit draws, and by more if a line is missing."""
    rare = {(Dialect.V1BETA1, *line) for line in RESETS}
    lines = {(Dialect.V1BETA1, *line) for line in TABLE.keys() - RESETS - ERRORS}
    lines |= {(Dialect.V1BETA2, *line) for line in TABLE.keys() - ERRORS}
    seeds = budget.rng("lives").sample(range(SEEDS), SEEDS)
    for number, seed in enumerate(dict.fromkeys((*RARE, *seeds))):
        if number >= IN_A_PUSH and walked - rare == lines and not budget.SOAK:
            break
        Lives(seed).run(120)
    assert walked - rare == lines, sorted((walked - rare) ^ lines)


def lived(profile: type[Teams], seed: int) -> Teams:
    life = profile(seed)
    try:
        life.run(60)
    except AssertionError as error:
        error.add_note(f"{seed=}")
        raise
    return life


@pytest.mark.parametrize("begin", range(0, 60 if budget.SOAK else 20, 20))
def test_each_victim_has_run_for_its_minimum_time_whatever_happens(begin: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        life = lived(Teams, seed)
        found.update(one.reason for one in life.bench.events)
        found["evicted"] += sum(life.pairs.values())
    assert found["evicted"] >= 10
    assert found[EventReason.RESERVATION_ENDED]


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, 60 if budget.SOAK else 20, 20))
def test_the_preemptor_is_dispatched_if_nothing_goes_wrong(begin: int) -> None:
    reasons: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        life = lived(QuietTeams, seed)
        dispatched = {f"uid-{name}" for name in life.bench.order}
        for uid, by in life.pairs:
            assert by in dispatched, f"{seed=}: {uid} was evicted for {by}, which does not run"
        reasons.update(view.eviction.reason for view in life.bench.status.values() if view.eviction)
    assert len(reasons) == 2, reasons


@pytest.mark.parametrize("begin", range(0, 60 if budget.SOAK else 20, 20))
@pytest.mark.parametrize(
    ("profile", "counted", "least"),
    [
        pytest.param(PausedTeams, "paused", 100, id="nothing starts in the scope of a pause"),
        pytest.param(
            *(RackedTeams, "racked", 30),
            id="pods that have to be in one rack are in one",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_a_profile_checks_by_itself_holds_and_is_met(
    profile: type[Teams], counted: str, least: int, begin: int
) -> None:
    found = sum(getattr(lived(profile, seed), counted) for seed in range(begin, begin + 20))
    assert found > least


@pytest.mark.parametrize("profile", budget.slow_but_first([Lives, Teams, PausedTeams, RackedTeams]))
def test_everything_holds_between_the_passes_that_share_a_work(
    profile: type[Lives], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few AppWrappers are never enough for a bound of a pass, so the bounds are small here."""
    small = 0
    for name, module in list(sys.modules.items()):
        if not name.startswith("mcad.core."):
            continue
        for bound in [one for one in vars(module) if one.endswith("_PER_PASS")]:
            if bound in ONE_EACH:
                monkeypatch.setattr(module, bound, 1)
            small += bound == "RANKED_PER_PASS"
    assert small == 2
    monkeypatch.setattr(bench, "WAKES_MAX", 5 * bench.WAKES_MAX)
    for seed in range(200 if budget.SOAK else 12):
        profile(seed).run(60)
