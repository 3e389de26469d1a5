"""Counts by topology domain are those of a recount, whatever happened since."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.capacity import Capacity
from mcad.core.fit import fit
from mcad.core.fit.domain_counts import DomainCounts
from mcad.core.nodes.columns import slots
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.shape import ClassKey, Shape
from mcad.core.state.model import Constraint, PodSet, Topology
from mcad.core.state.settings import Settings
from tests.core.builders import cluster, node, pod, pods, taint, waiting, wants

NODES = 5
VALUES = ("a", "b", "c", "")

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["node", "node", "gone", "pod", "ours", "end"]),
        st.integers(0, NODES - 1),
        st.sampled_from(VALUES),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=30,
)
"""What happens to which node: its label, its CPUs or those of a pod there, and whether the counts
are asked for before the next step."""

DEMAND = wants("2", gpu=1)
"""One pod of the class; of two resources, of which a domain may have only one."""


def _happen(capacity: Capacity, what: str, name: str, value: str, cpus: int) -> None:
    if what == "node":
        capacity.node_seen(
            node(
                name,
                str(cpus),
                gpu=2,
                labels={"rack": value} if value else {},
                ready=cpus != 3,
                taints=[taint("t")] if cpus == 5 else (),
            )
        )
    elif what == "gone":
        capacity.node_gone(name)
    elif what == "end":
        capacity.pod_gone(f"p-{name}")
    else:
        owner = "one" if what == "ours" else ""
        capacity.pod_seen(pod(f"p-{name}", name, str(cpus), gpu=1, of=owner))


@given(_STEPS)
def test_counts_are_those_of_a_recount_whatever_happened_since(
    steps: list[tuple[str, int, str, int, bool]],
) -> None:
    capacity = Capacity(Settings())
    counted = capacity._memory.hold_class(ClassKey(DEMAND, Constraint(), cap=1))
    counts = DomainCounts(capacity._ledger)
    for what, number, value, cpus, looks in [*steps, ("gone", 0, "", 0, True)]:
        _happen(capacity, what, f"n{number}", value, cpus)
        if looks:
            _compare(counts, counted, emptied=False)
            _compare(counts, counted, emptied=True)


def _compare(counts: DomainCounts, counted: PodClass, *, emptied: bool) -> None:
    """With one node at a time; a node that is not ready lends nothing, whatever it admits."""
    there, free = Counter[str](), dict[str, Counter[str]]()
    for row in counted.ledger.rows.values():
        rack, left = dict(row.node.labels).get("rack"), row.idle if emptied else row.free
        if rack is not None:
            sums = free.setdefault(rack, Counter())
            there[rack] += slots(left, counted.request, 1) if counted.admitted_by(row) else 0
            sums.update({name: max(0, n) for name, n in left.items() if row.node.ready})

    assert counts.slots("rack", counted, emptied=emptied) == {rack: there[rack] for rack in free}
    often = {rack: min(sums[name] / n for name, n in DEMAND) for rack, sums in free.items()}
    enough = [rack for rack, times in often.items() if times >= 1]
    assert sorted(counts.with_room("rack", DEMAND, emptied=emptied)) == sorted(enough)
    if not emptied:
        rooms = counts.rooms("rack", DEMAND)
        assert rooms == {rack: int(times * 1_000_000) for rack, times in often.items()}
        assert {rack: Counter(counts.sums("rack", rack)) for rack in free} == free
        assert all(counts.labels_of("rack", rack) == {"rack": rack} for rack in free)


@pytest.mark.parametrize(("replicas", "cpu", "tried"), [(1, "4", 1), (2, "2", 1), (5, "2", 0)])
def test_only_domains_that_may_have_room_are_tried(replicas: int, cpu: str, tried: int) -> None:
    """Of 40 racks one has room for such pods; twenty have enough in sum, ten of them room for one
    that is smaller."""
    racks = [("1", "1", "1", "1")] * 10 + [("3", "1")] * 10 + [("0",)] * 19 + [("4", "4")]
    nodes = [
        node(f"r{rack}n{at}", each, labels={"rack": f"r{rack}"})
        for rack, cpus in enumerate(racks)
        for at, each in enumerate(cpus)
    ]
    capacity = cluster(*nodes)
    shape = waiting(capacity, replace(pods(replicas, cpu), topology=Topology(("rack",))))
    assert (capacity.refusal(shape) is None) is (tried > 0)
    assert len(capacity._memory.remembered(shape).variants) == tried


def test_a_level_with_more_domains_than_are_tried_is_decided() -> None:
    nodes = [node(f"n{n:03}", "1", labels={"host": f"n{n:03}"}) for n in range(600)]
    capacity = cluster(*nodes, node("last", "2", labels={"host": "z"}))
    for cpus, fits in ((2, True), (3, False)):
        sets = (replace(pods(cpus, "1"), topology=Topology(("host",))),)
        refused = capacity.refusal(capacity.shape(sets))
        assert (refused is None) is fits
        assert refused is None or refused.reason.name == "NO_DOMAIN"


@pytest.mark.parametrize("groups", ["gg", "gh"])
def test_a_gang_whose_search_in_a_domain_was_put_off_is_asked_again_in_the_next_pass(
    groups: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fits on the nodes of all racks at a glance, and in the one rack only by a search; so do
    two groups, each of which fits there by itself."""
    monkeypatch.setattr(fit, "EXACT_WORK_PER_PASS_MAX", 10)
    rack = [node(name, "5", labels={"rack": "a"}) for name in ("a", "b")]
    capacity = cluster(*rack, *(node(f"n{n}", "5") for n in range(3)))
    gangs = [(pods(2, "3"), pods(1, size, item=1)) for size in ("3.5", "4")]
    shapes = [waiting(capacity, *map(_in_rack, gang, groups)) for gang in gangs]
    capacity.place_unplaced()
    assert [_reason(capacity, shape) for shape in shapes] == ["NO_DOMAIN", "UNDECIDED"]
    capacity.place_unplaced()
    assert capacity.take_requeued() == [shapes[1]]
    assert _reason(capacity, shapes[1]) == "NO_DOMAIN"


def _in_rack(one: PodSet, group: str) -> PodSet:
    return replace(one, topology=Topology(("rack",), group=group))


def _reason(capacity: Capacity, shape: Shape) -> str:
    refused = capacity.refusal(shape)
    assert refused is not None
    return refused.reason.name
