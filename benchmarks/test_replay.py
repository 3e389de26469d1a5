"""The replays in virtual time: they measure what happened, in three kinds of load."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks import starvation, three_teams
from benchmarks.builders import cores, machines
from benchmarks.replay import HOUR, MINUTE, Job, Replay
from benchmarks.traces import Shape, batch
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.builders import START

DAY = 24 * HOUR


def test_the_same_jobs_have_the_same_lives() -> None:
    jobs = batch(Shape(60, 12 * HOUR, nodes=16, load=0.9), seed=3)

    first, second = (Replay(jobs, machines(16, 8)).run() for _ in range(2))

    assert first.lives == second.lives
    assert first.meter.sums == second.meter.sums
    first.check()


def test_a_job_that_waits_starts_when_its_room_is_free() -> None:
    jobs = [Job("first", 0, 2, cores(4), run=HOUR), Job("next", MINUTE, 2, cores(4), run=HOUR)]

    replay = Replay(jobs, machines(1, 8)).run()

    first, last = replay.life("first"), replay.life("next")
    assert (first.starts, first.ended) == ([START], START + HOUR)
    assert last.submitted == START + MINUTE
    assert (last.starts, last.ended) == ([START + HOUR], START + 2 * HOUR)
    assert last.wait == 59 * MINUTE
    assert replay.utilisation == 1.0
    assert replay.open == 0
    assert replay.gangs == {}


def test_pods_take_their_time_to_end_when_they_are_deleted() -> None:
    jobs = [Job("long", 0, 1, cores(8), run=HOUR, limit=MINUTE), Job("next", 1, 1, cores(8), HOUR)]

    replay = Replay(jobs, machines(1, 8), shutdown=30 * SECOND).run()

    assert replay.life("long").cut == 90 * SECOND
    assert replay.life("next").starts == [START + 90 * SECOND]


def test_a_trace_has_the_load_and_the_sizes_that_it_is_to_have() -> None:
    shape = Shape(2000, 7 * DAY, nodes=128, load=0.8)

    jobs = batch(shape, seed=1)

    sizes = [job.pods * dict(job.request)["cpu"] // 1000 for job in jobs]
    work = sum(size * job.run for size, job in zip(sizes, jobs, strict=True))
    by_day = sum(8 <= job.at // HOUR % 24 < 20 for job in jobs)
    assert abs(work / (1024 * 7 * DAY) - 0.8) < 0.001
    assert [job.at for job in jobs] == sorted(job.at for job in jobs)
    assert 0.6 < sum(size & (size - 1) == 0 for size in sizes) / 2000 < 0.95
    assert max(sizes) <= 1024
    assert by_day > 1200
    assert sum(job.limit < job.run for job in jobs) < 200
    assert sum(job.limit > 2 * job.run for job in jobs) > 800


# -- a gang and a stream of small jobs without an end ---------------------------------------------

WATCHED = 4 * HOUR


def starving(settings: Settings, limit: object = starvation.nothing) -> starvation.Outcome:
    """When the gang starts."""
    jobs = starvation.stream(Random(1), limit, WATCHED)  # type: ignore[arg-type]
    return starvation.play(jobs, settings, WATCHED)


def test_without_protection_a_stream_starves_a_gang() -> None:
    outcome = starving(Settings(protect_after=0))

    assert outcome.wait == 0
    assert outcome.overtakers > 300


@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT_FIFO, Policy.BACKFILL])
def test_a_protected_gang_starts_when_it_was_promised_to_and_within_the_bound(
    policy: Policy,
) -> None:
    outcome = starving(Settings(policy=policy), starvation.twofold)

    assert 0 < outcome.wait <= outcome.promised <= outcome.bound


def test_a_protected_gang_starts_although_its_run_time_is_unknown() -> None:
    outcome = starving(Settings())

    assert outcome.wait > starvation.PROTECT_AFTER
    assert outcome.promised == 0


# -- a day of three teams --------------------------------------------------------------------------


def test_evictions_of_teams_are_counted_with_what_they_lose() -> None:
    jobs = three_teams.week(60, days=1, seed=1, nodes=4)
    calm, evicting = (
        three_teams.play(jobs, 1, Settings(reclaim=on, preemption=on), 4) for on in (False, True)
    )
    assert not any(life.evictions for life in calm.lives.values())
    lives = evicting.lives.values()
    reasons = {one.reason for life in lives for one in life.evictions}
    assert reasons == {"Preempted", "Reclaimed"}
    assert sum(life.lost for life in lives) > 0
    for life in lives:
        assert life.evictions or not life.lost
        assert life.dispatches >= len(life.evictions)
