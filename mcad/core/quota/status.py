"""The status of every QuotaSubtree of a tree, its figures and faults, and when the status is
written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.quota.report import figures, overcommitted
from mcad.core.quota.tree import Fault
from mcad.core.quota.usage import Forest
from mcad.core.state.bounds import QUOTA_INTERVAL, Tries
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import NodeStatus, QuotaCondition, QuotaSubtree, QuotaView
from mcad.core.state.units import Instant

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape

READY, INVALID = "Ready", "Invalid"
IN_FORCE, OVERCOMMITTED = "InForce", "Overcommitted"

FAULTS_REPORTED = 5
"""How many faults of one object get a sentence; more are counted."""


class Finding(NamedTuple):
    """The content of the status of one QuotaSubtree, without times of change."""

    subtree: QuotaSubtree
    valid: bool
    reason: str
    message: str
    children: tuple[NodeStatus, ...]


def findings(forest: Forest, name: str, demand: Callable[[Shape], Resources]) -> Iterator[Finding]:
    """The status content of every QuotaSubtree of a tree, in force or not; ``demand`` counts a
    shape on the present nodes. O(tree), however long the line is."""
    faults: dict[str, list[Fault]] = {}
    for fault in forest.faults(name):
        faults.setdefault(fault.uid, []).append(fault)
    tree = forest.trees.get(name)
    lines, beyond = dict[str, dict[str, NodeStatus]](), dict[str, str]()
    if tree is not None and tree.named:
        beyond = overcommitted(tree)
        for node, line in figures(forest, tree, demand).items():
            lines.setdefault(tree.nodes[node].subtree, {})[node] = line
    for subtree in forest.subtrees_of(name):
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
    """The status with this content; an unchanged condition keeps its time of change."""
    said = {one.type: one for one in shown.conditions} if shown is not None else {}
    conditions = []
    for kind, status in ((READY, finding.valid), (INVALID, not finding.valid)):
        before = said.get(kind)
        changed = before.changed if before is not None and before.status == status else now
        one = QuotaCondition(kind, status, finding.reason, finding.message, changed)
        conditions.append(one)
    return QuotaView(finding.subtree.generation, tuple(conditions), finding.children)


def _together(faults: list[Fault]) -> str:
    """Every sentence once."""
    said = list(dict.fromkeys(fault.message for fault in faults))
    more = len(said) - FAULTS_REPORTED
    return " ".join(said[:FAULTS_REPORTED]) + (f" And {more} more." if more > 0 else "")


# -- writes --------------------------------------------------------------------------------------


@dataclass(slots=True)
class QuotaWrites:
    """The writes of one QuotaSubtree: its known status, and the status being written."""

    shown: QuotaView | None = None
    flying: QuotaView | None = None
    serial: int = 0
    not_before: Instant = 0
    is_stale: bool = False  # the content may have changed since the write
    tries: Tries = field(default_factory=Tries)


class QuotaStatuses:
    """The writes of all QuotaSubtrees by uid, and when each tree is due."""

    def __init__(self) -> None:
        self.writes: dict[str, QuotaWrites] = {}
        self._due: dict[str, Instant] = {}
        self._not_before: dict[str, Instant] = {}
        # Until when the next tree waits, if a pass had no time for it.
        self.put_off_until: Instant | None = None

    def want(self, tree: str, at: Instant = 0) -> None:
        """Note that the tree may have something to report, from this instant on."""
        self._due[tree] = min(at, self._due.get(tree, at))

    def next(self) -> tuple[Instant, str] | None:
        """The tree whose turn is next, and the instant of its turn."""
        turns = ((max(at, self._not_before.get(name, 0)), name) for name, at in self._due.items())
        return min(turns, default=None)

    def has_its_say(self, tree: str, now: Instant, *, exists: bool) -> None:
        """Count a report of the tree; a tree that still ``exists`` may report again later."""
        del self._due[tree]
        self._not_before.pop(tree, None)
        if exists:
            self._not_before[tree] = now + QUOTA_INTERVAL
