"""CPU time of a start time estimate in a long line.

    python -m benchmarks.bench_core_start_times [--nodes 1000] [--shapes 1000] [--queued 100000]

The core alone: ten AppWrappers with declared limits run on each node, and the line is full of
others with limits, of so many shapes. Garbage collection is as in ``mcad run`` after its start:
off. One estimate is all that ``mcad describe`` costs the core for a waiting AppWrapper, and the
last row is ``mcad queue -o wide``, or ``?starts=true``: the first hundred in line.

On two cores with a test run besides, milliseconds, least / middle / most:

    number 1                    55.1 /    66.8 /    82.6 ms   1 of 1 are told when
    number 50                   74.7 /   101.5 /   124.1 ms   0 of 1 are told when
    number 100                  73.4 /    78.8 /    89.2 ms   0 of 1 are told when
    all hundred                 78.0 /    83.9 /    99.4 ms   5 of 100 are told when

The length of the line makes no difference. Most of the time determines when each running AppWrapper
ends, which also takes 20,000 of the 30,000 steps: so only the first of a long line get an estimate.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterable
from functools import partial
from random import Random

from benchmarks.builders import cores, machines
from benchmarks.measuring import cpu_ms, spread
from benchmarks.replay import MINUTE, Job, Replay
from mcad.core.cluster import Cluster
from mcad.core.dispatcher import Dispatcher
from mcad.core.state.bounds import START_TIMES_AHEAD
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import StartTime, start_times

CORES = 20
RUNNING_PER_NODE = 10
REPEATS = 15


def jobs(nodes: int, shapes: int, queued: int, unlimited: int) -> list[Job]:
    """Running AppWrappers, two CPUs each, and those in line: one to eight pods each. Of each
    hundred ``unlimited`` ones declare no limit."""
    random = Random(1)
    made = []
    for number in range(nodes * RUNNING_PER_NODE):
        limit = random.randrange(10, 2000) * MINUTE
        told = 0 if number % 100 < unlimited else limit
        made.append(Job(f"r{number}", 0, 1, cores(2), limit, told))
    for number in range(queued):
        random.seed(number % shapes)
        amount = (("cpu", random.randrange(1_000, 4_000)), ("pods", 1))
        pods, limit = random.randrange(1, 9), 2 * random.randrange(5, 60) * MINUTE
        told = 0 if number % 100 < unlimited else limit
        made.append(Job(f"w{number}", 2 * SECOND, pods, amount, limit, told))
    return made


def ask(cluster: Cluster, line: list[str], places: Iterable[int]) -> dict[str, StartTime]:
    """When those at these places of the line start, from 0; both in the order of the places."""
    return start_times(cluster, line, [line[place] for place in places])


def measure(name: str, question: Callable[[], object], told: str) -> None:
    """One line of the table."""
    least, middle, most = spread([cpu_ms(question) for _ in range(REPEATS)])
    print(f"{name:24} {least:7.1f} / {middle:7.1f} / {most:7.1f} ms   {told}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--shapes", type=int, default=1000)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--unlimited", type=int, default=0, help="percent of all without a limit")
    given = parser.parse_args()
    dispatcher = Dispatcher(Settings(protect_after=0))
    made = jobs(given.nodes, given.shapes, given.queued, given.unlimited)
    replay = Replay(made, machines(given.nodes, CORES), brain=dispatcher)
    replay.run(10 * SECOND)
    cluster = dispatcher.cluster
    line = Picture(cluster, replay.now).line(START_TIMES_AHEAD)
    gc.collect()
    gc.disable()
    print(f"{len(cluster.waiting.queue)} in line, {len(list(cluster.capacity.gangs.uids()))} run")
    for places in ((0,), (49,), (START_TIMES_AHEAD - 1,), range(START_TIMES_AHEAD)):
        name = f"number {places[0] + 1}" if len(places) == 1 else "all hundred"
        told = sum(bool(one.latest) for one in ask(cluster, line, places).values())
        measure(name, partial(ask, cluster, line, places), f"{told} of {len(places)} are told when")


if __name__ == "__main__":
    main()
