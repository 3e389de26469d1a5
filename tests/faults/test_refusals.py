"""The server refuses a write of every scenario: the end is that of a run in which it did not.

A file of its own, so that both halves of the suite can run at a time (see test_writes.py).
"""

from __future__ import annotations

import pytest

from tests.faults.alike import befall, writes
from tests.faults.catalog import SCENARIOS
from tests.faults.injection import REFUSALS, Fault
from tests.faults.scenarios import IN_TURN, KEPT, SUSPENDED, Scenario

ALIKE = (Fault.NOT_ALLOWED, Fault.TIMED_OUT, Fault.REDIRECTED)
"""Answers that the dispatcher takes for the same; these scenarios have every kind of write."""
CASES = [
    (scenario, fault)
    for scenario in SCENARIOS
    for fault in REFUSALS
    if fault not in ALIKE or scenario in (IN_TURN, SUSPENDED, KEPT)
]


@pytest.mark.parametrize(
    ("scenario", "fault"), CASES, ids=[f"{one.name}: {fault.name.lower()}" for one, fault in CASES]
)
def test_one_refusal_changes_nothing_in_the_end(scenario: Scenario, fault: Fault) -> None:
    befall(scenario, fault, writes(scenario, fault))
