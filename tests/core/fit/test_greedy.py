"""Greed by itself: in which order sets are placed, beside what, and which are placed together."""

from __future__ import annotations

from unittest import mock

import pytest

from mcad.core.capacity import Capacity
from mcad.core.fit import greedy
from mcad.core.fit.greedy import Nodes, greedy_work, pack
from mcad.core.state.model import Constraint, PodSet
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.builders import cluster, fits, hold, needs, node, on, pods, refused


def at(*names: str) -> Constraint:
    """On these nodes alone."""
    return on((needs("metadata.name", "In", *names, field=True),))


def places(capacity: Capacity, *sets: PodSet) -> dict[str, tuple[int, ...]]:
    hold(capacity, "gang", *sets)
    return capacity.gangs.places_of("gang")


def test_large_pods_go_first_so_that_no_search_is_needed() -> None:
    with mock.patch.object(greedy, "exact", side_effect=AssertionError("searched")):
        assert fits(cluster(node("a", "4"), node("b", "4")), pods(2, "1"), pods(2, "3", item=1))


def test_pods_keep_off_the_nodes_of_a_daemonset_that_they_exclude() -> None:
    """Beside a third set, with which they are tried together."""
    sets = (
        pods(0, "1", per_node=True, where=at("a"), repelled=(0,)),
        pods(1, "1", item=1, repels=(0,)),
        pods(1, "2", item=2),
    )
    found = places(cluster(node("a", "4"), node("b", "4")), *sets)
    assert found["b"][1] == 1


def test_pods_of_a_daemonset_take_room() -> None:
    """The sums suffice, and two CPUs are left on each node."""
    sets = (pods(0, "3", per_node=True), pods(1, "3", item=1), pods(1, "1", item=2))
    found = refused(cluster(node("a", "5"), node("b", "5")), *sets)
    assert found.reason is WaitingReason.FRAGMENTED


def test_sets_that_share_nodes_with_one_and_the_same_set_are_placed_together() -> None:
    """Greed puts the large pod on ``a``, where the last one has to go."""
    nodes = (node("a", "4"), node("b", "5"))
    sets = (pods(1, "3"), pods(1, "2", item=1, where=at("b")), pods(1, "2", item=2, where=at("a")))
    assert places(cluster(*nodes), *sets) == {"a": (0, 0, 1), "b": (1, 1, 0)}


@pytest.mark.parametrize(("tried", "cpu"), [(0, "1"), (1, "2")])
def test_each_try_after_the_first_is_work(tried: int, cpu: str) -> None:
    """The first one takes the most slots: the small pod goes to ``b``, where two large ones may
    have to go."""
    capacity = cluster(node("a", "3"), node("b", "4"))
    sets = (pods(1, "2"), pods(2, cpu, item=1, where=at("b")))
    prospect = capacity._memory.hold(capacity.shape(sets))
    found = pack(prospect, Nodes(capacity._ledger.free, most_first=True), 0, {"cpu": 7000})
    assert found.plan is not None
    assert found.work == tried * greedy_work(2, capacity._ledger.free.rows)
