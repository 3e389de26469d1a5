"""Submissions of the published shape of batch traces, drawn from a seed.

What logs of parallel machines have in common (Parallel Workloads Archive; U. Lublin, D. Feitelson,
"The workload on parallel supercomputers: modeling the characteristics of rigid jobs", JPDC 63(11),
2003; A. Downey, "A parallel workload model and its implications for processor allocation", 1997;
A. Mu'alem, D. Feitelson, "Utilization, predictability, workloads, and user runtime estimates", TPDS
12(6), 2001; D. Tsafrir, Y. Etsion, D. Feitelson, "Modeling user runtime estimates", JSSPP 2005):

- sizes in CPUs: 24 % are serial and 58 % a power of two; log2 of the size is uniform in two
  stages, 86 % of them below 2.5 less than that of the machine (Lublin and Feitelson's parameters);
- run times: log-uniform (Downey), from a minute to half a day before they are stretched;
- limits: the run time is a uniform share of what its user asks for (Mu'alem and Feitelson), which
  is a round time (Tsafrir et al.: some twenty values are nearly all), and a few jobs reach theirs;
- arrivals: three times as many by day as by night, half as many at the weekend.

The load is made what was asked for by stretching all run times. Logs have about 1,200 such jobs a
week whatever the machine; with many more, the run times are so much shorter.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import exp, log, log2
from random import Random
from typing import NamedTuple

from benchmarks.builders import cores
from benchmarks.replay import HOUR, MINUTE, Job
from mcad.core.state.units import SECOND, Duration

SERIAL, POWER_OF_TWO = 0.244, 0.576
SMALL, LEAST, BELOW = 0.86, 0.8, 2.5
"""Lublin and Feitelson's uProb, uLow, and uHi - uMed."""

SHORTEST_S, LONGEST_S = 60, 12 * 3600
OVERRUN = 0.05
"""The share of jobs that would run for longer than they have asked for."""

ROUND_MIN = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
ROUND = tuple(
    minutes * MINUTE for minutes in (*ROUND_MIN, 1440, 2160, 2880, 4320, 5760, 7200, 10080)
)
HOURLY = (8, 7, 6, 5, 5, 5, 6, 8, 12, 15, 17, 18, 17, 17, 18, 18, 17, 16, 14, 12, 11, 10, 10, 9)
WEEKEND = 0.5
"""Arrivals by the hour of a day; a trace begins on a Monday at midnight."""


class Shape(NamedTuple):
    """How many jobs come within ``span`` to a machine of so many nodes of so many CPUs.

    ``load`` is the share of the machine that they would use if it could be packed without gaps.
    ``limited`` is the share of jobs that declare a limit.
    """

    jobs: int
    span: Duration
    nodes: int
    load: float
    cpus: int = 8
    limited: float = 1.0


def batch(shape: Shape, seed: int) -> list[Job]:
    """The jobs in the order in which they come."""
    rng = Random(seed)
    capacity = shape.nodes * shape.cpus
    sizes = [size(rng, capacity) for _ in range(shape.jobs)]
    runs = [exp(rng.uniform(log(SHORTEST_S), log(LONGEST_S))) for _ in range(shape.jobs)]
    work = sum(a * b for a, b in zip(sizes, runs, strict=True)) * SECOND
    stretch = shape.load * capacity * shape.span / work
    times = arrivals(rng, shape.jobs, shape.span)
    jobs = []
    for number, (at, cpus, long) in enumerate(zip(times, sizes, runs, strict=True)):
        run = max(SECOND, round(long * stretch * SECOND))
        limit = _limit(rng, run) if rng.random() < shape.limited else 0
        job = _job(rng, f"job-{number:06}", cpus, shape.cpus)
        jobs.append(job._replace(at=at, run=run, limit=limit))
    return jobs


def size(rng: Random, capacity: int) -> int:
    """How many CPUs one asks for."""
    kind, high = rng.random(), log2(capacity)
    if kind < SERIAL:
        return 1
    middle = max(LEAST, high - BELOW)
    small = rng.random() < SMALL
    power = rng.uniform(LEAST, middle) if small else rng.uniform(middle, high)
    drawn = 2 ** round(power) if kind < SERIAL + POWER_OF_TWO else round(2**power)
    return max(1, min(capacity, drawn))


def arrivals(rng: Random, count: int, span: Duration) -> list[Duration]:
    """When they come: by hours of day and night, and evenly within an hour."""
    hours = range(max(1, span // HOUR))
    weights = list(
        accumulate(HOURLY[h % 24] * (WEEKEND if h // 24 % 7 >= 5 else 1.0) for h in hours)
    )
    drawn = rng.choices(hours, cum_weights=weights, k=count)
    return sorted(hour * HOUR + rng.randrange(min(HOUR, span)) for hour in drawn)


def _job(rng: Random, name: str, cpus: int, most: int) -> Job:
    """Its pods; what is large has large ones."""
    fits = [each for each in (1, 2, 4, 8, 16, 32) if each <= most and cpus % each == 0]
    each = rng.choice(fits[-2:] if cpus >= 4 * most else fits)
    return Job(name, 0, cpus // each, cores(each), 0)


def _limit(rng: Random, run: Duration) -> Duration:
    """What its user asks for."""
    over = rng.random() < OVERRUN
    wish = run * rng.uniform(0.5, 1.0) if over else run / (1.0 - rng.random())
    return ROUND[min(bisect_left(ROUND, wish), len(ROUND) - 1)]
