"""CPU time of a preemption plan: 10,000 candidates on 1,000 nodes, several kinds of preemptor.

    python -m benchmarks.bench_core_preemption [--nodes 1000] [--running 10000]

The core alone, garbage collection off as in ``mcad run`` after its start. A plan is all that a
waiting AppWrapper costs in a search: the candidates in order; the victims among them; and the nodes
of the preemptor then. Before any figure a hundred victims of every plan are tried: all are needed.

Measured on 29 November on two cores with other work, milliseconds, least / middle / most:

    one whole node                      10 leave   45.3 /   48.9 /   51.1
    50 whole nodes                     500 leave   60.2 /   61.6 /   67.0
    500 pods of half a node           2500 leave   36.6 /   38.4 /   40.1
    everything                       10000 leave   82.9 /   88.8 /  101.9
    a head and 100 workers             207 leave   27.5 /   28.6 /   32.8
    three sets of 20                   240 leave   23.0 /   23.2 /   25.3
    50 whole nodes, mixed sizes run    500 leave   61.4 /   62.2 /   64.0
    three sets of 20, mixed sizes       43 leave   21.5 /   22.9 /   25.2
    a share of 1,000 leaves              9 leave   0.7 /    0.7 /    1.5
    the same by two large pods           9 leave   10.7 /   11.0 /   14.9
    one node more than there are         0 leave   0.1 /    0.1 /    0.5
    all, but half are above it           0 leave   28.3 /   29.2 /   31.8
    no lower priority                    0 leave   0.5 /    0.7 /    2.0
    the first plan after a start                   62.6
    to list what runs                              7.7 /    8.9 /   16.4

What each running AppWrapper has on nodes is kept from plan to plan until it changes.
"""

from __future__ import annotations

import argparse
import gc
from random import Random
from typing import NamedTuple

from benchmarks.builders import Fed, item, machines, own_child, own_pod, with_attempt
from benchmarks.measuring import cpu_ms, spread
from mcad.core.events import AppWrapperSeen, ChildSeen, Decide, NodeSeen, PodSeen, QuotaSeen
from mcad.core.preemption import search
from mcad.core.reservations import release_set
from mcad.core.state.model import PodSet, Workload
from mcad.core.state.quota_records import QuotaChild, QuotaSubtree
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.builders import START, appwrapper

TREE = "teams"
CORES, MEMORY = 96, 768 << 30
LEAVES = 1000
REPEATS = 15


class Kind(NamedTuple):
    """A preemptor: its pod sets, whether there is a quota tree, whether it can be had at all, and
    whether running AppWrappers are of many sizes."""

    name: str
    sets: tuple[PodSet, ...]
    priority: int = 9
    trees: bool = False
    impossible: bool = False
    mixed: bool = False


def pods(item: int, replicas: int, cores: int) -> PodSet:
    request = (("cpu", cores * 1000), ("memory", cores * 8 << 30), ("pods", 1))
    return PodSet(item, 0, f"items[{item}]", replicas, request)


def kinds(nodes: int) -> list[Kind]:
    """What may be asked for."""
    return [
        Kind("one whole node", (pods(0, 1, 96),)),
        Kind("50 whole nodes", (pods(0, 50, 96),)),
        Kind("500 pods of half a node", (pods(0, 500, 48),)),
        Kind("everything", (pods(0, nodes, 96),)),
        Kind("a head and 100 workers", (pods(0, 1, 64), pods(1, 100, 24))),
        Kind("three sets of 20", _three_sets()),
        Kind("50 whole nodes, mixed sizes run", (pods(0, 50, 96),), mixed=True),
        Kind("three sets of 20, mixed sizes", _three_sets(), mixed=True),
        Kind("a share of 1,000 leaves", (pods(0, 40, 2),), 0, trees=True),
        Kind("the same by two large pods", (pods(0, 2, 40),), 0, trees=True),
        Kind("one node more than there are", (pods(0, nodes + 1, 96),), impossible=True),
        Kind("all, but half are above it", (pods(0, nodes, 96),), 4, impossible=True),
        Kind("no lower priority", (pods(0, 1, 96),), 0, impossible=True),
    ]


def _three_sets() -> tuple[PodSet, ...]:
    return tuple(pods(i, 20, 32 + 8 * i) for i in range(3))


def workload(number: int, sets: tuple[PodSet, ...], priority: int, leaf: int) -> Workload:
    items = [item("Pod", f"aw-{number}-{one.item}", tells_end=True) for one in sets]
    quota = ((TREE, f"leaf-{leaf}"),)
    return appwrapper(f"{number}", items, sets, priority=priority, quota=quota)


