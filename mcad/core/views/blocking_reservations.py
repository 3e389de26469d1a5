"""For people: which claims keep a waiting AppWrapper off room that it would need."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.cluster import World
from mcad.core.quota import holders
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Claim


def in_the_way(world: World, entry: Entry, refusal: Refusal | None) -> list[tuple[Entry, Claim]]:
    """The claims on what refuses an AppWrapper in line with their owners, the oldest first; none if
    nothing does.

    On nodes those count where pods of both could go, in a quota tree those that are charged at the
    node that refuses. Whether it would fit without them is not asked.
    """
    if refusal is None:
        return []
    claims = [
        (other, other.claim)
        for other in world.claims.values()
        if other.claim is not None
        and other is not entry
        and _is_in_the_way(world, refusal, entry, other)
    ]
    return sorted(claims, key=lambda one: (one[1].since, one[0].uid))


def _is_in_the_way(world: World, refusal: Refusal, entry: Entry, owner: Entry) -> bool:
    limit = refusal.quota
    if limit is not None:
        return (limit.tree, limit.node) in _charged(world, owner)
    shape = world.capacity.shape
    return world.capacity.compete(shape(entry.workload.sets), shape(owner.workload.sets))


def _charged(world: World, owner: Entry) -> Iterator[tuple[str, str]]:
    """(tree, node) of every node of quota trees on its way to the roots."""
    return ((tree, node) for tree, _, nodes in holders.paths(world, owner) for node in nodes)
