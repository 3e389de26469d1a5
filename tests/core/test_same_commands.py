"""Same events, same commands: whatever the garbage collector does, and whoever looks in between.

Random histories of a small dispatcher are played several times. What it remembers (which nodes had
room for whom, which gang was searched for in vain) must depend on events alone: not on when Python
frees memory, and not on anybody's questions.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.controller.views import capacity_view, detail_view, rows_view
from mcad.core.commands import Command
from mcad.core.events import Event, NodeGone, NodeSeen
from mcad.core.state.model import Constraint, PodPhase, Workload
from mcad.core.state.settings import Fit, Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload
from tests.core.memory import digest
from tests.core.quotas import GOLD, child, subtree

SIZES = (100, 150, 200, 300)
ZONES = ("", "", "", "a", "b")
NAMES = tuple(f"n{number}" for number in range(5))
TEAMS = ("red", "green")

STEPS = st.one_of(
    st.tuples(
        st.just("submit"),
        st.lists(st.sampled_from(SIZES), min_size=1, max_size=4),
        st.sampled_from(ZONES),
    ),
    st.tuples(
        st.sampled_from(["settle", "decide", "bind", "end", "delete", "wait"]), st.integers(0, 9)
    ),
    st.tuples(st.just("node"), st.sampled_from(NAMES), st.integers(1, 5), st.sampled_from("ab")),
    st.tuples(st.just("lose"), st.sampled_from(NAMES)),
    st.tuples(st.just("share"), st.integers(0, 8), st.integers(0, 4), st.booleans()),
)  # fmt: skip
SETTINGS = st.builds(
    Settings,
    fit=st.sampled_from([Fit.NODES, Fit.NODES, Fit.NODES, Fit.AGGREGATE]),
    policy=st.sampled_from([Policy.BEST_EFFORT_FIFO, Policy.STRICT_FIFO]),
    head_of_line_holding=st.sampled_from([0, 0, 20 * SECOND]),
)


class Play:
    """One run of a history; ``between`` happens after every event."""

    def __init__(self, settings: Settings, between: Callable[[Bench], None]) -> None:
        self.told: list[str] = []
        self.bench = Bench(settings)
        inner = self.bench.feed

        def feed(event: Event) -> tuple[Command, ...]:
            commands = inner(event)
            self.told.extend(map(repr, commands))
            between(self.bench)
            return commands

        self.bench.feed = feed  # type: ignore[method-assign]
        for at, name in enumerate(NAMES[:4]):
            self._node(name, 3 + at % 3, "ab"[at % 2])
        self.serial = 0

    def step(self, what: str, *how: object) -> None:
        bench = self.bench
        match what, *how:
            case "submit", list(sizes), str(zone):
                self.serial += 1
                bench.submit(self._work(sizes, zone))
            case "settle", _:
                bench.settle()
            case "decide", _:
                bench.decide()
            case "wait", int(seconds):
                bench.advance(10 * seconds)
            case "bind", int(pick):
                self._bind(pick)
            case "end", int(pick):
                running = [r.name for r, t in bench.things.items() if t.phase is PodPhase.RUNNING]
                if running:
                    bench.change(running[pick % len(running)], phase=PodPhase.SUCCEEDED)
            case "delete", int(pick):
                if bench.works:
                    bench.delete(list(bench.works)[pick % len(bench.works)])
            case "node", str(name), int(size), str(zone):
                self._node(name, size, zone)
            case "share", int(root), int(share), bool(hard):
                self._share(root, share, hard=hard)
            case "lose", str(name):
                bench.nodes = [one for one in bench.nodes if one.name != name]
                bench.feed(NodeGone(name))

    def _work(self, sizes: list[int], zone: str) -> Workload:
        work = workload(f"w{self.serial}", *sizes)
        where = Constraint(selector=(("zone", zone),) if zone else ())
        # Only the first pod is bound to the zone: pools that overlap in part are the hardest.
        first = replace(work.sets[0], constraint=where)
        team = TEAMS[self.serial % len(TEAMS)]
        return replace(work, sets=(first, *work.sets[1:]), quota=((GOLD, team),))

    def _share(self, root: int, share: int, *, hard: bool) -> None:
        """Two teams share so much; without a root there are no shares."""
        if not root:
            self.bench.unshare(*list(self.bench.quotas))
            return
        below = (child(team, hard, cpu=100 * share) for team in TEAMS)
        self.bench.share(
            subtree("root", child("root", cpu=100 * root)),
            subtree("teams", *below, parent="root"),
        )

    def _node(self, name: str, size: int, zone: str) -> None:
        one = replace(node(name, 100 * size), labels=(("zone", zone),))
        self.bench.nodes = [*(n for n in self.bench.nodes if n.name != name), one]
        self.bench.feed(NodeSeen(one))

    def _bind(self, pick: int) -> None:
        waiting = [ref.name for ref, thing in self.bench.things.items() if not thing.node]
        if waiting and self.bench.nodes:
            where = self.bench.nodes[pick % len(self.bench.nodes)].name
            self.bench.bind(waiting[pick % len(waiting)], where)


def told(settings: Settings, steps: list, between: Callable[[Bench], None]) -> list[str]:
    """The commands of a whole history."""
    play = Play(settings, between)
    for step in steps:
        play.step(*step)
    play.bench.settle()
    return play.told


# -- what may happen in between ------------------------------------------------------------------


@contextmanager
def collector(threshold: int) -> Iterator[None]:
    """Run with this setting of the collector, 0 is off; what was there before is left out of it."""
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.set_threshold(threshold)
    if not threshold:
        gc.disable()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        if enabled:
            gc.enable()


def nothing(bench: Bench) -> None:
    """Nobody looks."""


def collect(bench: Bench) -> None:
    """All garbage is collected."""
    gc.collect()


def look(bench: Bench) -> None:
    """Everything that people can ask for is asked for."""
    cluster = bench.dispatcher.cluster
    rows_view(cluster, bench.now, waiting_only=True, with_starts=True)
    rows_view(cluster, bench.now, waiting_only=False)
    capacity_view(cluster)
    for entry in list(cluster.entries.values())[:3]:
        detail_view(cluster, bench.now, entry.workload.namespace, entry.workload.name)


def look_and_compare(bench: Bench) -> None:
    """The same, and nothing whatever is different afterwards."""
    cluster = bench.dispatcher.cluster
    before = digest(cluster)
    look(bench)
    assert digest(cluster) == before, "a question has changed what the dispatcher remembers"


HISTORIES = st.lists(STEPS, min_size=5, max_size=40)

# A gang is deleted and its pods' class comes back: remembered or fresh, that was the question.
CAME_BACK = [
    ("submit", [100, 100], ""),
    ("submit", [300, 100], "a"),
    ("delete", 7),
    ("settle", 7),
    ("delete", 3),
    ("submit", [150, 100, 200, 300], "a"),
    ("decide", 6),
    ("submit", [300], "b"),
    ("lose", "n3"),
    ("submit", [200], ""),
]


@profile(max_examples=30, deadline=None)
@given(SETTINGS, HISTORIES)
@example(Settings(), CAME_BACK)
def test_the_garbage_collector_decides_nothing(settings: Settings, steps: list) -> None:
    with collector(0):
        plain = told(settings, steps, nothing)
        assert told(settings, steps, collect) == plain
    with collector(1):
        assert told(settings, steps, nothing) == plain


@profile(max_examples=40, deadline=None)
@given(SETTINGS, HISTORIES)
def test_questions_decide_nothing(settings: Settings, steps: list) -> None:
    assert told(settings, steps, look) == told(settings, steps, nothing)


@profile(max_examples=25, deadline=None)
@given(SETTINGS, HISTORIES)
def test_questions_change_nothing(settings: Settings, steps: list) -> None:
    told(settings, steps, look_and_compare)
