"""Refused shapes, and which of them may fit after changes of nodes (core rule R4).

A refused shape costs nothing until a node that admits its pods gains room for one of them and the
bound of each of its parts reaches the number of its pods. One comparison of all bounds with all
wanted numbers answers for thousands of shapes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcad.core.fit.prospect import Prospect
from mcad.core.nodes.columns import Mask, Packed, grown
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_class import Bounds

_VACANT = -1


class QueueingHints(Packed):
    """The refused prospects of a capacity, by their places, and the prospects that may fit by now
    and were not taken yet.

    Each part of a prospect has a place too, with its class, its number of pods and its prospect. A
    gang with a DaemonSet may fit when a node goes: a node less is a pod less.
    """

    def __init__(self, ledger: Ledger, bounds: Bounds, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._bounds = bounds
        self._seen = 0
        self._per_node: dict[Prospect, int] = {}
        self._on_nodes = on_nodes
        self._refused: list[Prospect | None] = []
        self._vacant: list[int] = []
        self._parts_of: list[list[int]] = []
        self._refused_at: NDArray[np.int64] = np.zeros(0, np.int64)
        self._impossible: Mask = np.zeros(0, np.bool_)
        self._classes: NDArray[np.int64] = np.zeros(0, np.int64)
        self._wanted: NDArray[np.float64] = np.zeros(0)
        self._owners: NDArray[np.int64] = np.zeros(0, np.int64)
        self._vacant_parts: list[int] = []
        self._requeued: dict[Prospect, None] = {}

    def take_requeued(self) -> list[Prospect]:
        """Take the prospects that may fit by now; they are no longer registered."""
        self._look()
        requeued, self._requeued = self._requeued, {}
        return list(requeued)

    @property
    def has_news(self) -> bool:
        """Whether a rise was not looked at yet."""
        now = self._ledger.constraints.changes
        changed = any(changes != now for changes in self._per_node.values())
        return changed or self._bounds.has_news or self._bounds.seen > self._seen

    def register(self, prospect: Prospect, *, is_impossible: bool = False) -> None:
        """Register a prospect that was just refused. ``is_impossible``: it would not fit on empty
        nodes either, so another node changes the verdict even without room now."""
        self.forget(prospect)
        if not self._vacant:
            self._grow()
        line = prospect.line = self._vacant.pop()
        self._refused[line] = prospect
        self._refused_at[line] = self._ledger.now
        if prospect.shape.per_node:
            self._per_node[prospect] = self._ledger.constraints.changes
        for part in prospect.parts:
            if not self._vacant_parts:
                self._grow_parts()
            at = self._vacant_parts.pop()
            self._parts_of[line].append(at)
            self._classes[at], self._owners[at] = part.pods.at, line
            # Pods of a DaemonSet need room on each node, so no number of slots tells whether they
            # fit.
            self._wanted[at] = 0 if part.per_node else part.declared
            self._impossible[at] = is_impossible and not part.pods.fits_whole()

    def requeue(self, prospect: Prospect) -> None:
        """Requeue a prospect that fits, or may fit after an event."""
        if prospect.line >= 0:
            self._unregister(prospect)
            self._requeued[prospect] = None

    def forget(self, prospect: Prospect) -> None:
        """Forget a prospect: no AppWrapper waits with it any more."""
        self._requeued.pop(prospect, None)
        if prospect.line >= 0:
            self._unregister(prospect)

    def _unregister(self, prospect: Prospect) -> None:
        line, prospect.line = prospect.line, -1
        self._refused[line] = None
        self._per_node.pop(prospect, None)
        for at in self._parts_of[line]:
            self._owners[at] = _VACANT
        self._vacant_parts += self._parts_of[line]
        self._parts_of[line] = []
        self._vacant.append(line)

    def _grow(self) -> None:
        before = len(self._refused)
        size = max(64, 2 * before)
        self._refused += [None] * (size - before)
        self._parts_of += [[] for _ in range(size - before)]
        self._refused_at = grown(self._refused_at, size)
        self._vacant = list(range(size - 1, before - 1, -1))

    def _grow_parts(self) -> None:
        before = len(self._owners)
        size = max(64, 2 * before)
        self._classes = grown(self._classes, size)
        self._wanted = grown(self._wanted, size)
        self._owners = grown(self._owners, size)
        self._impossible = grown(self._impossible, size)
        self._owners[before:] = _VACANT
        self._vacant_parts = list(range(size - 1, before - 1, -1))

    def _look(self) -> None:
        now = self._ledger.constraints.changes
        for prospect in [one for one, changes in self._per_node.items() if changes != now]:
            self.requeue(prospect)
        self._bounds.catch_up()
        if self._bounds.seen <= self._seen:
            return
        self._seen = self._bounds.seen
        for line in np.flatnonzero(self._may_fit()).tolist():
            refused = self._refused[line]
            if refused is not None:
                self.requeue(refused)

    def _may_fit(self) -> Mask:
        """By place, which of the refused prospects may fit by now."""
        if not self._on_nodes:  # only the sum matters, and it has risen
            return self._refused_at < self._seen
        found: Mask = np.zeros(len(self._refused), np.bool_)
        used = self._owners != _VACANT
        owners, classes = self._owners[used], self._classes[used]
        found[owners[self._bounds.risen[classes] > self._refused_at[owners]]] = True
        found[owners[self._bounds.all[classes] < self._wanted[used]]] = False
        joined = self._bounds.joined[classes] > self._refused_at[owners]
        found[owners[joined & self._impossible[used]]] = True
        return found
