"""Which AppWrappers hold quota below a node of a tree, or reserved room, for which others wait."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.cluster import Cluster
from mcad.core.quota.tree import Tree
from mcad.core.state.entry import Entry
from mcad.core.state.model import Resources, Workload
from mcad.core.state.quota_records import Designation
from mcad.core.state.records import Struct
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Reservation
from mcad.core.status.status import state


class ShareHolder(Struct, frozen=True):
    """An AppWrapper that is charged below a node, and its charge in the resources of the tree.

    ``leaf`` may be missing in the tree: then it counts at the root. ``name`` is "" for an
    AppWrapper that was deleted while no dispatcher ran.
    """

    namespace: str
    name: str
    uid: str
    state: str
    leaf: str
    amounts: Resources


def leads_to(tree: Tree, leaf: str, node: str) -> bool:
    """Whether a charge to the leaf counts at the node."""
    return any(one.name == node for one in tree.node_of(leaf).chain)


def leaf_of(work: Workload, tree: str) -> str:
    """The leaf that an AppWrapper names in a tree."""
    return Designation(work.quota).leaf(tree)


def paths(cluster: Cluster, entry: Entry) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(tree, leaf, nodes from there to the root) in every tree in force: where the AppWrapper is
    charged, or would be. A leaf that the tree does not have leads nowhere."""
    for name, leaf in cluster.forest.path_of(entry.uid) or cluster.path(entry):
        tree = cluster.forest.trees.get(name)
        node = tree.nodes.get(leaf) if tree is not None else None
        is_leaf = node is not None and not node.children
        yield name, leaf, tuple(one.name for one in node.chain) if node and is_leaf else ()


def holders(cluster: Cluster, tree: Tree, node: str) -> list[ShareHolder]:
    """The charges at the node or below it, in the resources of the tree, by namespace and name."""
    found = []
    for uid, (designation, amounts, *_) in cluster.forest.charges.items():
        leaf = designation.leaf(tree.name)
        named = tuple(each for each in amounts if each[0] in tree.named)
        if not named or not leads_to(tree, leaf, node):
            continue
        namespace = name = shown = ""
        entry = cluster.entries.get(uid)
        if entry is not None and not entry.rebuilt:
            namespace, name = entry.workload.namespace, entry.workload.name
            shown = str(state(entry))
        found.append(ShareHolder(namespace, name, uid, shown, leaf, named))
    return sorted(found, key=lambda one: (one.namespace, one.name, one.uid))


def counted(cluster: Cluster, tree: str, node: str) -> frozenset[str]:
    """The uids of the AppWrappers that count at a node of a tree: charged there or below, or in
    line for it. No AppWrapper counts at a node that does not exist."""
    grown = cluster.forest.trees.get(tree)
    if grown is None or node not in grown.nodes:
        return frozenset()
    leads: dict[str, bool] = {}
    found = {one.uid for one in holders(cluster, grown, node)}
    for uid in cluster.waiting.queue.places():
        leaf = leaf_of(cluster.entries[uid].workload, tree)
        if leaf not in leads:
            leads[leaf] = leads_to(grown, leaf, node)
        if leads[leaf]:
            found.add(uid)
    return frozenset(found)


def in_the_way(
    cluster: Cluster, entry: Entry, refusal: Refusal | None
) -> list[tuple[Entry, Reservation]]:
    """The reservations on the refused room or share of a waiting AppWrapper, with their owners, the
    oldest first; none without a refusal.

    On nodes these are the reservations with pods that could go to the same nodes, in a quota tree
    the reservations charged at the refusing node. Whether the AppWrapper would fit without them is
    not checked.
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
    limit, shape = refusal.quota, cluster.capacity.shape
    if limit is None:
        return cluster.capacity.compete(shape(entry.workload.sets), shape(owner.workload.sets))
    charged = paths(cluster, owner)
    return any(tree == limit.tree and limit.node in nodes for tree, _, nodes in charged)
