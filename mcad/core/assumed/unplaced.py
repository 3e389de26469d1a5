"""Assumed pods that have no node, and the room that is kept for them.

Their requests stay subtracted from the sum of all nodes where they could go, and the nodes nearest
to having room for them are set aside for the pass (protocol C6): otherwise AppWrappers behind them
would take every bit of room that comes up.
"""

from __future__ import annotations

import numpy as np

from mcad.core.nodes.columns import Amounts, Mask, counted
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.ledger import Ledger, Row
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.resources import total
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import (
    EARMARKED_CLASSES_MAX,
    EARMARKED_NODES_MAX,
    ROWS_PER_STEP,
)

_MILLION = 1_000_000


class UnplacedPods:
    """``by_class``: pods by class, oldest class first. ``usable``: the rows that are not set aside
    for these pods, None for all rows. ``steps`` counts the work of setting aside.

    A shape that was refused because of unplaced pods is requeued when their number falls. A class
    that no verdict has counted yet (``_weighed``) requeues nothing: every pod that ends is unplaced
    for a moment.
    """

    def __init__(self, ledger: Ledger, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self._earmarked_at = -1
        self._changes = 0
        self._weighed: dict[PodClass, None] = {}
        self._barred: list[Row] = []
        self.by_class: dict[PodClass, int] = {}
        self.steps = 0

    @property
    def usable(self) -> Mask | None:
        """The rows that are not set aside; None for all."""
        rows = [row.at for row in self._barred if self._exists(row)]
        if not rows:
            return None
        usable = ~self._ledger.nothing()
        usable[rows] = False
        return usable

    def _exists(self, row: Row) -> bool:
        """Whether the row still has its node: another node may have its number since."""
        return self._ledger.at_row[row.at] is row

    def add(self, pods: PodClass, more: int) -> None:
        """Count this many more pods of the class (fewer, if negative) as unplaced."""
        left = self.by_class.get(pods, 0) + more
        if left:
            self.by_class[pods] = left
        else:
            del self.by_class[pods]
        self._earmarked_at = -1
        self._ledger.tick()
        if more < 0 and pods in self._weighed:
            self._ledger.ease()
            if not left:
                del self._weighed[pods]

    def demand(self) -> Resources:
        """The sum of the requests of all unplaced pods."""
        return total((pods.request, n) for pods, n in self.by_class.items())

    def weighing_on(self, nodes: NodeSet) -> list[tuple[Resources, int]]:
        """(request, pods) of the unplaced pods that could go to one of these nodes; of all unplaced
        pods where nodes do not matter."""
        return [
            (pods.request, n)
            for pods, n in self.by_class.items()
            if not self._on_nodes or pods.nodes & nodes
        ]

    def note_weighed(self) -> None:
        """Note that a verdict counted the unplaced pods: fewer of these requeue refused shapes."""
        self._weighed.update(dict.fromkeys(self.by_class))

    def new_pass(self) -> None:
        """Set aside, for each unplaced pod, the node that is nearest to having room for it."""
        if not self._on_nodes:
            return
        changes = self._ledger.constraints.changes
        if self._weighed and self._changes != changes:
            self._ledger.ease()  # classes that shared nodes may share none any more
        self._changes = changes
        if self._earmarked_at < 0 or (self.by_class and self._ledger.risen > self._earmarked_at):
            self._earmark()

    def _earmark(self) -> None:
        before, self._barred = self._barred, []
        for pods, n in list(self.by_class.items())[:EARMARKED_CLASSES_MAX]:
            self._barred += self._nearest(pods, min(n, EARMARKED_NODES_MAX - len(self._barred)))
        for row in before:
            if row not in self._barred and self._exists(row):
                self._ledger.look_again(row.at)
        self._earmarked_at = self._ledger.now

    def _nearest(self, pods: PodClass, most: int) -> list[Row]:
        """The nodes that lack least for one pod, among the nodes that could ever hold it."""
        self.steps += self._ledger.size // ROWS_PER_STEP * len(pods.request)
        rows = pods.slots(self._ledger.whole, self.usable).rows
        worst, together = self._shortfall(pods, rows)
        nearest = rows[np.lexsort((rows, together, worst))[:most]]
        return [self._ledger.row(at) for at in nearest.tolist()]

    def _shortfall(self, pods: PodClass, rows: Amounts) -> tuple[Amounts, Amounts]:
        """The shortfall of these rows for a pod, in millionths of its request: at worst, in sum."""
        worst = together = np.zeros(len(rows), np.int64)
        for name, n in pods.request:
            lacking = np.maximum(0, counted(n) - self._ledger.free.column(name)[rows])
            share = (lacking / n * _MILLION).astype(np.int64)
            worst, together = np.maximum(worst, share), together + share
        return worst, together
