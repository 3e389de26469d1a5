"""What the CLI counts for itself never contradicts the dispatcher's own answer, in no state of
contested histories: it says the same, word for word, or leaves it open."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

import pytest

from tests.faults import world
from tests.faults.histories import contested
from tests.faults.onlooking import Findings, World
from tests.faults.scenarios import Scenario

BLOCK = 10
HISTORIES = 20
STATES = 1_500
OPEN_MAX = 0.02  # of all rows: one who leaves everything open contradicts nobody


@pytest.mark.parametrize("begin", range(0, HISTORIES, BLOCK))
def test_who_only_looks_says_what_the_port_says_or_leaves_it_open(begin: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(begin, begin + BLOCK):
        found += ask_both(contested(Random(seed))[1], seed)
    assert found["states"] >= STATES, found
    assert found["states with a reservation"], found
    assert found["rows with something left open"] <= OPEN_MAX * found["rows"], found


def ask_both(scenario: Scenario, seed: int) -> Counter[str]:
    """What was compared in one history."""
    findings = Findings()
    world.run(scenario, build=partial(World, findings))
    assert not findings.contradictions, f"seed {seed}: " + "\n".join(findings.contradictions[:3])
    return findings.told
