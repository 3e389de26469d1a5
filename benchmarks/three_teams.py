"""A week of three teams that ask for more than there is: what do reclaim and preemption cost?

64 nodes of 8 CPUs, and a quota tree with half of them for ``day``, 30 % for ``steady`` and 20 % for
``bursts``; all may borrow. ``day`` submits what fills a third of the cluster, within the eight
working hours of each day, ``steady`` 60 % evenly, and ``bursts`` a quarter, within one hour of
every six. So the two others live on what ``day`` does not use by night, and it wants it back in the
morning. Jobs are gangs of 1 to 8 pods of 1 to 4 CPUs that run from 5 minutes to 2 hours
(log-uniform); one in ten has a higher priority.

    python -m benchmarks.three_teams [--jobs 10000] [--days 7]

``due`` is what a team gets of what it could have within its share: the least of its share and of
what it asks for, over time. ``lost`` is the work that evictions threw away, of all that was done.
Each of the four variants takes one to four CPU minutes; the table is in docs/use/reservations.md.
The gate: the books agree.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from itertools import product
from math import exp, log
from random import Random

from benchmarks.builders import cores, machines
from benchmarks.replay import COUNTED, DAY, HOUR, Job, Meter, Replay
from mcad.core.state.quota_records import QuotaChild, QuotaSubtree
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Duration, Instant
from tests.core.builders import START

NODES, CPUS = 64, 8
SHARES = {"day": 0.5, "steady": 0.3, "bursts": 0.2}
LOADS = {"day": 0.33, "steady": 0.6, "bursts": 0.25}
SHUTDOWN = 30 * SECOND
URGENT = 10
"""The priority of one in ten."""


class DueMeter(Meter):
    """Measures besides what each team could have had within its share."""

    def __init__(self, shares: dict[str, int]) -> None:
        super().__init__()
        self._shares = shares
        self._from = START
        self.due: Counter[str] = Counter()
        self.got: Counter[str] = Counter()

    def advance(self, now: Instant) -> None:
        for team, share in self._shares.items():
            due = min(share, self.asked[team])
            self.due[team] += due * (now - self._from)
            self.got[team] += min(due, self.using[team]) * (now - self._from)
        self._from = now
        super().advance(now)


def tree(capacity: int) -> list[QuotaSubtree]:
    """A root of the whole cluster with the teams under it."""

    def node(name: str, share: float) -> QuotaChild:
        return QuotaChild(name, ((COUNTED, round(share * capacity)),))

    root, teams = (node("root", 1),), tuple(node(*item) for item in SHARES.items())
    return [
        QuotaSubtree("root", "quota", "root", 0, "teams", "", root),
        QuotaSubtree("teams", "quota", "teams", 0, "teams", "root", teams),
    ]


def week(count: int, days: int, seed: int, nodes: int = NODES) -> list[Job]:
    """What the teams submit, each its part of the load."""
    rng = Random(seed)
    return [
        job
        for team, load in LOADS.items()
        for job in _of(team, round(count * load / sum(LOADS.values())), days, rng, load * nodes)
    ]


def _of(team: str, count: int, days: int, rng: Random, nodes: float) -> Iterable[Job]:
    sizes = [(rng.randint(1, 8), rng.choice((1, 2, 4))) for _ in range(count)]
    runs = [exp(rng.uniform(log(5), log(120))) for _ in range(count)]
    work = sum(pods * cpus * run for (pods, cpus), run in zip(sizes, runs, strict=True))
    stretch = nodes * CPUS * days * DAY / work
    times = sorted(_arrival(team, days, rng) for _ in range(count))
    for number, (at, (pods, cpus), run) in enumerate(zip(times, sizes, runs, strict=True)):
        priority = URGENT if rng.random() < 0.1 else 0
        name = f"{team}-{number:05}"
        yield Job(name, at, pods, cores(cpus), round(run * stretch), priority=priority, team=team)


def _arrival(team: str, days: int, rng: Random) -> Duration:
    match team:
        case "day":
            return rng.randrange(days) * DAY + 9 * HOUR + rng.randrange(8 * HOUR)
        case "bursts":
            return rng.randrange(4 * days) * 6 * HOUR + rng.randrange(HOUR)
    return rng.randrange(days * DAY)


def play(jobs: list[Job], days: int, settings: Settings, nodes: int = NODES) -> Replay:
    """One week by these settings, with the gate."""
    capacity = nodes * CPUS * 1000
    meter = DueMeter({team: round(share * capacity) for team, share in SHARES.items()})
    replay = Replay(
        jobs, machines(nodes, CPUS), settings, quotas=tree(capacity), shutdown=SHUTDOWN, meter=meter
    )
    replay.run(days * DAY)
    replay.check()
    return replay


def main() -> None:
    """One line per variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=7)
    options = parser.parse_args()
    jobs = week(options.jobs, options.days, 1)
    print(
        f"{'reclaim':8}{'preemption':11}{'started':>8}{'evicted':>8}{'each':>7}{'lost':>7}{'use':>7}"
        + "".join(f"{team:>8}{'due':>6}" for team in SHARES)
        + f"{'CPU s':>7}"
    )
    for reclaim, preemption in product((False, True), (False, True)):
        begun = time.process_time()
        replay = play(jobs, options.days, Settings(reclaim=reclaim, preemption=preemption))
        print(_row(replay, reclaim, preemption), f"{time.process_time() - begun:>6.0f}", flush=True)


def _row(replay: Replay, reclaim: bool, preemption: bool) -> str:
    lives = list(replay.lives.values())
    started = sum(life.dispatches for life in lives)
    evicted = sum(len(life.evictions) for life in lives)
    lost = sum(life.lost * dict(life.job.request)[COUNTED] for life in lives)
    meter = replay.meter
    assert isinstance(meter, DueMeter)
    return (
        f"{reclaim!s:8}{preemption!s:11}{started:>8}{evicted:>8}"
        f"{evicted / started:>7.3f}{lost / meter.sums.total():>7.3f}{replay.utilisation:>7.3f}"
        + "".join(
            f"{replay.share(team):>8.3f}{meter.got[team] / meter.due[team]:>6.2f}"
            for team in SHARES
        )
    )


if __name__ == "__main__":
    main()
