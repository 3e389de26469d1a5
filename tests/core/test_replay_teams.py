"""A day of three teams on a small cluster: evictions are counted, and no pair meets twice."""

from __future__ import annotations

from functools import cache

from benchmarks.replay import Replay
from benchmarks.three_teams import play, week
from mcad.core.state.settings import Settings

NODES, DAYS = 4, 1


@cache
def lived(evicting: bool) -> Replay:
    jobs = week(60, DAYS, seed=1, nodes=NODES)
    settings = Settings(reclaim=evicting, preemption=evicting)
    return play(jobs, DAYS, settings, NODES)  # which is over if a pair meets twice


def evicted(replay: Replay) -> int:
    return sum(len(life.evictions) for life in replay.lives.values())


def test_nobody_is_evicted_where_that_is_switched_off() -> None:
    assert evicted(lived(evicting=False)) == 0


def test_teams_that_lend_to_each_other_take_back_and_no_pair_meets_twice() -> None:
    replay = lived(evicting=True)
    reasons = {one.reason for life in replay.lives.values() for one in life.evictions}
    assert reasons == {"Preempted", "Reclaimed"}


def test_what_evictions_lose_is_accounted_for() -> None:
    lives = lived(evicting=True).lives.values()
    assert sum(life.lost for life in lives) > 0
    for life in lives:
        assert life.evictions or not life.lost
        assert life.dispatches >= len(life.evictions)
