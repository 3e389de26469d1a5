"""A day of 10,000 running AppWrappers, of which one changes every second.

    python -m benchmarks.bench_core_life [--appwrappers 10000] [--seconds 86400]

The core alone, on virtual time. Each change is one of what happens to what runs: a pod is replaced,
fails and is replaced in time, or a Job's pod has succeeded and the next one starts. None of them
ends an attempt, so nothing has to be written but the conditions and pod counts of the one that
changed, at most half a minute later. Half of them are of either dialect.

Measured on 2 cores (busy), 10,000 AppWrappers of 4 pods, 1,000 nodes:

                                        1 h     24 h     72 h
    CPU per change, ms                 0.24     0.25     0.25
    status writes about the changed     2.2      2.2      2.2
    status writes about others            0        0        0
    memory (101 at the beginning), MB   102      110      112
"""

from __future__ import annotations

import argparse
import time
from random import Random

from benchmarks.builders import Fed, item, machines, own_child, own_pod, with_attempt
from benchmarks.measuring import rss_mb
from mcad.core.events import AppWrapperSeen, ChildSeen, Decide, NodeSeen, PodGone, PodSeen
from mcad.core.state.bounds import POD_COUNTS_INTERVAL
from mcad.core.state.model import Dialect, Pod, PodPhase, PodSet, Workload
from mcad.core.state.records import replace
from mcad.core.state.run_policy import TOLERANT
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.builders import START, appwrapper

PODS = 4
REQUEST = (("cpu", 1000), ("pods", 1))
HOUR = 3600
DELAY = POD_COUNTS_INTERVAL // SECOND + 1
"""Seconds within which a change is told; a write about one that changed earlier tells nothing."""


class Cluster(Fed):
    """Running AppWrappers, told to a dispatcher as the API server would."""

    def __init__(self, count: int) -> None:
        super().__init__(Settings())
        self.random = Random(1)
        self.works: list[Workload] = []
        self.pods: list[list[Pod]] = []
        self._serial = 0
        self.nodes = machines(count // 10, 48)
        for node in self.nodes:
            self.feed(NodeSeen(node))
        for number in range(count):
            self._begin(number)
        self.feed(Decide())

    def _begin(self, number: int) -> None:
        name = f"aw-{number}"
        work = appwrapper(
            name,
            [item("Deployment", name)],
            [PodSet(0, 0, "template.spec.template", PODS, REQUEST)],
            dialect=Dialect.V1BETA2 if number % 2 else Dialect.V1BETA1,
            tolerance=TOLERANT,
        )
        self.works.append(work)
        seen = with_attempt(work, START - HOUR * SECOND, START - SECOND)
        self.feed(AppWrapperSeen(seen, listed=True))
        self.feed(ChildSeen(own_child(work)))
        self.pods.append([self._pod(number) for _ in range(PODS)])

    def _pod(self, number: int) -> Pod:
        self._serial += 1
        node = self.nodes[number // 10].name
        pod = own_pod(self.works[number], f"aw-{number}-{self._serial}", node)
        self.feed(PodSeen(pod))
        return pod

    def change(self) -> str:
        """A pod ends, and its controller makes another one; returns its AppWrapper."""
        number = self.random.randrange(len(self.pods))
        pods = self.pods[number]
        old = pods.pop(self.random.randrange(PODS))
        if self.random.random() < 0.5:
            self.feed(PodSeen(replace(old, phase=PodPhase.FAILED)))
            self.feed(Decide())
        self.feed(PodGone(old.uid))
        self.feed(Decide())
        pods.append(self._pod(number))
        self.feed(Decide())
        return self.works[number].uid


def main() -> None:
    """A day, hour by hour."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=24 * HOUR)
    args = parser.parse_args()
    cluster = Cluster(args.appwrappers)
    print(f"{args.appwrappers} run: {len(cluster.written)} writes, {rss_mb():.0f} MB")
    others = about = 0
    changed: dict[str, int] = {}  # when each was the one
    began = time.process_time()
    for second in range(1, args.seconds + 1):
        cluster.now += SECOND
        cluster.written.clear()
        changed[cluster.change()] = second
        told = sum(second - changed.get(uid, -DELAY) <= DELAY for uid in cluster.written)
        about += told
        others += len(cluster.written) - told
        if second in {HOUR, args.seconds}:
            spent = 1000 * (time.process_time() - began) / second
            print(
                f"after {second // HOUR} h: {spent:.3f} ms of CPU per change, writes about the one "
                f"that changed {about / second:.2f}, about others {others}, {rss_mb():.0f} MB"
            )


if __name__ == "__main__":
    main()
