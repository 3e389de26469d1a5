"""Which reservations keep a waiting AppWrapper off room that it would need."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Reservation
from mcad.core.views import quota_holders


def in_the_way(
    cluster: Cluster, entry: Entry, refusal: Refusal | None
) -> list[tuple[Entry, Reservation]]:
    """The reservations on what refuses a waiting AppWrapper, with their owners, the oldest first;
    none if nothing refuses it.

    On nodes these are the reservations with pods that could go to the same nodes, in a quota tree
    those charged at the node that refuses. Whether the AppWrapper would fit without them is not
    asked.
    """
    if refusal is None:
        return []
    reservations = [
        (other, other.reservation)
        for other in cluster.reservations.values()
        if other.reservation is not None
        and other is not entry
        and _is_in_the_way(cluster, refusal, entry, other)
    ]
    return sorted(reservations, key=lambda one: (one[1].since, one[0].uid))


def _is_in_the_way(cluster: Cluster, refusal: Refusal, entry: Entry, owner: Entry) -> bool:
    limit = refusal.quota
    if limit is not None:
        return (limit.tree, limit.node) in _charged(cluster, owner)
    shape = cluster.capacity.shape
    return cluster.capacity.compete(shape(entry.workload.sets), shape(owner.workload.sets))


def _charged(cluster: Cluster, owner: Entry) -> Iterator[tuple[str, str]]:
    """(tree, node) of every node of quota trees on its way to the roots."""
    return (
        (tree, node) for tree, _, nodes in quota_holders.paths(cluster, owner) for node in nodes
    )
