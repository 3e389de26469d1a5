"""How many nodes like an existing one would have to be added."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.answers.ahead import rivals_ahead
from mcad.core.answers.changes import AddNodes
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.nodes.columns import UNBOUNDED, slots
from mcad.core.nodes.filters import admits
from mcad.core.nodes.resources import with_pod_slot
from mcad.core.state.entry import Entry
from mcad.core.state.model import Node
from mcad.core.state.refusal import Refusal

KINDS_TRIED = 3
"""Kinds of nodes to try; one node of each kind is the model of the added nodes."""

NUMBERS_TRIED = 8
"""Numbers of nodes that are tried one after the other."""

RIVALS_FEW = 32
"""Where at most so many AppWrappers are ahead a trial is cheap, and an estimate says little."""

NODES_MAX = 256
"""Nodes that are added at a time at most."""


def extra_nodes(run: DryRun, uid: str, refusal: Refusal) -> Iterator[Remedy]:
    """The answers: one for each kind of nodes that would do."""
    for node in _models(run, run.entry(uid)):
        yield from _like(run, uid, refusal, node)


def _like(run: DryRun, uid: str, refusal: Refusal, node: Node) -> Iterator[Remedy]:
    count = _smallest(run, uid, node, _least(run.entry(uid), refusal, node))
    if count is None:
        return
    nodes = "1 more node" if count == 1 else f"{count} more nodes"
    text = f"{nodes} like {node.name}."
    yield Remedy(Kind.NODES, text, AddNodes(node, count), number=count)


def _smallest(run: DryRun, uid: str, node: Node, least: int) -> int | None:
    """The smallest number of nodes that suffices, from ``least`` on; None if none of the first few
    does. More nodes may serve another AppWrapper instead, so each number is tried. If few of many
    AppWrappers ahead start on the least number, the work of the question does not suffice for the
    number that would serve all of them, and no other is tried."""
    last, before = least + NUMBERS_TRIED - 1, run.left
    for count in range(least, min(last, NODES_MAX) + 1):
        with run.tried(AddNodes(node, count)) as started:
            if uid in started:
                return count
        if started and count == least:
            affordable = min(last, least + run.left // (before - run.left))
            rivals = rivals_ahead(run, uid)
            if rivals > RIVALS_FEW and rivals * least > len(started) * affordable:
                return None
    return None


def _models(run: DryRun, entry: Entry) -> list[Node]:
    """One node of each kind that admits any of its pods, the most frequent kind first."""
    known: dict[tuple[object, ...], list[Node]] = {}
    constraints = list(dict.fromkeys(one.constraint for one in entry.workload.sets))
    for node in run.cluster.capacity.nodes():
        if any(admits(node, one) and not one.node_name for one in constraints):
            known.setdefault((node.allocatable, node.taints), []).append(node)
    common = sorted(known.values(), key=lambda nodes: (-len(nodes), nodes[0].name))
    return [min(nodes, key=lambda one: one.name) for nodes in common[:KINDS_TRIED]]


def _least(entry: Entry, refusal: Refusal, node: Node) -> int:
    """A lower bound of the number of nodes: by the pods of the set that have no place, and by the
    missing sums."""
    least, has = 1, dict(node.allocatable)
    for short in refusal.shortages:
        if short.missing and short.resource in has:
            least = max(least, -(-short.missing // has[short.resource]))
    for one in entry.workload.sets:
        if (one.item, one.index) == (refusal.item, refusal.index) and refusal.missing:
            fit = slots(has, with_pod_slot(one.request), one.cap or UNBOUNDED)
            least = max(least, -(-refusal.missing // fit) if fit else NODES_MAX + 1)
    return least
