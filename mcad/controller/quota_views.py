"""Quota trees as JSON, for the HTTP port and ``mcad quota``.

Amounts are Kubernetes quantities as strings, as in views.py; zeros are left out except in
``nominal``.
"""

from collections.abc import Iterator
from typing import Any

from mcad.controller.views import quantities, row_view
from mcad.core.cluster import Cluster
from mcad.core.quota import report
from mcad.core.quota.tree import Fault, Tree
from mcad.core.state.model import Workload
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import BOOKS
from mcad.core.state.records import asdict
from mcad.core.views import holders
from mcad.core.views.rows import Picture

Json = dict[str, Any]


def trees_view(cluster: Cluster, *, enabled: bool) -> Json:
    """``{"enabled": ..., "trees": [...]}``: whether quota is on, and all defined trees."""
    return {"enabled": enabled, "trees": list(tree_steps(cluster))}


def tree_steps(cluster: Cluster) -> Iterator[Json]:
    """The trees of ``trees_view``, one by one. An invalid tree has no nodes, but ``faults``."""
    for name in cluster.forest.names():
        tree = cluster.forest.trees.get(name)
        yield {
            "tree": name,
            "resources": sorted(tree.named) if tree is not None else [],
            "nodes": list(_nodes(cluster, tree)) if tree is not None else [],
            "faults": [_fault(cluster, one) for one in cluster.forest.faults(name)],
            "warnings": [
                *cluster.forest.absent.texts(name),
                *(report.overcommitted(tree).values() if tree is not None else ()),
            ],
        }


def node_steps(cluster: Cluster, picture: Picture, tree: str, node: str) -> Iterator[Json | None]:
    """The figures, ``holders`` and ``queue`` of a node, after None for each step of work.

    Yields nothing if the node does not exist.
    """
    grown = cluster.forest.trees.get(tree)
    if grown is None or node not in grown.nodes:
        return
    figures = _nodes(cluster, grown)
    found = next(one for one in figures if one["node"] == node)
    queue = []

    def wanted(_: int, work: Workload) -> bool:
        return holders.leads_to(grown, holders.leaf_of(work, tree), node)

    for row in picture.rows(wanted):
        yield None
        if row is not None and row.position:
            work = cluster.entries[row.uid].workload if row.uid in cluster.entries else None
            leaf = holders.leaf_of(work, tree) if work is not None else ""
            queue.append(row_view(row) | {"leaf": leaf})
    held_by = [
        asdict(one) | {"amounts": quantities(one.amounts)}
        for one in holders.holders(cluster, grown, node)
    ]
    yield {"tree": tree, **found, "holders": held_by, "queue": queue}


def _nodes(cluster: Cluster, tree: Tree) -> Iterator[Json]:
    """The nodes from the root down, each before its children."""
    figures = report.figures(cluster.forest, tree, cluster.admission.demand)
    for name, node in tree.nodes.items():
        yield {
            "node": name,
            "parent": node.chain[1].name if len(node.chain) > 1 else "",
            "path": [one.name for one in node.chain],
            "hardLimit": node.hard,
            "leaf": not node.children,
            **{
                book: {one: format_amount(one, n) for one, n in getattr(figures[name], book)}
                for book in BOOKS
            },
        }


def _fault(cluster: Cluster, fault: Fault) -> Json:
    return {
        "quotaSubtree": cluster.forest.subtrees[fault.uid].title,
        "node": fault.child,
        "reason": fault.flaw.value,
        "message": fault.message,
    }
