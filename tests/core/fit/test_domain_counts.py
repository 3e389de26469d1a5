"""Counts by topology domain are those of a recount, whatever happened since, and spare pools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.capacity import Capacity
from mcad.core.fit import fit
from mcad.core.fit.domain_counts import DomainSlots
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import Constraint, Node, Topology
from mcad.core.state.work_bounds import CATCH_UP_MAX
from tests.core.builders import cluster, node, pods

NODES = 5
VALUES = ("a", "b", "")


def _labels(value: str) -> dict[str, str]:
    return {"rack": value} if value else {}


def _admits_all(_: object) -> bool:
    return True


def _recounted(ledger: Ledger) -> dict[str, int]:
    """The slots of pods of 2 CPUs, by rack, one node at a time."""
    slots: dict[str, int] = {}
    for row in ledger.rows.values():
        rack = dict(row.node.labels).get("rack")
        if rack is not None:
            slots[rack] = slots.get(rack, 0) + max(0, row.free["cpu"] // 2000)
    return slots


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["use", "free", "label", "remove", "flood"]),
        st.integers(0, NODES - 1),
        st.sampled_from(VALUES),
        st.booleans(),
    ),
    max_size=30,
)


@given(_STEPS)
def test_counts_are_those_of_a_recount_whatever_happened_since(
    steps: list[tuple[str, int, str, bool]],
) -> None:
    ledger = Ledger()
    key = ClassKey((("cpu", 2000),), Constraint(), 0)
    for number in range(NODES):
        ledger.add(node(f"n{number}", "4", labels=_labels(VALUES[number % 3])))
    counted = PodClass(key, ledger.pool(_admits_all), ledger.log)
    slots = DomainSlots(ledger, counted, "rack", emptied=False)
    for what, number, value, looks in steps:
        name = f"n{number}"
        seen = node(name, "4", labels=_labels(value))
        if what == "remove" and name in ledger.rows:
            ledger.remove(name)
        elif what == "label" and name in ledger.rows:
            ledger.replace(seen)
        elif what == "label":
            ledger.add(seen)
        elif what == "flood":
            for other in range(CATCH_UP_MAX + 1):
                ledger.add(node(f"more-{other}", "1"))
            for other in range(CATCH_UP_MAX + 1):
                ledger.remove(f"more-{other}")
        elif name in ledger.rows:
            ledger.note(name, (("cpu", 1000),), 1 if what == "use" else -1)
            ledger.post()
        if looks:
            expected = _recounted(ledger)
            assert {rack: slots.of(rack) for rack in expected} == expected
            assert slots.counts_truly()
            counted.missing(100, closely=True)
            known = slots.with_room()
            if known is not None:
                assert {rack for rack, n in expected.items() if n} <= set(known)


def _pools(capacity: Capacity) -> int:
    return len(capacity._ledger.pools())


def _racks(first: int, last: int, *cpus: str) -> list[Node]:
    """Racks of nodes with so much CPU each."""
    return [
        node(f"r{n}n{i}", cpu, labels=_labels(f"r{n}"))
        for n in range(first, last)
        for i, cpu in enumerate(cpus)
    ]


@pytest.mark.parametrize("replicas", [1, 2])
def test_only_domains_that_may_have_room_get_a_pool(replicas: int) -> None:
    """Of 40 racks one has room for such pods; twenty have enough in sum, ten of them room for one
    that is smaller."""
    racks = _racks(0, 10, "1", "1", "1", "1"), _racks(10, 20, "3", "1"), _racks(20, 39, "0")
    capacity = cluster(*(one for some in racks for one in some), *_racks(39, 40, "4", "4"))
    before = _pools(capacity)
    cpu = "4" if replicas == 1 else "2"
    sets = (replace(pods(replicas, cpu), topology=Topology(("rack",))),)
    shape = capacity.shape(sets)
    capacity.remember(shape)
    assert capacity.refusal(shape) is None
    assert _pools(capacity) - before == 2, "that of any nodes, and that of the rack"

    none = capacity.shape((replace(pods(5, "2"), topology=Topology(("rack",))),))
    capacity.remember(none)
    refused = capacity.refusal(none)
    assert refused is not None
    assert _pools(capacity) - before == 2


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
    rack = [node(name, "5", labels=_labels("a")) for name in ("a", "b")]
    capacity = cluster(*rack, *(node(f"n{n}", "5") for n in range(3)))
    shapes = [
        capacity.shape(
            tuple(
                replace(one, topology=Topology(("rack",), group=group))
                for one, group in zip((pods(2, "3"), pods(1, size, item=1)), groups, strict=True)
            )
        )
        for size in ("3.5", "4")
    ]
    capacity.place_unplaced()
    kinds = []
    for shape in shapes:
        capacity.remember(shape)
        refused = capacity.refusal(shape)
        assert refused is not None
        kinds.append(refused.reason.name)
    assert kinds == ["NO_DOMAIN", "UNDECIDED"]
    capacity.place_unplaced()
    assert capacity.take_requeued() == [shapes[1]]
    refused = capacity.refusal(shapes[1])
    assert refused is not None
    assert refused.reason.name == "NO_DOMAIN"
