"""A gang and a stream of small jobs without an end: when it starts (benchmarks/starvation.py)."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.replay import HOUR
from benchmarks.starvation import PROTECT_AFTER, Outcome, nothing, play, stream, twofold
from mcad.core.state.settings import Policy, Settings

WATCHED = 4 * HOUR
UNPROTECTED = Settings(protect_after=0)


def lived(settings: Settings | None, limit: object = nothing) -> Outcome:
    jobs = stream(Random(1), limit, WATCHED)  # type: ignore[arg-type]
    return play(jobs, settings, WATCHED)


@pytest.mark.parametrize("settings", [None, UNPROTECTED], ids=["MCAD", "unprotected"])
def test_without_protection_a_stream_starves_a_gang(settings: Settings | None) -> None:
    outcome = lived(settings)

    assert outcome.wait == 0
    assert outcome.overtakers > 300


@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT_FIFO, Policy.BACKFILL])
def test_a_protected_gang_starts_when_it_was_promised_to_and_within_the_bound(
    policy: Policy,
) -> None:
    outcome = lived(Settings(policy=policy), twofold)

    assert 0 < outcome.wait <= outcome.promised <= outcome.bound


def test_a_protected_gang_starts_although_nobody_says_how_long_it_runs() -> None:
    outcome = lived(Settings())

    assert outcome.wait > PROTECT_AFTER
    assert outcome.promised == 0
