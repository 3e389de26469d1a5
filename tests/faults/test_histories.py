"""Random histories with a few faults each: at rest everything is whole, and the books are true.

What the other suites enumerate is one fault in stories that were thought of. These are faults in
combination, on stories that were not. A seed that fails is a test: put it into ``FOUND``.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.faults import pair, world
from tests.faults.histories import History, contested, history, trouble
from tests.faults.injection import SPELLS, Fault
from tests.faults.meddling import Edit
from tests.faults.scenarios import Scenario
from tests.faults.world import Outcome

ALONE = [*(one for one in Fault if one not in (*SPELLS, Fault.BEQUEATHED)), *Edit]
LEADERS = [*SPELLS, Fault.BEQUEATHED, Fault.KILLED_BEFORE, Fault.KILLED_AFTER, Fault.LATE]
SEEDS = 40
FOUND = (211,)

BLOCK = 50  # of contested histories, in each of which every case comes up
BLOCKS = 2
CASES = {
    "claim: Starved",
    "claim: Planned",
    "claim: Preempting",
    "claim: Reclaiming",
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
}


@pytest.mark.parametrize("seed", [*FOUND, *range(SEEDS)])
def test_whatever_happens_everything_is_whole_and_true_at_rest(seed: int) -> None:
    rng = Random(seed)
    play(*history(rng), rng)


@pytest.mark.parametrize("begin", range(0, BLOCK * BLOCKS, BLOCK))
def test_whatever_happens_to_claims_they_are_kept_and_whoever_can_run_has(begin: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(begin, begin + BLOCK):
        found += play_contested(seed)
    assert found.keys() >= CASES, found


def play_contested(seed: int) -> Counter[str]:
    """The cases that came up."""
    rng = Random(seed)
    told, scenario = contested(rng)
    outcome, is_pair = play(told, scenario, rng)
    others = outcome.lives > 1 and scenario.settings(1) != scenario.settings(2)
    return outcome.cases + Counter({"two leaders": int(is_pair), "other settings": int(others)})


def play(told: History, scenario: Scenario, rng: Random) -> tuple[Outcome, bool]:
    """With trouble, by one process or by two."""
    is_pair = rng.random() < 0.2
    try:
        if is_pair:
            return pair.run(scenario, trouble(rng, LEADERS))[0], is_pair
        return world.run(scenario, trouble(rng, ALONE)), is_pair
    except AssertionError as error:
        error.add_note("\n".join((f"cpus={scenario.cpus} {scenario.config}", *told.said)))
        raise
