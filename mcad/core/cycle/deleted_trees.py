"""The record since when a quota tree is deleted: a restart does not begin its grace anew.

A few AppWrappers of the tree carry it in ``status.quota``; a write for each would be too many.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import ENDED
from mcad.core.state.units import Instant

RECORDED_MAX = 8
"""How many AppWrappers carry a record: some may end or be deleted within the grace period."""


def recall(cluster: Cluster, restored: Iterable[Entry]) -> None:
    """Find after a start which AppWrappers carry which record."""
    for entry in restored:
        for tree, _ in entry.deleted_trees:
            cluster.deleted_trees.setdefault(tree, {})[entry.uid] = None


def since(cluster: Cluster, tree: str) -> Instant:
    """Since when the tree is deleted by the records, 0 without a record."""
    carriers = cluster.known(cluster.deleted_trees.get(tree, ()))
    found = (at for entry in carriers for name, at in entry.deleted_trees if name == tree)
    return min(found, default=0)


def record(cluster: Cluster) -> None:
    """Record the deletion of deleted trees, and end the records of all other trees."""
    deleted, recorded = cluster.forest.deleted, cluster.deleted_trees
    for tree in [one for one in recorded if one not in deleted]:
        for entry in cluster.known(recorded.pop(tree)):
            entry.deleted_trees = tuple(one for one in entry.deleted_trees if one[0] != tree)
            cluster.settle(entry)
    for tree in deleted.keys() - recorded.keys():
        carriers = islice(_of(cluster, tree), RECORDED_MAX)
        recorded[tree] = {entry.uid: None for entry in carriers}
        for entry in cluster.known(recorded[tree]):
            entry.deleted_trees = tuple(sorted((*entry.deleted_trees, (tree, deleted[tree]))))
            cluster.settle(entry)


def _of(cluster: Cluster, tree: str) -> Iterable[Entry]:
    """The AppWrappers of the tree whose status is still written."""
    return (
        entry
        for entry in cluster.entries.values()
        if entry.phase not in ENDED and any(name == tree for name, _ in entry.path)
    )
