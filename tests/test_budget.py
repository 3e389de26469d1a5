"""What a push plays of what can be enumerated."""

import pytest

from tests import budget
from tests.faults.injection import Fault, Gap
from tests.faults.representatives import bare, events, writes
from tests.faults.scenarios import SCENARIOS
from tests.faults.world import undisturbed


@pytest.fixture(autouse=True)
def push(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SOAK", False)
    monkeypatch.setattr(budget, "SEED", "one")


def test_a_draw_depends_on_the_seed_and_on_what_it_is_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = budget.draw(range(100), 5, "late")

    assert len(drawn) == 5
    assert drawn == sorted(drawn) == budget.draw(range(100), 5, "late")
    assert drawn != budget.draw(range(100), 5, "lost")
    monkeypatch.setattr(budget, "SEED", "two")
    assert drawn != budget.draw(range(100), 5, "late")


def test_a_soak_draws_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SOAK", True)

    assert budget.draw(range(100), 5, "late") == list(range(100))
    assert budget.draw([], 5) == []


@pytest.mark.parametrize("fault", [Fault.KILLED_AFTER, Fault.LATE])
def test_a_part_of_the_kinds_of_writes_has_a_fault(fault: Fault) -> None:
    everything, drawn = set(), []
    for scenario in SCENARIOS:
        moments = undisturbed(scenario).moments
        everything |= set(map(bare, moments))
        numbers = writes(scenario, fault)
        assert numbers, scenario.name
        drawn += [bare(moments[number]) for number in numbers]

    assert abs(len(set(drawn)) / len(everything) - budget.PART) < 0.2
    assert len(drawn) < len(everything) / 2 + len(SCENARIOS)


def test_a_few_commits_have_each_fault_at_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    left = set(range(200))
    for commit in range(30):
        monkeypatch.setattr(budget, "SEED", commit)
        left = {kind for kind in left if not budget.in_part("late", kind)}
    assert not left


def test_other_commits_draw_other_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    once = [writes(scenario, Fault.LATE) for scenario in SCENARIOS]
    monkeypatch.setattr(budget, "SEED", "two")

    assert once != [writes(scenario, Fault.LATE) for scenario in SCENARIOS]


def test_a_soak_has_each_fault_at_every_write_and_gaps_at_every_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pushed = [len(events(scenario, Gap.DELAYED)) for scenario in SCENARIOS]
    monkeypatch.setattr(budget, "SOAK", True)

    assert min(pushed) >= 1
    for scenario in SCENARIOS:
        assert writes(scenario, Fault.LATE) == list(range(undisturbed(scenario).writes))
    cut = [len(events(scenario, Gap.CUT)) for scenario in SCENARIOS]
    soaked = [len(events(scenario, Gap.DELAYED)) for scenario in SCENARIOS]
    assert sum(pushed) < sum(cut) < sum(soaked)


def test_the_head_of_a_run_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert budget.header() == "budget: cases drawn by MCAD_SEED=one; MCAD_SOAK=1 plays all"
    monkeypatch.setattr(budget, "SOAK", True)
    assert budget.header() == "budget: every case (MCAD_SOAK)"


def test_make_test_draws_a_part_of_the_examples_and_a_soak_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for is_part, is_soak, expected in ((True, False, 25), (False, False, 100), (True, True, 100)):
        monkeypatch.setattr(budget, "IS_PART", is_part)
        monkeypatch.setattr(budget, "SOAK", is_soak)
        assert budget.examples(100) == expected
    monkeypatch.setattr(budget, "SOAK", False)
    assert budget.examples(1) == 1


def test_make_test_leaves_the_rest_of_the_cases_to_make_test_all() -> None:
    by_turns = budget.slow_by_turns([(number,) for number in range(9)], 4)
    assert [one.values for one in by_turns if not one.marks] == [(0,), (4,), (8,)]
    first = budget.slow_but_first("abc")
    assert [one.values for one in first if not one.marks] == [("a",)]
    assert (len(by_turns), len(first)) == (9, 3)
