"""Pods of one gang do not take each other's nodes, in whatever order and wherever they are bound.

Rule R2 of the core, by brute force over all orders and nodes."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from mcad.core.capacity import Capacity
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.model import KeptApart, PodSet
from mcad.core.state.records import replace
from mcad.core.state.settings import Fit, Settings
from tests.core.builders import cluster, hold, may_share, node, pods

Free = tuple[int, ...]


def gpus(replicas: int, each: int, item: int = 0, **more: Any) -> PodSet:
    """Pods of so many GPUs and nothing else."""
    return pods(replicas, "0", gpu=each, item=item, **more)


def off(capacity: Capacity, *items: int) -> list[KeptApart]:
    """What the templates of these items leave to others."""
    return [one for item in items for one in capacity.gangs.keep_apart("gang") if one.item == item]


def test_a_small_pod_leaves_the_node_that_the_large_one_needs() -> None:
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "gang", gpus(1, 1), gpus(1, 8, item=1))
    assert off(capacity, 0) == [KeptApart(0, "items[0].sets[0]", ("whole",))]
    assert off(capacity, 1) == []


def test_pods_of_an_item_that_may_run_for_ever_only_prefer_other_nodes() -> None:
    """So the dispatcher finds places for its replacements there as well, as kube-scheduler does."""
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7))
    hold(capacity, "gang", gpus(1, 1), gpus(1, 8, item=1))
    (kept,) = capacity.gangs.keep_apart("gang", lasting=[0])
    assert (kept.nodes, kept.preferred) == (("whole",), True)
    (one, *_) = capacity._assumed.allotments("gang")
    assert one.gang.apart == {}
    capacity.gangs.note_apart("gang", [replace(kept, preferred=False)])
    assert one.gang.apart == {0: ("whole",)}


def test_where_there_is_room_for_any_order_nothing_is_kept_apart() -> None:
    capacity = cluster(*(node(name, gpu=8) for name in ("a", "b", "c")))
    hold(capacity, "gang", gpus(1, 1), gpus(1, 8, item=1))
    assert off(capacity, 0, 1) == []


def test_equal_pods_of_several_items_cannot_strand_each_other() -> None:
    capacity = cluster(node("a", gpu=8), node("b", gpu=8))
    hold(capacity, "gang", gpus(8, 1), gpus(8, 1, item=1))
    assert off(capacity, 0, 1) == []


def test_each_template_of_an_item_leaves_other_nodes() -> None:
    capacity = cluster(node("cpu", "20", gpu=0), node("gpu", "14", gpu=8), node("full", "1"))
    head, workers = pods(1, "12"), pods(1, "4", gpu=8, index=1)
    hold(capacity, "gang", head, workers)
    assert off(capacity, 0) == [KeptApart(0, head.path, ("gpu",))]


def test_a_node_that_both_are_planned_on_is_left_to_both() -> None:
    capacity = cluster(node("a", gpu=9))
    hold(capacity, "gang", gpus(1, 1), gpus(1, 8, item=1))
    assert off(capacity, 0, 1) == []


def test_more_nodes_than_a_template_can_name_are_not_named() -> None:
    for count in (AVOIDED_MAX, AVOIDED_MAX + 1):
        names = sorted(f"n{number}" for number in range(count))
        capacity = cluster(*(node(name, gpu=8) for name in names), node("part", gpu=7))
        hold(capacity, "gang", pods(1, gpu=1), gpus(count, 8, item=1))
        kept = [tuple(names)] if count <= AVOIDED_MAX else []
        assert [one.nodes for one in off(capacity, 0)] == kept


def test_where_only_sums_count_no_pod_has_a_node() -> None:
    settings = Settings(fit=Fit.AGGREGATE)
    capacity = cluster(node("whole", gpu=8), node("part", gpu=7), settings=settings)
    hold(capacity, "gang", gpus(1, 1), gpus(1, 8, item=1))
    assert off(capacity, 0, 1) == []


# -- every order, every node ---------------------------------------------------------------------


Pairs = frozenset[tuple[int, int]]
"""Sets that share no node, in both orders; one that excludes itself is paired with itself."""


def can_strand(
    free: Free,
    sizes: Free,
    left: Free,
    barred: tuple[frozenset[int], ...],
    apart: Pairs = frozenset(),
) -> bool:
    """Whether the pods of the sets can be bound in such a way that one of them finds no node."""
    seen: set[tuple[Free, Free, tuple[Free, ...]]] = set()

    def strands(free: Free, left: Free, there: tuple[Free, ...]) -> bool:
        if (free, left, there) in seen:
            return False
        seen.add((free, left, there))
        for one, size in enumerate(sizes):
            if not left[one]:
                continue
            fitting = [
                at
                for at, room in enumerate(free)
                if room >= size and at not in barred[one]
                if not any((one, other) in apart for other in there[at])
            ]
            if not fitting:
                return True
            after = (*left[:one], left[one] - 1, *left[one + 1 :])
            for at in fitting:
                less = (*free[:at], free[at] - size, *free[at + 1 :])
                here = tuple(sorted({*there[at], one})) if apart else ()
                if strands(less, after, (*there[:at], here, *there[at + 1 :])):
                    return True
        return False

    return strands(free, left, ((),) * len(free))


def divides(free: Free, sizes: Free, left: Free) -> bool:
    """Whether the nodes can be divided among the sets so that each has room on its own."""
    return any(
        all(
            sum(room // size for room, owner in zip(free, owners, strict=True) if owner == one)
            >= left[one]
            for one, size in enumerate(sizes)
        )
        for owners in product(range(len(sizes)), repeat=len(free))
    )


def drawn(rng: Random) -> tuple[Free, list[PodSet]]:
    """A few nodes, and a gang that may fit; now and then with equal pods in two items."""
    free = tuple(rng.randint(1, 8) for _ in range(rng.randint(2, 4)))
    sizes = rng.choices(range(1, 9), k=rng.randint(2, 3))
    sets = [gpus(rng.randint(1, 3), size, item=item) for item, size in enumerate(sizes)]
    return free, sets


@pytest.mark.parametrize("begin", range(0, 1200, 400))
def test_no_gang_strands_itself_where_its_sets_have_nodes_of_their_own(begin: int) -> None:
    would, did, shared, missed = 0, 0, 0, 0
    for seed in range(begin, begin + 400):
        free, sets = drawn(Random(f"apart {seed}"))
        capacity = cluster(*(node(str(at), gpu=n) for at, n in enumerate(free)))
        if capacity.assume("gang", 1, capacity.shape(tuple(sets)), tuple(sets)) is not None:
            continue
        sizes = tuple(dict(one.request)["nvidia.com/gpu"] for one in sets)
        left = tuple(one.replicas for one in sets)
        names = [
            frozenset(int(name) for each in off(capacity, item) for name in each.nodes)
            for item in range(len(sets))
        ]
        places = capacity.gangs.places_of("gang")
        would += can_strand(free, sizes, left, (frozenset(),) * len(sets))
        if any(sum(map(bool, counts)) > 1 for counts in places.values()):
            shared += 1
            missed += can_strand(free, sizes, left, tuple(names)) and divides(free, sizes, left)
            continue
        assert not can_strand(free, sizes, left, tuple(names)), f"{seed=}"
        did += 1
    assert would > 25
    assert did > 25
    assert shared > 5
    assert not missed  # of 6,000 one is: the nodes are divided in two ways only


def test_no_gang_strands_itself_by_anti_affinity_of_its_sets() -> None:
    """Equal sets that exclude themselves or each other: what they leave each other is enough
    wherever each has nodes of its own."""
    would = did = 0
    for seed in range(600):
        rng = Random(f"apart by terms {seed}")
        free, sets = drawn(rng)
        terms = [[(), (0,)][rng.random() < 0.6] for _ in (*sets, *sets)]
        made = []
        for one, repels, repelled in zip(sets, terms[::2], terms[1::2], strict=True):
            cap = 1 if repels and repelled else rng.choice([0, 1])
            made.append(replace(one, cap=cap, repels=repels, repelled=repelled))
        capacity = cluster(*(node(str(at), gpu=n) for at, n in enumerate(free)))
        if capacity.assume("gang", 1, capacity.shape(tuple(made)), tuple(made)) is not None:
            continue
        numbers = range(len(made))
        apart = frozenset(
            (a, b)
            for a in numbers
            for b in numbers
            if not may_share(made[a], made[b]) or (a == b and made[a].cap)
        )
        sizes = tuple(dict(one.request)["nvidia.com/gpu"] for one in made)
        left = tuple(one.replicas for one in made)
        would += can_strand(free, sizes, left, (frozenset(),) * len(made), apart)
        if any(sum(map(bool, counts)) > 1 for counts in capacity.gangs.places_of("gang").values()):
            continue
        names = tuple(
            frozenset(int(name) for each in off(capacity, item) for name in each.nodes)
            for item in numbers
        )
        assert not can_strand(free, sizes, left, names, apart), f"{seed=}"
        did += 1
    assert would > 25
    assert did > 25
