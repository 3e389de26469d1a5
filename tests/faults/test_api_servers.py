"""API servers are upgraded one after the other: each time all watches come to one that is behind.

Its watch cache has not caught up with the versions that the server before it had told, so it tells
nothing until it has. Lists and single reads are consistent whichever server answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from tests.faults.trials import drawn, judged
from tests.faults.troubles import PLURALS
from tests.faults.weather import SlowStream

SERVERS = 3
APART_S = (20.0, 60.0)
BEHIND_S = (2.0, 30.0)


def upgraded(rng: Random, begin_s: float) -> Iterator[SlowStream]:
    """What the watches are like while the servers are replaced."""
    for _ in range(SERVERS):
        behind_s = round(rng.uniform(*BEHIND_S), 2)
        for plural in PLURALS:
            yield SlowStream(plural, behind_s, begin_s, begin_s + behind_s)
        begin_s += behind_s + rng.uniform(*APART_S)


@pytest.mark.parametrize("kind", ["plain", "contested"])
@pytest.mark.parametrize("seed", range(6))
def test_servers_that_are_behind_change_no_promise(kind: str, seed: int) -> None:
    trial, rng = drawn(kind, seed), Random(f"servers {kind} {seed}")
    behind = upgraded(rng, rng.uniform(0.0, 60.0))
    judged(replace(trial, parts=(*trial.parts, *behind)))
