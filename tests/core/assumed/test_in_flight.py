"""A gang in flight and one more that fits: whether any order of binding strands one of them.

Rule R2 of the core, by brute force over all orders and nodes.
"""

from __future__ import annotations

from random import Random

import pytest

from mcad.core.capacity import Capacity
from mcad.core.state.model import PodSet
from tests import budget
from tests.core.assumed.test_apart import Free, can_strand, gpus
from tests.core.builders import cluster, hold, node, on, pod


def may_strand(capacity: Capacity, *flying: str, gang: tuple[PodSet, ...]) -> bool:
    """Whether this gang, which fits, and those in flight could keep each other from nodes."""
    shape = capacity.shape(gang)
    assert capacity.refusal(shape) is None, "it fits"
    capacity.remember(shape)
    try:
        return capacity.may_strand(capacity.gangs.in_flight(flying), shape)
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
    assert capacity.gangs.keep_apart("gang"), "its intent is on record"
    assert not may_strand(capacity, "gang", gang=more)


def test_an_equal_pod_in_flight_that_is_kept_off_nodes_needs_those_that_are_left() -> None:
    capacity = cluster(node("one", gpu=8), node("two", gpu=9), node("part", gpu=1))
    hold(capacity, "gang", gpus(1, 1), gpus(2, 8, item=1))
    assert [one.nodes for one in capacity.gangs.keep_apart("gang")] == [("one", "two")]
    for name in ("one", "two"):
        capacity.pod_seen(pod(f"large-{name}", name, gpu=8, of="gang", item=1, index=0))
    assert may_strand(capacity, "gang", gang=(gpus(1, 1),)), "one GPU is free on two and on part"


def test_a_pod_in_flight_and_a_set_of_the_gang_may_fill_a_node_together() -> None:
    capacity = cluster(*(node(str(at), gpu=n) for at, n in enumerate((8, 6, 3, 7))))
    hold(capacity, "small", gpus(1, 3))
    assert may_strand(capacity, "small", gang=(gpus(1, 2), gpus(1, 7, item=1)))


def test_a_test_that_takes_too_much_work_lets_the_gang_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "small", gpus(1, 1))
    monkeypatch.setattr("mcad.core.assumed.in_flight.IN_FLIGHT_WORK_MAX", 0)
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


def gangs(rng: Random) -> tuple[Free, list[tuple[PodSet, ...]]]:
    """A few nodes and two or three gangs, of one set or of two."""
    free = tuple(rng.randint(1, 8) for _ in range(rng.randint(2, 4)))
    counts = [rng.choice((1, 1, 2)) for _ in range(rng.randint(2, 3))]
    return free, [
        tuple(gpus(rng.randint(1, 2), rng.randint(1, 8), item=item) for item in range(count))
        for count in counts
    ]


def left_out(capacity: Capacity, uid: str, gang: tuple[PodSet, ...]) -> tuple[frozenset[int], ...]:
    """The nodes that the templates of each set leave to the other, as its intent says."""
    kept = {one.item: one.nodes for one in capacity.gangs.keep_apart(uid)}
    return tuple(frozenset(map(int, kept.get(item, ()))) for item in range(len(gang)))


@pytest.mark.parametrize("begin", budget.slow_but_first(range(0, 3000, 1000)))
def test_no_order_strands_a_gang_of_several_sets_beside_others(begin: int) -> None:
    waits, goes = 0, 0
    for seed in range(begin, begin + 1000):
        rng = Random(f"sets in flight {seed}")
        free, drawn_gangs = gangs(rng)
        capacity = cluster(*(node(str(at), gpu=n) for at, n in enumerate(free)))
        flying: dict[str, tuple[PodSet, ...]] = {}
        off: dict[str, tuple[frozenset[int], ...]] = {}
        for uid, gang in zip("abc", drawn_gangs, strict=False):
            if capacity.refusal(capacity.shape(gang)) is not None:
                continue
            if flying and may_strand(capacity, *flying, gang=gang):
                waits += 1
                continue
            assert capacity.assume(uid, 1, capacity.shape(gang), gang) is None
            flying[uid] = gang
            off[uid] = left_out(capacity, uid, gang)
        alone = any(can_strand(free, *amounts(flying[uid]), off[uid]) for uid in flying)
        if len(flying) > 1 and not alone:
            goes += 1
            together = tuple(one for gang in flying.values() for one in gang)
            barred = tuple(one for each in off.values() for one in each)
            assert not can_strand(free, *amounts(together), barred), f"{seed=} {free=} {flying=}"
    assert waits > 100
    assert goes > 100


def amounts(sets: tuple[PodSet, ...]) -> tuple[Free, Free]:
    """The GPUs of a pod, and the pods, of each set."""
    gpus_each = tuple(dict(one.request)["nvidia.com/gpu"] for one in sets)
    return gpus_each, tuple(one.replicas for one in sets)
