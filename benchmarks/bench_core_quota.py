"""CPU time of deciding by quota: 100,000 queued over 1,000 leaves of three trees, 10,000 running.

    python -m benchmarks.bench_core_quota [--queued 100000] [--leaves 1000] [--running 10000]

The core alone, garbage collection off as in ``mcad run`` after its start. Each tree is four levels
deep; some of its nodes are hard, the leaves share one root that is used up, and every AppWrapper is
charged in all three. Before any figure the books are checked, and no waiting AppWrapper may fit.

Measured on 29 November on two cores with other work, milliseconds, least / middle / most; 63,207
classes:

    a release that admits nothing                 0.17 / 0.19 / 0.78
    releases, per dispatch                         4.1 / 7.0 / 573
    the root of a tree gets much more, per dispatch           9.2
    the root of a tree gets a little more         0.16 / 252 / 351 (all below it are lined up)
    the root of a tree gets less                   221 / 241 / 266
    a second of which all three trees tell         132 / 171 / 330
    a department with ten leaves moves             258 / 276 / 384
    an arrival                                    0.06

A second with reports includes a search for evictions: which AppWrappers ask within their share.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from random import Random

from benchmarks.builders import Fed, item, machines, with_attempt
from benchmarks.measuring import cpu_ms, spread
from mcad.core.events import AppWrapperGone, AppWrapperSeen, Decide, NodeSeen, QuotaSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import PodSet, Workload
from mcad.core.state.quota_records import Designation, QuotaChild, QuotaSubtree
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.builders import START, appwrapper

TREES = ("budget", "cores", "teams")
SHAPES = 100
LEAST, TINY, RUNS = 1000, 1, 500  # milli-CPU: waiting at least, some that run, others
TINY_ONES = 200


def forest(leaves: int, root: int) -> list[QuotaSubtree]:
    """Three trees of four levels: a root, ten divisions, a hundred departments, the leaves."""
    made = []
    for tree in TREES:
        levels: dict[str, list[QuotaChild]] = {"": [child("root", root)]}
        for n in range(10):
            levels.setdefault("root", []).append(child(f"division-{n}", root // 5, n % 3 == 0))
        for n in range(100):
            levels.setdefault(f"division-{n % 10}", []).append(child(f"department-{n}", root // 50))
        for n in range(leaves):
            share, hard = root // leaves, n % 4 == 0
            levels.setdefault(f"department-{n % 100}", []).append(child(f"leaf-{n}", share, hard))
        made += [
            QuotaSubtree(
                f"{tree}-{parent}", "quota", parent or "top", 0, tree, parent, tuple(below)
            )
            for parent, below in levels.items()
        ]
    return made


def child(name: str, cpu: int, hard: bool = False) -> QuotaChild:
    return QuotaChild(name, (("cpu", cpu), ("memory", cpu << 30)), hard)


def workload(number: int, leaf: int, milli: int) -> Workload:
    request = (("cpu", milli), ("memory", milli << 10), ("pods", 1))
    pod = item("Pod", f"aw-{number}", tells_end=True)
    sets = [PodSet(0, 0, "template", 1, request)]
    return appwrapper(f"{number}", [pod], sets, quota=tuple((t, f"leaf-{leaf}") for t in TREES))


class Cluster(Fed):
    """A dispatcher with trees, of whose leaves some run and the others wait."""

    def __init__(self, queued: int, leaves: int, running: int) -> None:
        super().__init__(Settings())
        self.rng = Random(1)
        for node in machines(1000, 10**4, memory=2**50, pods=10**6):
            self.feed(NodeSeen(node))
        self.root = (running - TINY_ONES) * RUNS + TINY_ONES * TINY
        self.trees = forest(leaves, self.root)
        for one in self.trees:
            self.feed(QuotaSeen(one))
        for number in range(running):
            self._runs(number, number % leaves, TINY if number < TINY_ONES else RUNS)
        began = time.process_time()
        for number in range(running, running + queued):
            milli = LEAST + 10 * self.rng.randrange(SHAPES)
            self.feed(AppWrapperSeen(workload(number, number % leaves, milli), listed=True))
        self.arrival = (time.process_time() - began) * 1e6 / queued
        began = time.process_time()
        self.settle()
        self.first = time.process_time() - began
        self.released = 100

    def _runs(self, number: int, leaf: int, milli: int) -> None:
        work = with_attempt(workload(number, leaf, milli), START - SECOND, START - SECOND)
        self.feed(AppWrapperSeen(work, listed=True))

    def settle(self) -> None:
        cluster = self.dispatcher.cluster
        self.feed(Decide())
        while cluster.walk.resume_at is not None or cluster.agenda.to_report:
            self.feed(Decide())

    def gate(self, running: int) -> None:
        """Nothing is given away twice, and no waiting AppWrapper fits."""
        cluster = self.dispatcher.cluster
        cluster.admission.check()
        assert not self.created
        assert sum(e.phase is Phase.RUNNING for e in cluster.entries.values()) == running
        for eqclass in list(cluster.waiting.queue.eqclasses())[::100]:
            path = cluster.forest.path(Designation(eqclass.first().workload.quota))
            assert cluster.forest.refusal(path, eqclass.shape.fixed) is not None

    # -- what is measured ----------------------------------------------------------------------

    def release(self, number: int) -> None:
        """An AppWrapper goes with all that it had."""
        self.feed(AppWrapperGone(f"uid-{number}"))
        self.feed(Decide())

    def tiny_is_told(self) -> None:
        """An AppWrapper is gone, a second is over, and all three trees are reported."""
        self.released -= 1
        self.feed(AppWrapperGone(f"uid-{self.released}"))
        self.now += 2 * SECOND
        for _ in TREES:
            self.feed(Decide())

    def resize(self, tree: str, more: int) -> None:
        """The root of a tree has so much more, or less."""
        (old,) = (one for one in self.trees if one.tree == tree and not one.parent)
        self.feed(QuotaSeen(replace(old, children=(child("root", self.root + more),))))
        self.feed(Decide())

    def department_moves(self, at: int) -> None:
        """A department changes its division with its ten leaves."""
        below = [one for one in self.trees if one.tree == "teams" and one.parent == "division-1"]
        beside = [one for one in self.trees if one.tree == "teams" and one.parent == "division-2"]
        moving = below[0].children[0]
        home, away = (below[0], beside[0]) if at % 2 else (beside[0], below[0])
        for one, more in ((away, ()), (home, (moving,))):
            others = tuple(each for each in one.children if each.name != moving.name)
            self.feed(QuotaSeen(replace(one, children=(*more, *others))))
        self.feed(Decide())


def measure(title: str, times: int, act: Callable[[int], object], per: Callable[[], int]) -> None:
    """CPU milliseconds, divided by how often ``per`` says that something happened."""
    spent = []
    for number in range(times):
        before = per()
        took = cpu_ms(act, number)
        spent.append(took / max(1, per() - before))
    least, middle, most = spread(spent)
    print(f"{title:48} {least:8.3f} {middle:8.3f} {most:8.3f}", flush=True)


def main() -> None:
    """Build it, check it, measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--leaves", type=int, default=1_000)
    parser.add_argument("--running", type=int, default=10_000)
    args = parser.parse_args()
    cluster = Cluster(args.queued, args.leaves, args.running)
    cluster.gate(args.running)
    gc.collect()
    gc.freeze()
    gc.disable()
    queue = cluster.dispatcher.cluster.waiting.queue
    print(
        f"{sum(1 for _ in queue.eqclasses())} classes; an arrival {cluster.arrival:.0f} us; ",
        end="",
    )
    print(f"all first verdicts {cluster.first:.1f} s")

    def once() -> int:
        return 0

    def dispatched() -> int:
        return len(cluster.created)

    tiny = iter(range(100, TINY_ONES))
    measure("a release that admits nothing", 100, lambda _: cluster.release(next(tiny)), once)
    measure("the root of a tree gets a little more", 20, lambda n: cluster.resize("teams", n), once)
    measure("the root of a tree gets less", 20, lambda n: cluster.resize("teams", -n * RUNS), once)
    cluster.resize("teams", 0)
    measure("a second of which all trees tell", 10, lambda _: cluster.tiny_is_told(), once)
    measure("a department moves", 10, cluster.department_moves, once)
    running = iter(range(TINY_ONES, args.running))
    pairs = [(next(running), next(running), next(running)) for _ in range(200)]
    before = len(cluster.created)
    measure(
        "releases, per dispatch", 200, lambda n: [cluster.release(m) for m in pairs[n]], dispatched
    )
    assert len(cluster.created) - before > 100
    for tree in TREES[:2]:
        cluster.resize(tree, 10**6)
    measure(
        "the root gets much more, per dispatch",
        1,
        lambda _: (cluster.resize("teams", 10**6), cluster.settle()),
        dispatched,
    )
    cluster.dispatcher.cluster.admission.check()


if __name__ == "__main__":
    main()
