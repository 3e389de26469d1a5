"""The scenarios walk the table: without any fault, on the embedded cluster, in virtual time.

What takes a conflict, a second leader or a deletion at the right moment is walked by the suites of
those (test_writes.py, test_leaders.py, test_edits.py), and all of it at random by
tests/core/test_lives.py.
"""

from __future__ import annotations

import pytest

from mcad.core import entry as entries
from mcad.core.lifecycle import TABLE, Phase, Signal, transition
from tests.faults.scenarios import SCENARIOS
from tests.faults.world import run

OTHERS = {Signal.INTENT_REFUSED, Signal.RETRY_REFUSED, Signal.INTENT_FOUND, Signal.OBJECT_GONE}


def test_the_scenarios_walk_every_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: set[tuple[Phase, Signal]] = set()

    def noted(who: str, phase: Phase, signal: Signal, story: list[str]) -> Phase:
        walked.add((phase, signal))
        return transition(who, phase, signal, story)

    monkeypatch.setattr(entries, "transition", noted)
    for scenario in SCENARIOS:
        run(scenario)
    missing = {line for line in TABLE if line[1] not in OTHERS} - walked
    assert not missing, sorted(missing)
