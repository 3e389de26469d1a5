"""The longest step of the core in shapes that are hard for it. No cluster, no I/O.

    python -m benchmarks.bench_core_hostile [--only selectors] [--scale 100] [--runs 1]

5,000 nodes, 10,000 AppWrappers that run, 100,000 in line; each story feeds them, starts, and goes
on until nothing is left to be done at once. Then AppWrappers arrive, nodes gain room, nodes go,
running AppWrappers end, and a minute passes. Every ``step`` is measured by itself: process CPU
time, garbage collection off as in ``mcad run`` after its start. A line shows the longest step after
each kind of change, what it was, and how many steps took more than 50 ms.

A line says how fast the machine is now. With ``--runs 2`` each story is told twice, with the same
steps, and each step has the smaller of its times: what the machine does meanwhile rarely hits the
same step again. Steps are bounded by counted work, which ``tests/core/test_bounded_steps.py`` holds
without a clock.

``docs/inside/performance.md`` has a table of the longest steps. At most 150 passes are made after a
change (``PASSES_MAX``): what is left of the start counts among the later changes. The books are
checked at the end of shapes with at most 1,000 different ones.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from benchmarks.bench_core_preemption import forest
from benchmarks.builders import Fed, item, own_child, own_pod, with_attempt
from benchmarks.measuring import speed
from mcad.core.commands import Command, WakeAt
from mcad.core.events import (
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    Decide,
    Event,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    QuotaSeen,
)
from mcad.core.state.model import (
    Constraint,
    Node,
    PodCounts,
    PodSet,
    Requirement,
    Workload,
)
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.builders import START, appwrapper

LIMIT_MS = 50
GIB = 1 << 30
HOST = "kubernetes.io/hostname"
LABELS, VALUES = 20, 10  # of each node: k0..k19, each with one of ten values
PASSES_MAX = 150  # after one change
EVENTS = 5  # of each kind
CHECKED_MAX = 1_000  # different shapes: a check of the books looks at all nodes for each of them

Sets = tuple[PodSet, ...]


class Shape(NamedTuple):
    """A hostile shape: what stands in line, by number, and how many different ones there are."""

    name: str
    sets: Callable[[int, Random], Sets]
    distinct: int
    settings: Settings = Settings()
    queued: int = 100_000
    trees: bool = False
    counted: bool = True  # whether the pods of running AppWrappers are counted in their status


ANYWHERE = Constraint()


def pods(number: int, replicas: int, cpu: int, where: Constraint = ANYWHERE) -> PodSet:
    request = (("cpu", cpu), ("memory", cpu * GIB // 500), ("pods", 1))
    return PodSet(0, number, f"items[0].sets[{number}]", replicas, request, where)


def plain(number: int, rng: Random) -> Sets:
    return (pods(0, rng.randint(1, 8), 1000 * rng.randint(9, 16)),)


def mixed(number: int, rng: Random) -> Sets:
    sizes = [rng.randint(2, 120) * 250 for _ in range(rng.randint(2, 3))]
    return tuple(pods(n, rng.randint(1, 60), cpu) for n, cpu in enumerate(sizes))


def many_sets(number: int, rng: Random) -> Sets:
    return tuple(pods(n, rng.randint(1, 4), 50 * rng.randint(2, 160)) for n in range(64))


def sizes(number: int, rng: Random) -> Sets:
    return (pods(0, rng.randint(1, 8), 9_000 + number),)


def gangs(number: int, rng: Random) -> Sets:
    return (pods(0, 5_000, 500 + number),)


def leaves(number: int, rng: Random) -> Sets:
    return (pods(0, rng.randint(1, 8), 1000 * rng.randint(1, 30)),)


def selectors(number: int, rng: Random) -> Sets:
    keys = rng.sample(range(LABELS), 2)
    labels = tuple(sorted((f"k{key}", f"v{rng.randrange(VALUES)}") for key in keys))
    return (pods(0, rng.randint(1, 60), 4000 + rng.randrange(60) * 250, Constraint(labels)),)


def hosts(operator: str, count: int, most: int = 60) -> Callable[[int, Random], Sets]:
    """At most so many pods that ask for some hosts by name, or for all others."""

    def sets(number: int, rng: Random) -> Sets:
        names = tuple(f"n{host:04}" for host in sorted(rng.sample(range(5_000), count)))
        term = (Requirement(HOST, operator, names),)
        return (pods(0, rng.randint(1, most), 9_000, Constraint(affinity=(term,))),)

    return sets


STRICT = Settings(policy=Policy.STRICT_FIFO)
STRICT_EVICTING = Settings(policy=Policy.STRICT_FIFO, preemption=True, min_run_time=0)
BACKFILL = Settings(preemption=True, policy=Policy.BACKFILL, min_run_time=0)
SHAPES = [
    Shape("100 plain shapes, no pods counted", plain, 100, counted=False),
    Shape("100,000 sizes", sizes, 100_000),
    Shape("100,000 sizes, preemption, Backfill", sizes, 100_000, BACKFILL),
    Shape("10,000 mixed shapes, preemption, Backfill", mixed, 10_000, BACKFILL),
    Shape("1,000 of 64 pod sets", many_sets, 1_000, queued=1_000),
    Shape("1,000 of 64 pod sets, preemption, Backfill", many_sets, 1_000, BACKFILL, queued=1_000),
    Shape("200 gangs of 5,000 pods", gangs, 200, queued=200),
    Shape("1,000 leaves with reclaim", leaves, 10_000, trees=True),
    Shape("10,000 node selectors", selectors, 10_000),
    Shape("1,000 distinct NotIn", hosts("NotIn", 8), 1_000, queued=1_000),
    Shape("10,000 distinct NotIn", hosts("NotIn", 8), 10_000, queued=10_000),
    Shape("10,000 distinct In", hosts("In", 8), 10_000, queued=10_000),
    Shape("10,000 In of 3, StrictFIFO", hosts("In", 3, 18), 10_000, STRICT, queued=10_000),
    Shape("the same with preemption", hosts("In", 3, 18), 10_000, STRICT_EVICTING, queued=10_000),
]


def node(number: int, cpu: int = 64_000) -> Node:
    """Two AppWrappers run on it; 8 of 64 CPUs are free."""
    name, rng = f"n{number:04}", Random(number)
    labels = [(HOST, name), *((f"k{key}", f"v{rng.randrange(VALUES)}") for key in range(LABELS))]
    amounts = (("cpu", cpu), ("memory", 256 * GIB), ("pods", 110))
    return Node(name, amounts, labels=tuple(sorted(labels)))


class Size(NamedTuple):
    """How many nodes there are, and how many AppWrappers run and wait."""

    nodes: int
    running: int
    queued: int


def percent(shape: Shape, scale: int) -> Size:
    """So many percent of 5,000 nodes, 10,000 that run and what is in line of the shape."""
    return Size(50 * scale, 100 * scale, min(shape.queued, 1_000 * scale))


class Step(NamedTuple):
    """The CPU time of one step in milliseconds, and the kind of its event."""

    ms: float
    kind: str


class Chapter(NamedTuple):
    """The steps that follow changes of one kind. ``seconds`` is the CPU time of all of it;
    ``unfinished`` counts the changes after which something was left after ``PASSES_MAX`` passes."""

    change: str
    steps: list[Step]
    seconds: float
    unfinished: int

    def line(self) -> str:
        """The longest step, and how many are above the limit."""
        longest = max(self.steps, default=Step(0.0, "-"))
        over = sum(step.ms > LIMIT_MS for step in self.steps)
        unfinished = f", {self.unfinished} x unfinished" if self.unfinished else ""
        return (
            f"  {self.change:24} {longest.ms:8.1f} ms  {longest.kind:16} {over:5} of"
            f" {len(self.steps):6} above {LIMIT_MS}, {self.seconds:6.1f} s in all{unfinished}"
        )


def least(stories: Sequence[Sequence[Chapter]]) -> Iterator[Chapter]:
    """The chapters of stories of one shape, with the least time of each step. Raises ``ValueError``
    if the stories do not have the same steps."""
    for chapters in zip(*stories, strict=True):
        same = list(zip(*(one.steps for one in chapters), strict=True))
        seconds = min(one.seconds for one in chapters)
        yield chapters[0]._replace(steps=list(map(min, same)), seconds=seconds)


class Story(Fed):
    """A dispatcher with a long line. ``steps`` are all steps since the last chapter."""

    passes_max = PASSES_MAX

    def __init__(self, shape: Shape, size: Size) -> None:
        super().__init__(shape.settings)
        self._shape = shape
        self._nodes, self._running, self._queued = size
        self._wake_ups: list[int] = []
        self._steps: list[Step] = []
        self._unfinished = 0
        self.chapters: list[Chapter] = []

    def step(self, event: Event) -> tuple[Command, ...]:
        """A step and its time, and when the core wants to be woken."""
        if isinstance(event, Decide):
            self._wake_ups = [at for at in self._wake_ups if at > self.now]
        began = time.process_time_ns()
        commands = self.dispatcher.step(event, self.now)
        self._steps.append(Step((time.process_time_ns() - began) / 1e6, type(event).__name__))
        self._wake_ups += [one.at for one in commands if isinstance(one, WakeAt)]
        return commands

    def queued(self, number: int, *, is_new: bool = False) -> Workload:
        """One for the line, of a shape that is not in line yet if it ``is_new``."""
        sets = self._shape.sets(number, Random(number if is_new else number % self._shape.distinct))
        leaf = (("teams", f"leaf-{number % 1_000}"),) if self._shape.trees else ()
        return appwrapper(
            f"q{number}",
            [item("Job", f"q{number}")],
            sets,
            created=START + number // 100 * SECOND - 10_000 * SECOND,
            priority=5,
            quota=leaf,
            run_limit=(1 + number % 9) * 3600 * SECOND,
        )

    def runs(self, number: int) -> None:
        leaf = (("teams", f"leaf-{number * 7 % 300}"),) if self._shape.trees else ()
        work = appwrapper(
            f"r{number}",
            [item("Pod", f"r{number}", tells_end=True)],
            (pods(0, 1, 28_000),),
            priority=number % 5,
            quota=leaf,
            run_limit=(1 + number % 12) * 3600 * SECOND,
        )
        since = START - (1 + number % 3600) * SECOND
        work = with_attempt(work, since, since)
        if self._shape.counted and work.persisted is not None:
            work = replace(work, persisted=replace(work.persisted, pods=PodCounts(running=1)))
        self.feed(AppWrapperSeen(work, listed=True))
        self.feed(ChildSeen(own_child(work)))
        self.feed(PodSeen(own_pod(work, work.name, f"n{number % self._nodes:04}")))

    def go_on(self) -> None:
        """Pass after pass, as long as there is something to be done at once."""
        for _ in range(self.passes_max):
            self.now += SECOND // 50
            self.feed(Decide())
            if min(self._wake_ups, default=self.now + SECOND) > self.now + SECOND // 50:
                return
        self._unfinished += 1

    def go_on_for(self, span: int) -> None:
        """Wake the core when it wants to be woken."""
        until = self.now + span
        while self.now < until:
            self.now = max(self.now, min((until, *self._wake_ups)))
            self.go_on()

    @contextmanager
    def chapter(self, change: str) -> Iterator[None]:
        """Measure what happens in this block."""
        self._steps, self._unfinished, began = [], 0, time.process_time()
        yield
        seconds = time.process_time() - began
        self.chapters.append(Chapter(change, self._steps, seconds, self._unfinished))

    def furnish(self) -> None:
        """The nodes, the trees and what runs."""
        for number in range(self._nodes):
            self.feed(NodeSeen(node(number)))
        for one in forest(64_000 * self._nodes) if self._shape.trees else ():
            self.feed(QuotaSeen(one))
        for number in range(self._running):
            self.runs(number)

    def tell(self) -> None:
        """The whole story."""
        gc.collect()
        gc.disable()
        with self.chapter("nodes and what runs"):
            self.furnish()
        with self.chapter("the line at the start"):
            for number in range(self._queued):
                self.feed(AppWrapperSeen(self.queued(number), listed=True))
        with self.chapter("the first pass"):
            self.now += SECOND // 50
            self.feed(Decide())
        with self.chapter("the passes after it"):
            self.go_on()
        self._changes()
        with self.chapter("time passes"):
            self.go_on_for(60 * SECOND)
        gc.enable()
        if self._shape.distinct <= CHECKED_MAX:
            self.dispatcher.cluster.capacity.check()

    def _changes(self) -> None:
        first = 1_000_000
        with self.chapter("an AppWrapper arrives"):
            for number in range(first, first + EVENTS):
                self.feed(AppWrapperSeen(self.queued(number, is_new=True)))
                self.go_on()
        with self.chapter("a node rises"):
            for number in range(EVENTS):
                self.feed(NodeSeen(node(number, 70_000)))
                self.go_on()
        with self.chapter("a node goes"):
            for number in range(EVENTS, 2 * EVENTS):
                self.feed(NodeGone(f"n{number:04}"))
                self.go_on()
        with self.chapter("a node comes"):
            for number in range(EVENTS, 2 * EVENTS):
                self.feed(NodeSeen(node(number)))
                self.go_on()
        with self.chapter("a running one ends"):
            for number in range(2 * EVENTS, 3 * EVENTS):
                self.feed(PodGone(f"pod-r{number}"))
                self.feed(ChildGone(f"child-r{number}"))
                self.go_on()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="shapes whose names contain this")
    parser.add_argument("--scale", type=int, default=100, help="percent of 5,000 nodes and so on")
    parser.add_argument(
        "--runs", type=int, default=1, help="each step has its least time of so many"
    )
    options = parser.parse_args()
    for shape in SHAPES:
        if options.only in shape.name:
            print(shape.name, flush=True)
            stories = []
            for _ in range(options.runs):
                gc.collect()  # what the last story left
                print(f"  {speed()}", flush=True)
                story = Story(shape, percent(shape, options.scale))
                story.tell()
                stories.append(story.chapters)
            for chapter in least(stories):
                print(chapter.line(), flush=True)


if __name__ == "__main__":
    main()
