"""Random histories with a few faults each: at rest everything is whole, and the books are true.

What the other suites enumerate is one fault in stories that were thought of. These are faults in
combination, on stories that were not. A seed that fails is told with the line that plays it alone,
and with the parts of it that the failure needs (trials.py): put that line into ``FOUND``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import pytest

from tests import budget
from tests.faults.trials import Trial, drawn, judged
from tests.faults.upheavals import Upheaval

SEEDS = 40
FOUND = (("plain", 211, range(10)),)
"""Trials that have failed, each with the parts that its failure needed, as their line has them."""

BLOCK = 50  # of contested histories, in each of which every case comes up
BLOCKS = 2
CASES = {
    "reservation: Starved",
    "reservation: Planned",
    "reservation: Preempting",
    "reservation: Reclaiming",
    "redeemed: Starved",
    "redeemed: Planned",
    "redeemed: Preempting",
    "redeemed: Reclaiming",
    "ended: Starved",
    "ended: Planned",
    "evicted: Preempting",
    "evicted: Reclaiming",
    "promise kept",
    "backfilled",
    "two leaders",
    "other settings",
    "slow controller",
    "slow stream",
    "a kind minutes behind",
    "stale first list",
    "partial discovery",
    "a webhook denies an item",
    "a webhook denies a pod",
    "a ResourceQuota denies an item",
    "a ResourceQuota denies a pod",
    *(one.name for one in Upheaval),
    "FORCE_REPLACED while creating",
    "TERMINATED while creating",
}


@pytest.mark.parametrize(("kind", "seed", "kept"), FOUND)
def test_what_has_failed_once_does_not_fail(kind: str, seed: int, kept: Collection[int]) -> None:
    drawn(kind, seed).play(kept)


@pytest.mark.parametrize("seed", budget.draw(range(SEEDS), SEEDS // 4, "plain"))
def test_whatever_happens_everything_is_whole_and_true_at_rest(seed: int) -> None:
    judged(drawn("plain", seed))


@pytest.mark.parametrize("begin", budget.draw(range(0, BLOCK * BLOCKS, BLOCK), 1, "contested"))
def test_whatever_happens_to_claims_they_are_kept_and_whoever_can_run_has(begin: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(begin, begin + BLOCK):
        found += play_contested(drawn("contested", seed))
    assert found.keys() >= CASES, CASES - found.keys()


def play_contested(trial: Trial) -> Counter[str]:
    """The cases that came up."""
    outcome, scenario = judged(trial), trial.scenario
    others = outcome.lives > 1 and scenario.settings(1) != scenario.settings(2)
    told = {"two leaders": int(trial.is_pair), "other settings": int(others)}
    return outcome.cases + Counter(told)
