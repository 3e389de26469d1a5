"""Which AppWrappers hold the scarce resource that an AppWrapper needs, where it could use it."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.cluster import Cluster
from mcad.core.nodes.filters import admits, in_service
from mcad.core.state.entry import Entry
from mcad.core.state.model import Node, Resources
from mcad.core.state.quota_records import Designation
from mcad.core.state.records import Struct
from mcad.core.state.refusal import QuotaLimit, Refusal
from mcad.core.state.settings import Fit
from mcad.core.views import holders


class Holding(Struct, frozen=True):
    """The holders of one resource: AppWrappers (title, amount), the largest amount first, and pods
    that belong to no AppWrapper."""

    resource: str = ""
    by: tuple[tuple[str, int], ...] = ()
    others: int = 0


def holding(cluster: Cluster, entry: Entry, refusal: Refusal) -> Holding:
    """The holders of the resource of the refusal; empty if the refusal is about no resource."""
    if refusal.quota is not None:
        resource = refusal.quota.resource if refusal.quota.node else ""
        return Holding(resource, _sorted(cluster, charged_at(cluster, refusal.quota)))
    resource = refusal.shortages[0].resource if refusal.shortages else ""
    admitted = {node.name for node in usable(cluster, entry)}
    amounts: dict[str, int] = {}
    for uid in cluster.capacity.gangs.uids():
        for name, held in cluster.capacity.gangs.held(uid):
            if name in admitted:
                amounts[uid] = amounts.get(uid, 0) + dict(held).get(resource, 0)
    used = sum(
        dict(amounts_of).get(resource, 0)
        for node in cluster.capacity.report.nodes()
        if node.name in admitted
        for amounts_of in (node.used, node.reserved)
    )
    others = used - sum(amounts.values())
    return Holding(resource, _sorted(cluster, amounts), max(0, others))


def charged_at(cluster: Cluster, limit: QuotaLimit) -> dict[str, int]:
    """The charges of AppWrappers (uids) in the resource at the refusing node, or below it."""
    tree = cluster.forest.trees.get(limit.tree)
    if tree is None or not limit.node:
        return {}
    known: dict[tuple[Designation, Resources], int] = {}  # most of thousands are equal
    amounts: dict[str, int] = {}
    for uid, (designation, held, *_) in cluster.forest.charges.items():
        key = designation, held
        amount = known.get(key)
        if amount is None:
            counts = holders.leads_to(tree, designation.leaf(tree.name), limit.node)
            amount = known[key] = dict(held).get(limit.resource, 0) if counts else 0
        if amount:
            amounts[uid] = amount
    return amounts


def usable(cluster: Cluster, entry: Entry) -> list[Node]:
    """The nodes that admit any of its pods; where only sums count, the nodes in service."""
    if cluster.settings.fit is not Fit.NODES:
        return list(filter(in_service, cluster.capacity.nodes()))
    constraints = tuple(dict.fromkeys(one.constraint for one in entry.workload.sets))
    nodes = cluster.capacity.nodes()
    return [one for one in nodes if any(admits(one, each) for each in constraints)]


def _sorted(cluster: Cluster, amounts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    def titled() -> Iterator[tuple[int, str]]:
        for uid, amount in amounts.items():
            entry = cluster.entries.get(uid)
            if amount and entry is not None:
                yield -amount, entry.title

    return tuple((title, -amount) for amount, title in sorted(titled()))
