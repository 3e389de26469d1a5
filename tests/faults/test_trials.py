"""A run that fails is shrunk to the parts that its failure needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.faults import trials, world
from tests.faults.injection import Plan
from tests.faults.scenarios import Scenario
from tests.faults.trials import Act, drawn, judged, shrink
from tests.faults.world import Outcome


@pytest.mark.parametrize("needed", [(), (0,), (3, 17), (5, 6, 7), (0, 9, 18, 19)])
def test_what_a_failure_does_not_need_is_left_out(needed: tuple[int, ...]) -> None:
    assert tuple(shrink(range(20), lambda kept: set(needed) <= set(kept))) == needed


def test_tries_are_bounded() -> None:
    asked: list[Sequence[int]] = []

    def fails(kept: Sequence[int]) -> bool:
        asked.append(kept)
        return {1, 2} <= set(kept)

    kept = shrink(range(64), fails, tries=7)
    assert len(asked) == 7
    assert {1, 2} <= set(kept)
    assert len(kept) < 64


def test_a_trial_that_fails_is_told_with_the_line_that_plays_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The failure is artificial: two acts must not come together. Another one does not count."""
    trial = drawn("plain", 3)
    first, second = (n for n, one in enumerate(trial.parts) if isinstance(one, Act) and n in (0, 2))

    def run(scenario: Scenario, plan: Plan) -> Outcome:
        acts = {act for _, act in scenario.acts}
        assert {trial.parts[first].act, trial.parts[second].act} - acts, ["both a and b"]
        assert trial.parts[1].act in acts, ["something else"]
        return Outcome({}, [], 0, 0, 1, 0, Counter(), 0, [], [])

    monkeypatch.setattr(world, "run", run)
    with pytest.raises(AssertionError, match="both") as caught:
        judged(trial)
    line, *told = caught.value.__notes__[0].split("\n")
    assert line == f"python -m tests.faults.trials plain 3 --only {first},{second}"
    assert [one.split(":")[0] for one in told[1:]] == [str(first), str(second)]
    assert trial.play([1]).lives == 1


def test_the_same_seed_is_the_same_trial() -> None:
    for kind in trials.KINDS:
        assert drawn(kind, 5).told() == drawn(kind, 5).told() != drawn(kind, 6).told()


def test_parts_can_be_left_out_of_a_real_run() -> None:
    trial = drawn("contested", 1)
    acts = [n for n, one in enumerate(trial.parts) if isinstance(one, Act)]
    assert trial.play(acts).cases["slow stream"] == 0
    assert not any("/appwrappers/" in one for one in trial.play([]).requests)
