"""Interning: equal gangs are one shape, and what nobody uses any more is dropped."""

import gc

import pytest

from mcad.core.capacity import Capacity, Shape
from mcad.core.capacity import shapes as shapes_module
from mcad.core.capacity.resources import resources, total, with_pod_slot
from mcad.core.invariants import InvariantViolated, check
from mcad.core.model import Settings
from tests.core.builders import cluster, node, on, pods, wants


def pools_of(capacity: Capacity) -> int:
    return len(capacity._ledger.pools())


def test_pools_that_nobody_uses_are_dropped_and_those_in_use_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shapes_module, "POOLS_KEPT_MIN", 4)
    capacity = Capacity(Settings())
    capacity._shapes._pools_max = 4
    capacity.node_seen(node("a", labels={"zone": "z0"}))
    waiting = capacity.shape((pods(1, where=on(zone="z0")),))
    held = (pods(1, "2", where=on(zone="z0", other="")),)
    capacity.adopt("held", 1, capacity.shape(held), held)
    for i in range(100):
        capacity.shape((pods(1, where=on(zone=f"z{i}")),))
    gc.collect()
    capacity.shape((pods(1, where=on(last="")),))

    assert pools_of(capacity) <= 8
    assert capacity.shape((pods(1, where=on(zone="z0")),)) is waiting
    assert capacity.refusal(waiting) is None
    capacity.node_seen(node("b", labels={"zone": "z0", "other": ""}))
    capacity.rehome()
    assert capacity.totals().adrift == ()
    capacity.check()


def test_a_shape_that_comes_back_after_it_was_dropped_is_as_good_as_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shapes_module, "POOLS_KEPT_MIN", 1)
    capacity = cluster(node("a", labels={"zone": "z0"}))
    capacity._shapes._pools_max = 1
    for _ in range(3):
        for i in range(4):
            shape = capacity.shape((pods(4, where=on(zone=f"z{i}")),))
            assert (capacity.refusal(shape) is None) is (i == 0)
    capacity.check()


def test_a_shape_may_be_a_key() -> None:
    capacity = cluster()
    one, other = capacity.shape((pods(1),)), capacity.shape((pods(2),))

    assert {one: 1, other: 2}[capacity.shape((pods(1),))] == 1
    assert isinstance(one, Shape)


# -- small things --------------------------------------------------------------------------------


def test_resources_are_sorted_and_without_zeros() -> None:
    assert resources({"b": 1, "a": 2, "c": 0}) == (("a", 2), ("b", 1))
    assert total([((("a", 1),), 2), ((("a", 1), ("b", 1)), -2)]) == (("b", -2),)


def test_a_pod_takes_one_of_the_nodes_pods_unless_it_says_otherwise() -> None:
    assert with_pod_slot(wants("1")) == wants("1", pods="1")
    assert with_pod_slot(wants("1", pods="3")) == wants("1", pods="3")


def test_a_violated_invariant_has_a_name_and_a_story() -> None:
    check(True, "never", "")
    with pytest.raises(InvariantViolated) as caught:
        check(False, "books-balance", "node a: 1 is not 2")

    assert (caught.value.name, caught.value.story) == ("books-balance", "node a: 1 is not 2")
    assert str(caught.value) == "books-balance: node a: 1 is not 2"
