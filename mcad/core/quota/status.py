"""What the status of every QuotaSubtree of a tree says: its figures, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.quota.report import Share, overcommitted, shares
from mcad.core.quota.tree import Fault
from mcad.core.quota.usage import Forest
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import (
    Figures,
    NodeStatus,
    QuotaCondition,
    QuotaSubtree,
    QuotaView,
)
from mcad.core.state.units import Instant

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape

READY, INVALID = "Ready", "Invalid"
IN_FORCE, OVERCOMMITTED = "InForce", "Overcommitted"

FAULTS_REPORTED = 5
"""Sentences of one object about what is wrong with it; more are counted."""


class Finding(NamedTuple):
    """What there is to say of one QuotaSubtree now, but since when."""

    subtree: QuotaSubtree
    valid: bool
    reason: str
    message: str
    children: tuple[NodeStatus, ...]


def findings(forest: Forest, name: str, demand: Callable[[Shape], Resources]) -> Iterator[Finding]:
    """What there is to say of every QuotaSubtree of a tree, in force or not; ``demand`` counts a
    shape on the nodes of now. O(tree), whatever is in line."""
    faults: dict[str, list[Fault]] = {}
    for fault in forest.faults(name):
        faults.setdefault(fault.uid, []).append(fault)
    tree, lines, beyond = forest.tree(name), dict[str, dict[str, NodeStatus]](), dict[str, str]()
    if tree is not None:
        beyond = overcommitted(tree)
        for node, figures in _by_node(shares(tree, forest.waiting.of(name, demand))).items():
            lines.setdefault(tree.nodes[node].subtree, {})[node] = _line(node, figures)
    for subtree in forest.subtrees(name):
        mine = lines.get(subtree.uid, {})
        named = dict.fromkeys(child.name for child in subtree.children)
        children = tuple(mine[child] for child in named if child in mine)
        wrong = faults.get(subtree.uid)
        if wrong:
            yield Finding(subtree, False, wrong[0].flaw, _together(wrong), children)
        elif children and subtree.parent in beyond:
            yield Finding(subtree, True, OVERCOMMITTED, beyond[subtree.parent], children)
        else:
            yield Finding(subtree, True, IN_FORCE, "", children)


def view(finding: Finding, shown: QuotaView | None, now: Instant) -> QuotaView:
    """The status that says so. What it says already it has said since then."""
    said = {one.type: one for one in shown.conditions} if shown is not None else {}
    conditions = []
    for kind, status in ((READY, finding.valid), (INVALID, not finding.valid)):
        before = said.get(kind)
        changed = before.changed if before is not None and before.status == status else now
        one = QuotaCondition(kind, status, finding.reason, finding.message, changed)
        conditions.append(one)
    return QuotaView(finding.subtree.generation, tuple(conditions), finding.children)


def _by_node(figures: Iterator[Share]) -> dict[str, list[Share]]:
    found: dict[str, list[Share]] = {}
    for share in figures:
        found.setdefault(share.node, []).append(share)
    return found


def _line(node: str, figures: list[Share]) -> NodeStatus:
    """Resources are sorted already, as ``shares`` tells them."""
    return NodeStatus(
        node,
        tuple((one.resource, one.nominal) for one in figures),
        _nonzero((one.resource, one.allocated) for one in figures),
        _nonzero((one.resource, one.borrowed) for one in figures),
        _nonzero((one.resource, one.lent) for one in figures),
        _nonzero((one.resource, one.waiting) for one in figures),
    )


def _nonzero(figures: Iterator[tuple[str, int]]) -> Figures:
    return tuple((resource, amount) for resource, amount in figures if amount)


def _together(faults: list[Fault]) -> str:
    """Every sentence once."""
    said = list(dict.fromkeys(fault.message for fault in faults))
    more = len(said) - FAULTS_REPORTED
    return " ".join(said[:FAULTS_REPORTED]) + (f" And {more} more." if more > 0 else "")
