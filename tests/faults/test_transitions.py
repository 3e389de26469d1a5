"""The scenarios walk the table: without any fault, on the embedded cluster, in virtual time.

What takes a conflict, a second leader or a deletion at the right moment is walked by the suites of
those (test_writes.py, test_leaders.py, test_edits.py), and all of it at random by
tests/core/test_histories.py.
"""

from __future__ import annotations

import pytest

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TABLE, Phase, Signal
from mcad.core.state.model import Dialect
from mcad.core.state.units import Instant
from tests.core.test_histories import ERRORS, RESETS
from tests.faults.scenarios import (
    SCENARIOS,
    Scenario,
    complete,
    create,
    deployment,
    job,
    refused,
    scheduled,
)
from tests.faults.world import run
from tests.manifests import components, config_map, generic

OTHERS = {Signal.INTENT_REFUSED, Signal.RETRY_REFUSED, Signal.OBJECT_GONE}

GIVEN_UP = (Phase.SETTLING, Signal.SETTLED_DELETED)
"""What only MCAD's dialect has."""

LIMITED = scheduled(generic("b", deployment("b", 1)), dispatchDuration={"limit": 20})

IN_THE_OTHER_DIALECT = Scenario(
    "what the other scenarios show in one dialect only",
    cpus=(3,),
    acts=(
        (0.0, create(complete("a", job("a", 1, 10)), successTTLDuration="40s")),
        (0.1, create(LIMITED, deletionOnFailureGracePeriodDuration="30s")),
        (0.2, create(components("c", config_map("c"), refused("c")))),
    ),
    ends={"a": "Completed", "b": "Failed", "c": "Failed"},
)


@pytest.mark.slow
def test_the_scenarios_walk_every_line_of_the_table_in_both_dialects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked: set[tuple[Dialect, Phase, Signal]] = set()

    def noted(entry: Entry, signal: Signal, now: Instant) -> None:
        walked.add((entry.workload.dialect, entry.phase, signal))
        move(entry, signal, now)

    move = Entry.move
    monkeypatch.setattr(Entry, "move", noted)
    for scenario in (*SCENARIOS, IN_THE_OTHER_DIALECT):
        run(scenario)
    lines = {line for line in TABLE.keys() - ERRORS if line[1] not in OTHERS}
    wanted = {(Dialect.V1BETA1, *line) for line in lines - RESETS}
    wanted |= {(Dialect.V1BETA2, *line) for line in lines - {GIVEN_UP}}
    assert wanted <= walked, sorted(wanted - walked)