def forest(cores: int) -> list[QuotaSubtree]:
    """A root that is used up; ten divisions with a hundred leaves each."""

    def child(name: str, cpu: int) -> QuotaChild:
        return QuotaChild(name, (("cpu", cpu),), False)

    made = [QuotaSubtree("top", "quota", "top", 0, TREE, "", (child("root", cores),))]
    divisions = tuple(child(f"division-{n}", cores // 10) for n in range(10))
    made.append(QuotaSubtree("divisions", "quota", "divisions", 0, TREE, "root", divisions))
    for n in range(10):
        below = tuple(child(f"leaf-{i}", cores // LEAVES) for i in range(n, LEAVES, 10))
        name = f"division-{n}"
        made.append(QuotaSubtree(name, "quota", name, 0, TREE, name, below))
    return made


class Cluster(Fed):
    """A dispatcher among whose nodes everything runs, in random order."""

    def __init__(self, nodes: int, running: int, kind: Kind) -> None:
        super().__init__(Settings(preemption=True, min_run_time=0, placement_timeout=0))
        rng, places = Random(1), machines(nodes, CORES, memory=MEMORY)
        for node in places:
            self.feed(NodeSeen(node))
        cores = CORES * nodes // running
        for one in forest(1000 * cores * running) if kind.trees else ():
            self.feed(QuotaSeen(one))
        for number in range(running):
            leaf = 1 + rng.randrange(LEAVES - 1)  # leaf 0 is the preemptor's, and lends its share
            priority = rng.randrange(8) if kind.priority else 0
            size = 1 + rng.randrange(2 * cores - 1) if kind.mixed else cores
            work = workload(number, (pods(0, 1, size),), priority, leaf)
            self._runs(work, places[number % nodes].name, rng.randrange(10**6))
        while not self.dispatcher.cluster.recovered:  # a pass takes up some of them
            self.feed(Decide())
        self.preemptor = workload(running, kind.sets, kind.priority, 0)
        self.feed(AppWrapperSeen(self.preemptor))
        self.dispatcher.cluster.capacity.place_unplaced()
        self.survey()

    def survey(self) -> None:
        """List running AppWrappers, once for all plans of a search."""
        self.running = search.survey(self.dispatcher.cluster)

    def _runs(self, work: Workload, name: str, age: int) -> None:
        began = START - SECOND - age
        self.feed(AppWrapperSeen(with_attempt(work, began, began), listed=True))
        self.feed(ChildSeen(own_child(work)))
        self.feed(PodSeen(own_pod(work, work.name, name)))

    def plan(self) -> search.Sought:
        """One plan, from nothing, as a look makes it."""
        cluster = self.dispatcher.cluster
        entry = cluster.entries[self.preemptor.uid]
        return search.plan(cluster, entry, self.running)

    def check(self, kind: Kind) -> int:
        """It is a plan, and no victim could be spared; returns how many there are."""
        found = self.plan()
        assert (found.releasing is None) is kind.impossible, kind.name
        if found.releasing is None:
            return 0
        cluster = self.dispatcher.cluster
        entry = cluster.entries[self.preemptor.uid]
        snapshot = release_set.what_if(cluster, entry)
        for uid, _ in found.victims:
            snapshot.remove(uid)
        assert snapshot.fits()
        for uid, _ in found.victims[:: 1 + len(found.victims) // 100]:
            snapshot.restore(uid)
            # With several sets, the work for finding that out may have been spent.
            assert len(kind.sets) > 1 or not snapshot.fits(), f"{kind.name}: {uid} could be spared"
            snapshot.remove(uid)
        return len(found.victims)


def measure(nodes: int, running: int, kind: Kind) -> None:
    made = Cluster(nodes, running, kind)
    victims = made.check(kind)
    gc.collect()
    gc.disable()
    told = _told([cpu_ms(made.plan) for _ in range(REPEATS)])
    gc.enable()
    steps = made.plan().steps
    print(f"{kind.name:32} {victims:6} leave  {told}  {steps:7} steps", flush=True)


def measure_beside(nodes: int, running: int) -> None:
    """What comes before a plan, now and then."""
    made = Cluster(nodes, running, kinds(nodes)[0])
    gc.collect()
    gc.disable()
    print(f"{'the first plan after a start':45}  {cpu_ms(made.plan):6.1f} ms")
    print(f"{'to list what runs':45}  {_told([cpu_ms(made.survey) for _ in range(REPEATS)])}")
    gc.enable()


def _told(times: list[float]) -> str:
    least, middle, most = spread(times)
    return f"{least:6.1f} / {middle:6.1f} / {most:6.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--running", type=int, default=10_000)
    options = parser.parse_args()
    for kind in kinds(options.nodes):
        measure(options.nodes, options.running, kind)
    measure_beside(options.nodes, options.running)


if __name__ == "__main__":
    main()
