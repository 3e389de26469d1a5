"""Bounds of slots and what they requeue, against brute force: no refused gang that fits rests."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.capacity import Capacity
from mcad.core.nodes import pod_class
from mcad.core.nodes.columns import UNBOUNDED, slots
from mcad.core.nodes.filters import admits
from mcad.core.nodes.shape import Shape
from mcad.core.state import work_bounds
from mcad.core.state.model import Node, Pod
from mcad.core.state.settings import Settings
from tests import budget
from tests.core import strategies
from tests.core.builders import (
    AGGREGATE,
    Host,
    cluster,
    fits_by_brute_force,
    hosts_of,
    node,
    on,
    pod,
    pods,
    waiting,
)

NAMES = [f"n{i}" for i in range(4)]


class World:
    """A capacity, what it saw, and the shapes that wait there: those that rest are refused.

    ``risen`` are the nodes with a rise since the last look, and ``moved`` tells whether one of them
    came, changed or left. The pods are of no AppWrapper."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.capacity = Capacity(Settings())
        self.nodes = dict(nodes)
        self.pods: dict[str, Pod] = {}
        self.seen = 0
        self.known: list[Shape] = []
        self.rests: dict[Shape, None] = {}
        self.moved = False
        self.risen: set[str] = set()
        for each in nodes.values():
            self.capacity.node_seen(each)

    def hosts(self) -> list[Host]:
        hosts = {one.node.name: one for one in hosts_of(self.nodes.values())}
        for each in self.pods.values():
            if each.node in hosts:
                host = hosts[each.node]
                host.ports += each.ports
                for resource, n in (*each.request, ("pods", 1)):
                    host.free[resource] = host.free.get(resource, 0) - n
        return list(hosts.values())

    def changes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(NAMES))
        match data.draw(st.sampled_from(["node", "node gone", *["pod", "pod gone"] * 3])):
            case "node":
                self.nodes[name] = data.draw(strategies.nodes(name))
                self.capacity.node_seen(self.nodes[name])
                self.risen.add(name)
                self.moved = True
            case "node gone":
                self.nodes.pop(name, None)
                self.capacity.node_gone(name)
                self.moved = True
            case "pod":
                like, self.seen = data.draw(strategies.pod_sets()), self.seen + 1
                one = replace(pod(f"p{self.seen}", name, ports=like.ports), request=like.request)
                self.pods[one.uid] = one
                self.capacity.pod_seen(one)
            case _ if self.pods:
                uid = data.draw(st.sampled_from(sorted(self.pods)))
                self.risen.add(self.pods.pop(uid).node)
                self.capacity.pod_gone(uid)
            case _:
                pass

    def forget(self, shape: Shape) -> None:
        self.capacity.forget(shape)
        if shape not in self.known:
            self.rests.pop(shape, None)

    def look(self, *, is_exact: bool) -> None:
        """What is requeued is asked about again, and nothing that rests fits."""
        requeued = self.capacity.take_requeued()
        for shape in requeued:
            del self.rests[shape]
            assert not is_exact or self._may_hear(shape)
        self.risen, self.moved = set(), False
        hosts = self.hosts()
        for shape in self.known:
            fits = fits_by_brute_force(hosts, shape.sets)
            assert not (fits and shape in self.rests)
            if shape not in self.rests:
                event(f"fits: {fits}, requeued: {shape in requeued}")
                assert (self.capacity.refusal(shape) is None) is fits
                if not fits:
                    self.rests[shape] = None
        self._bounds_are_bounds()

    def _may_hear(self, shape: Shape) -> bool:
        """Whether a node rose that admits one of its pods; a node less is a pod less of a
        DaemonSet."""
        rows = [self.nodes[name] for name in self.risen if name in self.nodes]
        admitted = any(admits(each, one.constraint) for each in rows for one in shape.sets)
        return admitted or (shape.per_node and self.moved)

    def _bounds_are_bounds(self) -> None:
        rows = self.capacity._ledger.rows.values()
        for each in self.capacity._memory.classes():
            there = sum(
                slots(row.free, each.key.request, each.key.cap or UNBOUNDED)
                for row in rows
                if admits(row.node, each.key.constraint)
            )
            assert each.slots(self.capacity._ledger.free).total == there
            assert self.capacity._memory.bounds[each] >= there


