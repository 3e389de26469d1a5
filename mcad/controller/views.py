"""Figures of the core as JSON, for the HTTP port and the CLI.

Amounts are Kubernetes quantities as strings, times RFC 3339.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from mcad.api.wire import format_instant
from mcad.controller.reservation_views import reservation_view
from mcad.controller.start_time_views import starts_of_line, starts_of_one
from mcad.core.assumed.node_report import NodeReport
from mcad.core.attempts import leftovers
from mcad.core.cluster import Cluster
from mcad.core.cycle import cycle
from mcad.core.quota import report
from mcad.core.quota.usage import ChargedAs
from mcad.core.running import stalls
from mcad.core.state.entry import Entry
from mcad.core.state.model import Resources, Workload
from mcad.core.state.quantity import format_amount
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.views import holders
from mcad.core.views.rows import Picture, Row, subject

Json = dict[str, Any]

WITHOUT_NODE_SHOWN = 100
AHEAD_SHOWN = 5  # of those further ahead, their number says enough


def rows_view(
    cluster: Cluster, now: Instant, *, waiting_only: bool, with_starts: bool = False
) -> Json:
    """``{"items": [...]}``: one object per AppWrapper, the queue first and in order.

    Each with its start time estimate if ``with_starts`` (start_time_views.py).
    """
    picture = Picture(cluster, now)
    rows = row_steps(cluster, picture, waiting_only=waiting_only, with_starts=with_starts)
    return {"items": [row for row in rows if row is not None]}


def row_steps(
    cluster: Cluster,
    picture: Picture,
    *,
    waiting_only: bool,
    with_starts: bool = False,
    namespace: str | None = None,
) -> Iterator[Json | None]:
    """The items of ``rows_view`` (of a namespace), one by one; None for each other step of work."""
    starts = starts_of_line(cluster, picture) if with_starts else {}

    def wanted(place: int, work: Workload) -> bool:
        is_here = namespace is None or work.namespace == namespace
        return is_here and (picture.waits(place, work) or not waiting_only)

    for row in picture.rows(wanted):
        if row is None:
            yield None
        elif with_starts:
            yield row_view(row) | {"starts": starts.get(row.uid)}
        else:
            yield row_view(row)


def detail_view(cluster: Cluster, now: Instant, namespace: str, name: str) -> Json | None:
    """One AppWrapper: row, AppWrappers ahead, items, pod sets and pods; None if unknown.

    ``figures`` has every resource of the refusal, the binding one first; the ``why`` of the row has
    only insufficient ones.
    """
    steps = detail_steps(cluster, Picture(cluster, now), namespace, name)
    return next((view for view in steps if view is not None), None)


def detail_steps(
    cluster: Cluster, picture: Picture, namespace: str, name: str
) -> Iterator[Json | None]:
    """``detail_view`` after None for each step of work."""
    title, rows = (namespace, name), []
    for row in picture.rows(
        lambda place, work: place <= AHEAD_SHOWN or (work.namespace, work.name) == title
    ):
        yield None
        if row is None:
            continue
        rows.append(row)
        if (row.namespace, row.name) == title:
            break
    else:
        return
    entry = cluster.entries.get(row.uid)
    if entry is not None:
        ahead = [one for one in rows if 0 < one.position < row.position]
        yield row_view(row) | {
            "inLine": picture.in_line,
            "ahead": [row_view(one) for one in ahead[:AHEAD_SHOWN]],
            "starts": starts_of_one(cluster, picture, entry.uid),
            **_detail(cluster, entry),
        }


def _detail(cluster: Cluster, entry: Entry) -> Json:
    eqclass = cluster.waiting.queue.eqclass_of(entry)
    refusal = cycle.verdict(cluster, cluster.capacity.questions(), eqclass) if eqclass else None
    pods = cluster.capacity.pods.counts(entry.uid)
    return {
        "dialect": entry.workload.dialect.value,
        "prioritySource": str(entry.workload.priority_source or ""),
        "warnings": list(entry.workload.warnings),
        "figures": _figures(refusal),
        **reservation_view(cluster, entry, refusal),
        "quota": _quota(cluster, entry),
        "items": _items(cluster, entry),
        "podSets": _pod_sets(cluster, entry),
        "pods": {
            "pending": pods.pending,
            "running": pods.running,
            "succeeded": pods.succeeded,
            "failed": pods.failed,
        },
    }


def capacity_view(cluster: Cluster) -> Json:
    """Capacity per node and in total: allocatable, used, reserved, free; and unplaced pods."""
    return {"nodes": list(node_steps(cluster)), **capacity_sums(cluster)}


def node_steps(cluster: Cluster) -> Iterator[Json]:
    """The nodes of ``capacity_view``, one by one."""
    return map(_node, cluster.capacity.report.nodes())


def capacity_sums(cluster: Cluster) -> Json:
    """``capacity_view`` without the nodes. ``apart`` has the sums of nodes that are tainted,
    cordoned or not ready, ``withoutNode`` the first 100 AppWrappers with pods that kube-scheduler
    refuses."""
    capacity = cluster.capacity
    unknown = leftovers.by_namespace(cluster)
    return {
        "total": _node(capacity.report.sums()),
        "apart": [_node(one.sums) | {"nodes": one.nodes} for one in capacity.report.apart()],
        "unplaced": quantities(capacity.report.unplaced()),
        "unknownAppWrappers": {name: quantities(one) for name, one in unknown.items()},
        "withoutNode": list(islice(_without_node(cluster), WITHOUT_NODE_SHOWN)),
    }


def _without_node(cluster: Cluster) -> Iterator[Json]:
    """The AppWrappers with pods that kube-scheduler has refused so far, with its reason."""
    for entry in cluster.entries.values():
        found = stalls.unscheduled(cluster, entry)
        if found is not None:
            work = entry.workload
            yield {
                "namespace": work.namespace,
                "name": work.name,
                "pods": int(found.what.partition(" ")[0]),
                "since": format_instant(found.since),
                "why": found.words,
            }


def quantities(amounts: Resources) -> dict[str, str]:
    """Amounts as Kubernetes quantities."""
    return {name: format_amount(name, amount) for name, amount in amounts}


def _figures(refusal: Refusal | None) -> list[Json]:
    return [
        {
            "resource": one.resource,
            "requested": format_amount(one.resource, one.requested),
            "available": format_amount(one.resource, one.available),
            "missing": format_amount(one.resource, one.missing),
        }
        for one in (refusal.figures if refusal is not None else ())
    ]


def _quota(cluster: Cluster, entry: Entry) -> list[Json]:
    """The leaf in every tree in force with its share and its use, and the nodes from there to the
    root. No nodes if the tree has no such leaf.
    """
    return [
        {"tree": tree, "leaf": leaf, "path": list(nodes)} | _share(cluster, tree, leaf, *nodes)
        for tree, leaf, nodes in holders.paths(cluster, entry)
    ]


def _share(cluster: Cluster, name: str, leaf: str, *path: str) -> Json:
    """What the leaf has, and what is charged to it."""
    tree = cluster.forest.trees.get(name)
    if tree is None or not path:
        return {"nominal": {}, "allocated": {}}
    node = tree.nodes[leaf]
    used = report.allocated(node, cluster.forest.held_as(ChargedAs.RESERVED, tree))
    return {
        key: {one: format_amount(one, amounts.get(one, 0)) for one in sorted(tree.named)}
        for key, amounts in (("nominal", node.nominal), ("allocated", used))
    }


def _items(cluster: Cluster, entry: Entry) -> list[Json]:
    """Every item with the observed object, if any."""
    children = {child.item: child for child in cluster.objects.of(entry)}
    return [
        {
            "item": number,
            "apiVersion": item.ref.api_version,
            "kind": item.ref.kind,
            "name": item.ref.name,
            "guessed": item.guessed,
            "completion": list(item.completion),
            "exists": number in children,
            "terminating": number in children and children[number].terminating,
            "conditions": sorted(children[number].met) if number in children else [],
        }
        for number, item in enumerate(subject(entry).items)
    ]


def _pod_sets(cluster: Cluster, entry: Entry) -> list[Json]:
    """Every pod set; ``reserved`` counts assumed pods that are not bound yet."""
    sets = subject(entry).sets
    reserved = cluster.capacity.gangs.outstanding(entry.uid)
    if len(reserved) != len(sets):  # nothing is reserved, or for the sets before an edit
        reserved = (0,) * len(sets)
    return [
        {
            "item": one.item,
            "path": one.path,
            "replicas": one.replicas,
            "perNode": one.per_node,
            "request": quantities(one.request),
            "reserved": count,
        }
        for one, count in zip(sets, reserved, strict=True)
    ]


def row_view(row: Row) -> Json:
    """One AppWrapper as a row."""
    return {
        "namespace": row.namespace,
        "name": row.name,
        "uid": row.uid,
        "position": row.position,
        "headOfLine": row.head,
        "state": str(row.state),  # a plain str, which any serialiser knows
        "queuejobstate": str(row.queue_job_state),
        "priority": row.priority,
        "firstSeen": format_instant(row.first_seen),
        "demand": quantities(row.demand) if row.demand is not None else None,
        "attempt": row.attempt,
        "waitsFor": row.waits_for,
        "why": row.why,
        "stalled": row.stalled,
    }


def _node(node: NodeReport) -> Json:
    """``state`` as ``kubectl get nodes`` writes two of them; no amount is negative."""
    return {
        "name": node.name,
        "state": node.state + ",Overcommitted" * node.is_overcommitted,
        "allocatable": quantities(node.allocatable),
        "used": quantities(node.used),
        "reserved": quantities(node.reserved),
        "free": quantities(node.usable),
    }
