"""Why a gang does not fit, as figures that a person can check by hand.

One sum, the nodes of one pod set, or one share is a proof if it is too small. Otherwise each set
fits by itself and the sums suffice, and the figures are those of all nodes: only a search shows
that no placement of all sets exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from mcad.core.answers.holding import usable
from mcad.core.cluster import Cluster
from mcad.core.nodes.columns import UNBOUNDED, slots
from mcad.core.nodes.filters import admits
from mcad.core.nodes.resources import with_pod_slot
from mcad.core.nodes.shape import Alike, Shape
from mcad.core.state.entry import Entry
from mcad.core.state.model import Node, Resources
from mcad.core.state.records import Struct
from mcad.core.state.refusal import QuotaLimit, Refusal
from mcad.core.state.settings import Fit
from mcad.core.state.waiting_reason import WaitingReason


class Proof(StrEnum):
    """The figures that show that the gang does not fit."""

    QUOTA = "quota"  # a share: requested + used > nominal
    LEAF = "leaf"  # the tree has no such leaf
    SUM = "sum"  # on all nodes that admit it less of one resource is free than requested
    SET = "set"  # fewer pods of one set find room than it has
    TOGETHER = "together"  # each set fits by itself, but not all of them
    UNDECIDED = "undecided"  # the search for a placement of all sets was not finished


class FreeNode(Struct, frozen=True):
    """A node that admits pods of the gang: its free amounts, for a set the pods that fit."""

    name: str
    free: Resources
    pods: int = 0


class Certificate(Struct, frozen=True):
    """The figures of one refusal.

    ``requested`` is an amount of ``resource``, or the number of pods of the set at ``position``;
    ``available`` is the available amount or number. ``share`` is the refusal of a quota tree.
    """

    proof: Proof
    requested: int = 0
    available: int = 0
    resource: str = ""
    position: int = -1
    nodes: tuple[FreeNode, ...] = ()
    share: QuotaLimit | None = None


def certify(cluster: Cluster, entry: Entry, refusal: Refusal) -> Certificate | None:
    """The figures of a refusal by room or quota; None if the refusal only lets others go first."""
    if refusal.reason.lets_others_first:
        return None
    limit = refusal.quota
    if limit is not None:
        proof = Proof.QUOTA if limit.node else Proof.LEAF
        available = max(0, limit.nominal - limit.used)
        return Certificate(proof, limit.requested, available, limit.resource, share=limit)
    shape = cluster.capacity.shape(entry.workload.sets)
    nodes = {node.name: node for node in usable(cluster, entry)}
    free = {one.name: one.free for one in cluster.capacity.report.nodes() if one.name in nodes}
    found = next(_sums(shape, free), None)
    if found is None and cluster.settings.fit is Fit.NODES:
        found = next(_sets(shape, nodes, free), None)
    if found is not None:
        return found
    is_open = refusal.reason is WaitingReason.UNDECIDED
    figures = tuple(FreeNode(name, amounts) for name, amounts in free.items())
    return Certificate(Proof.UNDECIDED if is_open else Proof.TOGETHER, nodes=figures)


def _sums(shape: Shape, free: dict[str, Resources]) -> Iterator[Certificate]:
    for resource, requested in shape.fixed:
        there = {name: dict(amounts).get(resource, 0) for name, amounts in free.items()}
        available = sum(max(0, n) for n in there.values())
        if requested > available:
            nodes = tuple(FreeNode(name, ((resource, n),)) for name, n in there.items())
            yield Certificate(Proof.SUM, requested, available, resource, nodes=nodes)


def _sets(
    shape: Shape, known: dict[str, Node], free: dict[str, Resources]
) -> Iterator[Certificate]:
    for alike in shape.alike:
        if alike.per_node or alike.key.ports:
            continue
        nodes = tuple(
            FreeNode(name, amounts, _pods(alike, amounts))
            for name, amounts in free.items()
            if admits(known[name], alike.key.constraint)
        )
        available = sum(one.pods for one in nodes)
        if alike.declared > available:
            position = alike.positions[0]
            yield Certificate(Proof.SET, alike.declared, available, position=position, nodes=nodes)


def _pods(alike: Alike, free: Resources) -> int:
    """How many of these pods a node with this free room can take."""
    return slots(dict(free), with_pod_slot(alike.key.request), alike.key.cap or UNBOUNDED)
