"""A leader change strands no gang: what its templates depend on is on record with the intent.

Random worlds of a few nodes and gangs, some of them in one rack. The dispatcher ends at each of its
writes in turn, before or after the server has carried it out, and kube-scheduler may have bound a
pod by then. Then every order and every node is tried, by brute force.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import pytest

from mcad.core.commands import Command, CreateItem, WriteStatus
from mcad.core.events import Event
from mcad.core.state.model import KeptApart, Node, NodeRules, PodPhase, Workload
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND
from tests import budget
from tests.core.assumed.test_apart import can_strand
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.racks import TOGETHER

WORLDS = 1000
UNIT = 1000
WRITES = WriteStatus | CreateItem
IN_FLIGHT = replace(PATIENT, binding_wait=5 * SECOND)


EVICTING = replace(PATIENT, preemption=True, min_run_time=0, protect_after=0)


class World(NamedTuple):
    """Nodes, and gangs in the order of their arrival."""

    nodes: tuple[Node, ...]
    gangs: tuple[Workload, ...]


def drawn(rng: Random) -> World:
    nodes = [
        replace(node(f"n{at}", UNIT * rng.randint(1, 8)), labels=(("rack", rng.choice("ab")),))
        for at in range(rng.randint(2, 4))
    ]
    gangs = []
    for name in "vwx"[: rng.randint(1, 3)]:
        work = workload(name, *(UNIT * rng.randint(1, 6) for _ in range(rng.randint(1, 4))))
        close = TOGETHER if rng.random() < 0.3 else None
        sets = tuple(replace(one, topology=close) for one in work.sets)
        gangs.append(replace(work, sets=sets))
    return World(tuple(nodes), tuple(gangs))


@dataclass
class Watched(Bench):
    """Remembers with which rules each object was created."""

    rules: dict[str, NodeRules] = field(default_factory=dict)

    def _create(self, command: CreateItem) -> Event:
        ref = self.bodies[command.uid, command.attempt, command.item][0]
        self.rules.setdefault(ref.name, command.node_rules)
        return super()._create(command)


class Moment(NamedTuple):
    """The write with this number: the leader ends there, before the server has carried it out if
    that ``is_lost``. A pod may be bound at that moment."""

    at: int
    is_lost: bool
    binds: bool
    ends: bool = True


def played(world: World, moment: Moment, seed: int) -> tuple[Watched, int]:
    """The world after everything has been created, and the number of writes."""
    bench, writes = Watched(IN_FLIGHT, nodes=list(world.nodes)), 0
    bench.submit(*world.gangs)
    for _ in range(100):
        bench.decide()
        if not bench.pending:
            return bench, writes
        while bench.pending:
            command = bench.pending.pop(0)
            is_now = isinstance(command, WRITES) and writes == moment.at
            writes += isinstance(command, WRITES)
            if not is_now:
                bench.execute(command)
                continue
            carry_out(bench, command, moment)
            if moment.binds:
                bind_one(bench, Random(seed))
            if moment.is_lost and not moment.ends:
                bench.execute(command)
    raise AssertionError("no end")


def carry_out(bench: Watched, command: Command, moment: Moment) -> None:
    """What the server and the leader do until a pod is bound."""
    answer = bench.apply(command) if not moment.is_lost else None
    if moment.ends:
        bench.crash()
    elif answer is not None:
        bench.feed(answer)


def bind_one(bench: Watched, rng: Random) -> None:
    """kube-scheduler binds one of the pods where its template allows."""
    names = [ref.name for ref, one in bench.things.items() if not one.node]
    name, room = rng.choice(names or [""]), free(bench)
    off = barred(bench, name) if name else frozenset(range(len(room)))
    fits = [at for at, n in enumerate(room) if at not in off and n >= size(bench, name)]
    if fits:
        bench.bind(name, bench.nodes[rng.choice(fits)].name)


def size(bench: Watched, name: str) -> int:
    (found,) = [one for ref, one in bench.things.items() if ref.name == name]
    return dict(found.request)["cpu"] // UNIT


def free(bench: Watched) -> tuple[int, ...]:
    used = {one.name: 0 for one in bench.nodes}
    for ref, thing in bench.things.items():
        if thing.node and thing.phase is PodPhase.RUNNING:
            used[thing.node] += size(bench, ref.name)
    return tuple(dict(one.allocatable)["cpu"] // UNIT - used[one.name] for one in bench.nodes)


def barred(bench: Watched, name: str) -> frozenset[int]:
    """The nodes that the template of a pod does not allow."""
    rules = bench.rules[name]
    names = rules.excluded_at("template")
    domains = {one.domain for one in rules.domains}
    return frozenset(
        at
        for at, one in enumerate(bench.nodes)
        if one.name in names or not domains <= {*one.labels}
    )


def is_stranded(bench: Watched) -> bool:
    """Whether some order in which the pods are bound leaves one without a node."""
    names = [ref.name for ref, thing in bench.things.items() if not thing.node]
    sizes = tuple(size(bench, name) for name in names)
    return can_strand(
        free(bench), sizes, (1,) * len(names), tuple(barred(bench, name) for name in names)
    )


class Found(NamedTuple):
    """What one world came to: leader changes, and those that stranded a gang by themselves."""

    changes: int
    stranded: tuple[Moment, ...]
    excludes: bool
    has_domains: bool


def tried(seed: int) -> Found:
    """A leader change at each write. Without it gangs that share nodes may be stranded as well."""
    world, stranded = drawn(Random(f"leader changes {seed}")), []
    plain, writes = played(world, Moment(-1, is_lost=False, binds=False), seed)
    for at in range(writes):
        moment = Moment(at, is_lost=(seed + at) % 3 == 0, binds=(seed + at) % 2 == 0)
        is_without = is_stranded(played(world, moment._replace(ends=False), seed)[0])
        if not is_without and is_stranded(played(world, moment, seed)[0]):
            stranded.append(moment)
    rules = plain.rules.values()
    excludes, has_domains = any(one.apart for one in rules), any(one.domains for one in rules)
    return Found(writes, tuple(stranded), excludes, has_domains)


@pytest.mark.parametrize(
    "begin", budget.slow_but_first(range(0, WORLDS if budget.SOAK else 60, 20))
)
def test_no_gang_is_stranded_only_because_the_leader_changed(begin: int) -> None:
    found = {seed: tried(seed) for seed in range(begin, begin + 20)}
    assert not {seed: one.stranded for seed, one in found.items() if one.stranded}
    if begin == 0:  # a block of a soak may be without
        assert sum(one.excludes for one in found.values()) > 1
        assert sum(one.has_domains for one in found.values()) > 1


def creates(bench: Bench) -> CreateItem:
    """The first create that follows."""
    bench.decide()
    while not isinstance(bench.pending[0], CreateItem):
        bench.execute(bench.pending.pop(0))
    assert isinstance(bench.pending[0], CreateItem)
    return bench.pending[0]


@pytest.mark.parametrize("changed", [False, True])
def test_exclusions_are_on_record_before_anything_is_created(changed: bool) -> None:
    bench = Bench(PATIENT, nodes=[node("whole", 8000), node("part", 7000)])
    bench.submit(workload("a", 1000, 8000))
    creates(bench)
    record = bench.status["uid-a"].dispatch
    assert record is not None
    assert record.apart == (KeptApart(0, "template", ("whole",)),)
    if changed:
        bench.crash()
    assert creates(bench).node_rules.apart == record.apart


def test_a_gang_waits_for_the_bindings_of_gangs_that_an_earlier_leader_dispatched() -> None:
    bench = Bench(IN_FLIGHT, nodes=[node("whole", 8000), node("part", 7000)])
    bench.submit(workload("a", 8000))
    creates(bench)
    bench.crash()
    bench.submit(workload("b", 1000)).settle()
    assert bench.order == ["a"]
    bench.bind("a-0", "whole").settle()
    assert bench.order == ["a", "b"]


def test_what_an_earlier_leader_may_have_planned_is_not_excluded_for_others() -> None:
    """The reservation is made for room beside the pods of ``a``; the new leader plans them
    elsewhere, and does not know that they may have been meant for that node."""
    bench = Bench(EVICTING, nodes=[node("n1"), node("n2", 20)])
    bench.submit(workload("low", 900)).settle()
    bench.submit(workload("a", 35, 35, priority=9))
    creates(bench)
    assert bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-a") == ["n1"]
    bench.submit(workload("high", 930, priority=5)).decide()
    bench.nodes = [node("n1", 930), node("n2", 500)]
    bench.crash()
    creates(bench)
    bench.execute(bench.pending.pop(0))
    create = creates(bench)
    cluster = bench.dispatcher.cluster
    assert cluster.capacity.gangs.nodes_of("uid-a") == ["n2"]
    assert [one.reservation.nodes for one in cluster.reservations.values()] == [("n1",)]
    assert create.node_rules.exclude == ()
