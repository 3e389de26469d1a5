"""A gang in flight and one more that fits: whether any order of binding strands one of them.

Rule R2 of the core, by brute force over all orders and nodes.
"""

from __future__ import annotations

from random import Random

import pytest

from mcad.core.capacity import Capacity
from mcad.core.state.model import PodSet
from tests.core.assumed.test_apart import Free, can_strand, gpus
from tests.core.builders import cluster, hold, node, on, pod


def may_strand(capacity: Capacity, *flying: str, gang: tuple[PodSet, ...]) -> bool:
    """Whether this gang, which fits, and those in flight could keep each other from nodes."""
    shape = capacity.shape(gang)
    assert capacity.refusal(shape) is None, "it fits"
    capacity.remember(shape)
    try:
        return capacity.may_strand(capacity.in_flight(flying), shape)
    finally:
        capacity.forget(shape)


def test_a_small_pod_in_flight_may_take_the_node_that_a_large_one_needs() -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "small", gpus(1, 1))
    assert may_strand(capacity, "small", gang=(gpus(1, 8),))


def test_a_small_pod_may_take_the_node_of_a_large_one_in_flight() -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "large", gpus(1, 8))
    assert may_strand(capacity, "large", gang=(gpus(1, 1),))


def test_a_pod_that_is_bound_harms_none() -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "small", gpus(1, 1))
    capacity.pod_seen(pod("small-0", "part", gpu=1, of="small", item=0, index=0))
    assert not may_strand(capacity, "small", gang=(gpus(1, 8),))


def test_all_gangs_in_flight_count() -> None:
    capacity = cluster(node("whole", gpu=8), node("rest", gpu=8), node("part", gpu=7))
    hold(capacity, "first", gpus(1, 1))
    assert not may_strand(capacity, "first", gang=(gpus(1, 8),))
    hold(capacity, "second", gpus(1, 1))
    assert may_strand(capacity, "first", "second", gang=(gpus(1, 8),))


def test_equal_pods_never_wait_for_each_other() -> None:
    capacity = cluster(node("a", gpu=8), node("b", gpu=8))
    hold(capacity, "one", gpus(8, 1))
    assert not may_strand(capacity, "one", gang=(gpus(8, 1),))


def test_where_there_is_room_for_any_order_no_gang_waits() -> None:
    capacity = cluster(*(node(name, gpu=8) for name in ("a", "b", "c")))
    hold(capacity, "small", gpus(1, 1))
    assert not may_strand(capacity, "small", gang=(gpus(1, 8),))


def test_pods_on_other_nodes_do_not_count() -> None:
    whole, part = node("whole", gpu=8), node("part", gpu=7, labels={"pool": "small"})
    capacity = cluster(whole, part)
    hold(capacity, "small", gpus(1, 1, where=on(pool="small")))
    assert not may_strand(capacity, "small", gang=(gpus(1, 8),))


def test_nodes_that_pods_in_flight_are_kept_off_are_safe_from_them() -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7, labels={"pool": "small"}))
    hold(capacity, "gang", gpus(1, 1), gpus(1, 8, item=1))
    more = (gpus(1, 1, where=on(pool="small")),)
    assert may_strand(capacity, "gang", gang=more), "the small pod of the gang may go anywhere"
    assert capacity.kept_apart("gang", 0), "its template is written"
    assert not may_strand(capacity, "gang", gang=more)


def test_a_test_that_takes_too_much_work_lets_the_gang_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "small", gpus(1, 1))
    monkeypatch.setattr("mcad.core.assumed.in_flight.IN_FLIGHT_ROWS_MAX", 0)
    assert not may_strand(capacity, "small", gang=(gpus(1, 8),))


# -- every order, every node ---------------------------------------------------------------------


def drawn(rng: Random) -> tuple[Free, list[PodSet]]:
    """A few nodes, one or two gangs in flight and one that may fit beside them."""
    free = tuple(rng.randint(1, 8) for _ in range(rng.randint(2, 4)))
    return free, [gpus(rng.randint(1, 3), rng.randint(1, 8)) for _ in range(rng.randint(2, 3))]


@pytest.mark.parametrize("begin", range(0, 1200, 400))
def test_no_order_strands_a_gang_that_was_not_made_to_wait(begin: int) -> None:
    waits, needless, goes = 0, 0, 0
    for seed in range(begin, begin + 400):
        free, sets = drawn(Random(f"in flight {seed}"))
        capacity = cluster(*(node(str(at), gpu=n) for at, n in enumerate(free)))
        flying: list[PodSet] = []
        for one in sets:
            if capacity.refusal(capacity.shape((one,))) is not None:
                continue
            names = [str(number) for number in range(len(flying))]
            sizes, left = amounts((*flying, one))
            strands = can_strand(free, sizes, left, (frozenset(),) * len(sizes))
            if flying and may_strand(capacity, *names, gang=(one,)):
                waits += 1
                needless += not strands
                continue
            goes += bool(flying)
            assert not (flying and strands), f"{seed=} {free=} {sizes=} {left=}"
            assert capacity.assume(str(len(flying)), 1, capacity.shape((one,)), (one,)) is None
            flying.append(one)
    assert waits > 20
    assert goes > 20
    assert needless < waits / 2, "the bound is close enough to be of use"


def amounts(sets: tuple[PodSet, ...]) -> tuple[Free, Free]:
    """The GPUs of a pod, and the pods, of each set."""
    gpus_each = tuple(dict(one.request)["nvidia.com/gpu"] for one in sets)
    return gpus_each, tuple(one.replicas for one in sets)
