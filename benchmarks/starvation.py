"""A stream of small jobs without an end, and a gang that needs half of the cluster.

Ten nodes of 8 CPUs; jobs of 1 CPU come for ever, 5 % more of them than the cluster can take, and
run between 10 and 50 minutes. Two hours after the first of them a gang of five pods of 8 CPUs
comes. It is watched for ten hours: how long it waits, how many that came after it start before it,
what it was promised, and how much of the cluster was in use from its arrival on.

    python -m benchmarks.starvation [--seeds 5]

Waits are in minutes, the longest over the seeds; ``bound`` is protectAfter + the longest declared
limit, from the gang's arrival on, and 0 without declared limits. The gate: no gang starts later
than it was promised.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from statistics import mean
from typing import NamedTuple

from benchmarks.builders import cores, machines
from benchmarks.replay import HOUR, MINUTE, Job, Replay
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import Duration
from tests.core.builders import START

NODES, CPUS = 10, 8
COMES = 2 * HOUR
WATCHED = 10 * HOUR
SHORTEST, LONGEST = 10 * MINUTE, 50 * MINUTE
LOAD = 1.05
GANG = "gang"
PROTECT_AFTER = Settings().protect_after


def stream(
    rng: Random, limit: Callable[[Random, Duration], Duration], watched: Duration = WATCHED
) -> list[Job]:
    """The small jobs and the gang."""
    pause = (SHORTEST + LONGEST) / 2 / (NODES * CPUS * LOAD)
    jobs, at, limits = [], 0.0, Random(1)  # limits do not change what comes
    while at < COMES + watched:
        run = rng.randrange(SHORTEST, LONGEST)
        jobs.append(Job(f"small-{len(jobs):05}", int(at), 1, cores(1), run, limit(limits, run)))
        at += rng.expovariate(1 / pause)
    return [*jobs, Job(GANG, COMES, NODES // 2, cores(CPUS), HOUR)]


def nothing(_: Random, __: Duration) -> Duration:
    """Without a declared limit."""
    return 0


def twofold(rng: Random, run: Duration) -> Duration:
    """What is asked for is up to twice what is needed."""
    return round(run * rng.uniform(1.05, 2.0))


class Outcome(NamedTuple):
    """Of one play: the gang's wait (0: it never started), how many went before it although they
    came after it, the time that it was promised to wait at most (0: nothing), the bound (0: none),
    and the use of the cluster from its arrival on."""

    wait: Duration
    overtakers: int
    promised: Duration
    bound: Duration
    utilisation: float


def play(jobs: list[Job], settings: Settings, watched: Duration = WATCHED) -> Outcome:
    """One stream."""
    replay = Replay(jobs, machines(NODES, CPUS), settings)
    replay.plan(START + COMES, lambda: replay.meter.reset(replay.now))
    replay.run(COMES + watched)
    replay.check()
    gang = replay.life(GANG)
    started = gang.starts[0] if gang.starts else START + COMES + watched
    overtakers = sum(
        life.submitted > gang.submitted and bool(life.starts) and life.starts[0] < started
        for life in replay.lives.values()
    )
    first = next((one.start for one in gang.promises if one.start), 0)
    if first and started > first:
        raise SystemExit(f"gate: it was promised to start at {first}, and started at {started}")
    longest = max(job.limit for job in jobs)
    return Outcome(
        started - gang.submitted if gang.starts else 0,
        overtakers,
        first - gang.submitted if first else 0,
        PROTECT_AFTER + longest if longest else 0,
        replay.utilisation,
    )


class Variant(NamedTuple):
    """What is compared."""

    title: str
    settings: Settings
    limit: Callable[[Random, Duration], Duration]


VARIANTS = (
    Variant("no protection", Settings(protect_after=0), nothing),
    Variant("protected, no limits", Settings(), nothing),
    Variant("protected, limits", Settings(), twofold),
    Variant("Backfill, limits", Settings(policy=Policy.BACKFILL), twofold),
)


def main() -> None:
    """One line per variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(1, parser.parse_args().seeds + 1)
    print(
        f"{'':22}{'started':>8}{'wait':>7}{'overtaken by':>14}"
        f"{'promised':>10}{'bound':>7}{'use':>7}"
    )
    for variant in VARIANTS:
        of = [play(stream(Random(seed), variant.limit), variant.settings) for seed in seeds]
        started = [one for one in of if one.wait]
        print(
            f"{variant.title:22}{len(started):>5}/{len(of)}"
            f"{_minutes(max((one.wait for one in started), default=0)):>7}"
            f"{max(one.overtakers for one in of):>14}"
            f"{_minutes(max(one.promised for one in of)):>10}"
            f"{_minutes(max(one.bound for one in of)):>7}"
            f"{mean(one.utilisation for one in of):>7.3f}"
        )


def _minutes(time: Duration) -> str:
    return f"{time / MINUTE:.0f}" if time else "-"


if __name__ == "__main__":
    main()
