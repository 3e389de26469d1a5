"""A day of three teams on a small cluster: what evictions cost, and what they bring about."""

from __future__ import annotations

from functools import cache

from benchmarks.replay import Replay
from benchmarks.three_teams import SHARES, DueMeter, play, week
from mcad.core.model import Settings

NODES, DAYS = 8, 1


@cache
def lived(reclaim: bool, preemption: bool) -> Replay:
    jobs = week(250, DAYS, seed=1, nodes=NODES)
    return play(jobs, DAYS, Settings(reclaim=reclaim, preemption=preemption), NODES)


def due(replay: Replay) -> dict[str, float]:
    """The part of what is due to it that each team got."""
    meter = replay.meter
    assert isinstance(meter, DueMeter)
    return {team: meter.got[team] / meter.due[team] for team in SHARES}


def evicted(replay: Replay, reason: str = "") -> int:
    return sum(
        reason in ("", one.reason) for life in replay.lives.values() for one in life.evictions
    )


def test_nobody_is_evicted_where_that_is_switched_off() -> None:
    assert evicted(lived(reclaim=False, preemption=False)) == 0
