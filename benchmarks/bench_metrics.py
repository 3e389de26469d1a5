"""CPU time and size of a page of metrics: 10,000 AppWrappers, 1,000 leaves of one quota tree.

    python -m benchmarks.bench_metrics [--appwrappers 10000] [--leaves 1000] [--namespaces 100]

A third of them run, the others wait; every leaf has some of both. The page is made in pieces,
between which the dispatcher goes on: the longest one is how much later a step may begin.

Measured on two cores with little else: 17,258 series, 1.25 MB; a page 124 / 129 / 132 ms (least,
middle, most), its longest piece 10 ms. With 300 AppWrappers and 5 leaves: 1,600 series, 11 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections import Counter
from time import perf_counter, process_time

from benchmarks.bench_core_quota import RUNS, forest, workload
from benchmarks.builders import Fed, machines, with_attempt
from benchmarks.measuring import spread
from mcad.controller.metrics.leader import Metrics
from mcad.controller.metrics.replica import ReplicaMetrics
from mcad.core.commands import Command
from mcad.core.events import AppWrapperGone, AppWrapperSeen, Decide, Event, NodeSeen, QuotaSeen
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Instant
from mcad.kube.clock import RealClock
from mcad.kube.recorder import Counts
from tests.core.builders import START

TREE = "teams"
PAGES = 10


class Cluster(Fed):
    """A dispatcher whose steps are counted; of three AppWrappers one runs."""

    def __init__(self, appwrappers: int, leaves: int, namespaces: int) -> None:
        super().__init__(Settings())
        self.metrics = Metrics(self.dispatcher.cluster, {}, {}, RealClock(), Counts())
        self.metrics.show_also(ReplicaMetrics().registry)
        self._step, self.dispatcher.step = self.dispatcher.step, self.counted
        running = sum(number // leaves % 3 == 0 for number in range(appwrappers))
        for node in machines(1000, 10**4, memory=2**50, pods=10**6):
            self.feed(NodeSeen(node))
        for one in forest(leaves, running * RUNS):
            if one.tree == TREE:
                self.feed(QuotaSeen(one))
        for number in range(appwrappers):
            leaf, runs = number % leaves, number // leaves % 3 == 0
            work = workload(number, leaf, RUNS)
            quota = tuple(pair for pair in work.quota if pair[0] == TREE)
            name = f"team-{leaf % namespaces}"
            work = replace(work, quota=quota, namespace=name, priority=number % 5)
            if runs:
                work = with_attempt(work, START - SECOND, START - SECOND)
            self.feed(AppWrapperSeen(work, listed=True))
        self.decide()
        for number in range(0, appwrappers, 7):  # some end and others start, on every leaf
            self.feed(AppWrapperGone(f"uid-{number}"))
        self.decide()

    def counted(self, event: Event, now: Instant) -> tuple[Command, ...]:
        commands = self._step(event, now)
        self.metrics.count_step(commands)
        return commands

    def decide(self) -> None:
        cluster = self.dispatcher.cluster
        self.feed(Decide())
        while cluster.walk.resume_at is not None or cluster.agenda.to_report:
            self.feed(Decide())


async def page(metrics: Metrics) -> tuple[bytes, float, float]:
    """A page, its CPU time, and its longest piece, in milliseconds."""
    longest, done = 0.0, False

    async def others() -> None:
        nonlocal longest
        while not done:
            begun = perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, perf_counter() - begun)

    beside = asyncio.ensure_future(others())
    await asyncio.sleep(0)
    begun = process_time()
    made = await metrics.page()
    spent = process_time() - begun
    done = True
    await beside
    return made, spent * 1e3, longest * 1e3


async def measure(metrics: Metrics) -> None:
    """Print the figures."""
    pages = [await page(metrics) for _ in range(PAGES)]
    text = pages[-1][0].decode()
    series = [line for line in text.splitlines() if not line.startswith("#")]
    print(f"{len(series)} series, {len(text) / 1e6:.2f} MB")
    print("CPU ms of a page {:.1f} / {:.1f} / {:.1f}".format(*spread([one[1] for one in pages])))
    print("longest piece ms {:.1f} / {:.1f} / {:.1f}".format(*spread([one[2] for one in pages])))
    by_name = Counter(line.partition("{")[0].split(" ")[0] for line in series)
    for name, count in by_name.most_common(12):
        print(f"{count:7} {name}")


def main() -> None:
    """Build it and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--leaves", type=int, default=1_000)
    parser.add_argument("--namespaces", type=int, default=100)
    args = parser.parse_args()
    cluster = Cluster(args.appwrappers, args.leaves, args.namespaces)
    gc.collect()
    gc.freeze()
    gc.disable()
    asyncio.run(measure(cluster.metrics))


if __name__ == "__main__":
    main()
