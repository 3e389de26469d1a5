"""A plan for a gang of several parts that is repaired, not made anew, while AppWrappers are removed
and restored.

Moving the pods of one node costs a tenth of a search or less, and most restored AppWrappers touch a
single node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from mcad.core.fit.prospect import Draft, Part
from mcad.core.nodes.columns import Columns
from mcad.core.nodes.resources import Books, book
from mcad.core.snapshot.slot_counts import Slots


class TentativePlan:
    """Where the gang would go, until the node of a pod has too little room."""

    def __init__(self, parts: Sequence[Part], columns: Columns, slots: Slots, plan: Draft) -> None:
        self._parts = parts
        self._columns = columns
        self._slots = slots
        self._on: dict[int, Draft] = {}
        self._taken: dict[int, Books] = {}
        self._fallen: dict[int, None] = {}  # its nodes with less room since it was looked at
        self._add(plan)

    def _add(self, plan: Draft) -> None:
        for part, at, count in plan:
            self._on.setdefault(at, []).append((part, at, count))
            request = self._parts[part].pods.request
            book(self._taken.setdefault(at, {}), request, count)

    def whole(self) -> Draft:
        """The plan, part after part."""
        return sorted((one for plan in self._on.values() for one in plan), key=lambda one: one[0])

    def fell(self, at: int) -> None:
        """The node has less room."""
        if at in self._on:
            self._fallen[at] = None

    def is_there(self) -> bool:
        """Whether there is still room for it."""
        self._fallen = dict.fromkeys(at for at in self._fallen if self._lacks(at))
        return not self._fallen

    def _lacks(self, at: int) -> bool:
        return any(self._columns.get(at, name) < n for name, n in self._taken[at].items())

    def mend(self) -> bool:
        """Move pods without room to nodes that the plan does not use yet. False if that is not
        possible: then the plan is as it was."""
        moved: Draft = []
        taken: set[int] = set()
        for fallen in self._fallen:
            for part, _, count in self._on[fallen]:
                found = self._places(part, count, taken)
                if found is None:
                    return False
                moved += found
                taken.update(at for _, at, _ in found)
        for fallen in self._fallen:
            del self._on[fallen], self._taken[fallen]
        self._fallen.clear()
        self._add(moved)
        return True

    def _places(self, part: int, count: int, taken: Collection[int]) -> Draft | None:
        found = Draft()
        if self._parts[part].per_node:
            return None
        room = self._slots.room[part]
        for at in np.flatnonzero(room).tolist():
            if at in taken or (at in self._on and at not in self._fallen):
                continue
            fit = int(room[at])
            found.append((part, at, min(count, fit)))
            count -= fit
            if count <= 0:
                return found
        return None