@pytest.mark.parametrize(
    ("rises", "constraints"),
    [
        pytest.param(work_bounds.RISES_MAX, work_bounds.CONSTRAINTS_SUMMED_MAX, id="as they are"),
        pytest.param(1, work_bounds.CONSTRAINTS_SUMMED_MAX, id="few gains are added"),
        pytest.param(0, 1, id="none is added, and few sums are made"),
    ],
)
@settings(max_examples=budget.examples(100))
@given(nodes=strategies.clusters(), data=st.data())
def test_a_refused_gang_is_requeued_before_it_fits_and_only_by_a_rise_on_its_own_nodes(
    nodes: dict[str, Node], data: st.DataObject, rises: int, constraints: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_class, "RISES_MAX", rises)
        patch.setattr(pod_class, "CONSTRAINTS_SUMMED_MAX", constraints)
        world = World(nodes)
        for _ in range(data.draw(st.integers(5, 20))):
            kinds = ["comes"] * 5 if len(world.known) < 4 else ["leaves"]
            match data.draw(st.sampled_from([*kinds, *["changes"] * 5])):
                case "comes":
                    gang = data.draw(strategies.gangs(most=3))
                    world.known.append(waiting(world.capacity, *gang))
                case "leaves":
                    world.forget(world.known.pop(data.draw(st.integers(0, 3))))
                case _:  # some come together
                    for _ in range(data.draw(st.sampled_from([1, 1, 1, 4]))):
                        world.changes(data)
            if data.draw(st.sampled_from([True] * 4 + [False])):
                world.capacity.place_unplaced()
                world.look(is_exact=rises == work_bounds.RISES_MAX)


# -- many rises ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "requeued"), [(work_bounds.CONSTRAINTS_SUMMED_MAX, [41, 70]), (0, [41, 70, 71])]
)
def test_after_more_rises_than_are_added_bounds_are_those_of_sums(
    monkeypatch: pytest.MonkeyPatch, constraints: int, requeued: list[int]
) -> None:
    monkeypatch.setattr(pod_class, "RISES_MAX", 2)
    monkeypatch.setattr(pod_class, "CONSTRAINTS_SUMMED_MAX", constraints)
    names = [f"n{i}" for i in range(40)]
    capacity = cluster(*(node(name, "3") for name in names))
    shapes = {n: waiting(capacity, pods(n, "2")) for n in (41, 70, 71)}
    assert None not in map(capacity.refusal, shapes.values())
    for name in names[:2]:
        capacity.node_seen(node(name, "3500m"))
    assert capacity.take_requeued() == [], "the gain of each node is added"

    for name in names:
        capacity.node_seen(node(name, "3501m"))
    assert capacity.take_requeued() == [shapes[n] for n in requeued]


def test_a_gang_that_takes_the_place_of_another_needs_only_what_it_asks_for() -> None:
    capacity = cluster(node("a"))
    capacity.pod_seen(pod("x", "a", "4"))
    gone = waiting(capacity, pods(1, gpu=1), pods(1, gpu=2, item=1))
    assert capacity.refusal(gone) is not None
    capacity.forget(gone)
    shape = waiting(capacity, pods(1))
    assert capacity.refusal(shape) is not None
    capacity.pod_gone("x")
    assert capacity.take_requeued() == [shape]


def test_where_only_the_sum_counts_any_rise_requeues_and_no_fall() -> None:
    capacity = cluster(node("a"), settings=AGGREGATE)
    shape = waiting(capacity, pods(9, where=on(zone="nowhere")))
    assert capacity.refusal(shape) is not None
    capacity.pod_seen(pod("x", "a"))
    assert capacity.take_requeued() == []
    capacity.pod_gone("x")
    assert capacity.take_requeued() == [shape]


def test_what_rose_on_a_node_leaves_with_it() -> None:
    """Classes that only reservations hold are in no verdict, so nothing would add it."""
    capacity = cluster(node("a"))
    gang = (pods(1, "3"),)
    assert capacity.assume("one", 1, capacity.shape(gang), gang) is None
    for i in range(9):
        capacity.node_seen(node(f"n{i}"))
        capacity.node_gone(f"n{i}")

    ledger = capacity._ledger
    assert {*ledger.rose, *ledger.came} <= {row.at for row in ledger.rows.values()}


def test_a_rise_on_a_node_that_is_too_small_for_each_pod_requeues_nothing() -> None:
    capacity = cluster(node("a", "4"), node("b", "1"))
    shape = waiting(capacity, pods(1, "3"), pods(1, "2", item=1))
    assert capacity.refusal(shape) is not None, "each fits alone, on the same node"
    capacity.node_seen(node("b", "1500m"))
    assert capacity.take_requeued() == []
    capacity.node_seen(node("b", "2"))
    assert capacity.take_requeued() == [shape]


def test_the_constraints_of_classes_without_holders_are_not_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_class, "RISES_MAX", 0)
    monkeypatch.setattr(pod_class, "CONSTRAINTS_SUMMED_MAX", 1)
    capacity = cluster(node("a", "3"))
    gone = waiting(capacity, pods(9, "2", where=on(zone="nowhere")))
    shape = waiting(capacity, pods(9, "2"))
    assert None not in map(capacity.refusal, (gone, shape))
    capacity.forget(gone)
    capacity.node_seen(node("a", "4"))
    assert capacity.take_requeued() == []
