"""Sets that could strand each other get nodes of their own, and only those (core R2)."""

from __future__ import annotations

from mcad.core.capacity import Capacity
from mcad.core.state.model import KeptApart, PodSet
from tests.core.builders import cluster, hold, node, pods


def _gpus(replicas: int, each: int, item: int = 0) -> PodSet:
    return pods(replicas, "0", gpu=each, item=item)


def _held(capacity: Capacity, *sets: PodSet) -> dict[str, tuple[int, ...]]:
    hold(capacity, "gang", *sets)
    return capacity.gangs.places_of("gang")


def test_sets_that_could_strand_each_other_share_no_node_if_there_are_others() -> None:
    """Small pods on both nodes would leave a single one for two large ones."""
    capacity = cluster(node("two", gpu=2), node("four", gpu=4))
    assert _held(capacity, _gpus(2, 1), _gpus(2, 2, item=1)) == {"two": (2, 0), "four": (0, 2)}
    small, large = capacity.gangs.keep_apart("gang")
    assert small == KeptApart(0, "items[0].sets[0]", ("four",))
    assert large == KeptApart(1, "items[1].sets[0]", ("two",))


def test_sets_that_cannot_strand_each_other_share_nodes() -> None:
    capacity = cluster(node("a", gpu=8), node("b", gpu=8))
    assert len(_held(capacity, _gpus(2, 1), _gpus(1, 2, item=1))) == 1


def test_where_only_a_shared_node_has_room_it_is_shared() -> None:
    capacity = cluster(node("a", gpu=9))
    assert _held(capacity, _gpus(1, 1), _gpus(1, 8, item=1)) == {"a": (1, 1)}
