"""Random histories of a cluster that grows: no gang starts without places for all of its pods, what
is asked for is what has no place, and no request is left.

``MCAD_EXAMPLES=5000 pytest tests/core/scale_up/test_growing.py`` plays more of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from msgspec.structs import replace

from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests import budget
from tests.core.histories import History, Lives, PausedTeams, RackedTeams, Teams
from tests.core.scale_up.growing import Growing

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "400" if budget.SOAK else "60"))


@pytest.mark.parametrize("begin", budget.slow_but_first(range(0, EXAMPLES, 20)))
def test_gangs_start_with_all_places_and_ask_for_the_others(begin: int) -> None:
    cases: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        one = Growing(seed)
        try:
            one.run(30)
        except AssertionError as error:
            error.add_note(f"{seed=}")
            raise
        cases.update(one.cases)
    if begin == 0:  # a block of a longer run may have fewer
        common = ("asked", "asked for some", "starts", "leaders")
        assert min(cases[one] for one in common) >= 10, cases
        assert cases["all served"] >= 5, cases


@pytest.mark.parametrize("profile", [Lives, Teams, PausedTeams, RackedTeams])
def test_whatever_else_happens_to_those_that_ask(profile: type[History]) -> None:
    """Quotas, evictions, pauses, racks, resets, requests without an answer: no request is left
    that no AppWrapper waits for, and nothing that is kept twice differs."""

    class Growing(profile):  # type: ignore[misc, valid-type]
        def settings(self) -> Settings:
            return replace(super().settings(), scale_up=True, scale_up_timeout=60 * SECOND)

    asked = 0
    for seed in range(4):
        one = Growing(seed)
        one.run(60)
        asked += len(one.bench.asked)
        cluster = one.bench.dispatcher.cluster
        for uid, attempt in one.bench.scale_ups:
            entry = cluster.entries[uid]
            assert entry.reservation is not None
            assert attempt == entry.attempt + 1
    assert asked
