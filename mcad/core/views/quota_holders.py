"""Quota for people: what is demanded of each leaf, and which AppWrappers use what below a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcad.core.cluster import Cluster
from mcad.core.quota.tree import Tree
from mcad.core.state.entry import Entry
from mcad.core.state.model import Resources, Workload
from mcad.core.state.quota_records import Designation
from mcad.core.state.records import Struct
from mcad.core.status.status import state


class Holder(Struct, frozen=True):
    """An AppWrapper that is charged below a node, and what for, as far as the tree names it.

    ``leaf`` may be missing in the tree: then it counts at the root. ``name`` is "" for an
    AppWrapper that was deleted while no dispatcher ran.
    """

    uid: str
    namespace: str
    name: str
    state: str
    leaf: str
    amounts: Resources


def waiting(cluster: Cluster) -> dict[str, Mapping[str, Resources]]:
    """What the AppWrappers in line demand, by tree and leaf."""
    asked, demand = cluster.forest.waiting, cluster.admission.demand
    return {tree: asked.of(tree, demand) for tree in cluster.forest.names()}


def leads_to(tree: Tree, leaf: str, node: str) -> bool:
    """Whether a charge to the leaf counts at the node."""
    return any(one.name == node for one in tree.node_of(leaf).chain)


def leaf_of(work: Workload, tree: str) -> str:
    """The leaf that an AppWrapper names in a tree."""
    return Designation(work.quota).leaf(tree)


def paths(cluster: Cluster, entry: Entry) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(tree, leaf, nodes from there to the root) in every tree that is in force: where it is
    charged, or would be. A leaf that the tree does not have leads nowhere."""
    for name, leaf in cluster.forest.path_of(entry.uid) or cluster.path(entry):
        tree = cluster.forest.tree(name)
        node = tree.nodes.get(leaf) if tree is not None else None
        is_leaf = node is not None and not node.children
        yield name, leaf, tuple(one.name for one in node.chain) if node and is_leaf else ()


def holders(cluster: Cluster, tree: Tree, node: str) -> Iterator[Holder]:
    """What is charged at the node or below it, of what the tree names, by namespace and name."""
    found = [
        _holder(cluster, tree, *charge)
        for charge in cluster.forest.held(tree.name)
        if leads_to(tree, charge[1], node)
    ]
    yield from sorted(
        (one for one in found if one.amounts), key=lambda one: (one.namespace, one.name, one.uid)
    )


def _holder(cluster: Cluster, tree: Tree, uid: str, leaf: str, amounts: Resources) -> Holder:
    entry = cluster.entries.get(uid)
    named = tuple(each for each in amounts if each[0] in tree.named)
    if entry is None or entry.rebuilt:
        return Holder(uid, "", "", "", leaf, named)
    work = entry.workload
    return Holder(uid, work.namespace, work.name, str(state(entry)), leaf, named)
