"""A plan for a gang of several parts that is repaired, not made anew, while AppWrappers are removed
and restored.

Moving the pods of one node costs a tenth of a search or less, and most restored AppWrappers touch a
single node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mcad.core.fit.feasible import Part
from mcad.core.nodes.pools import Draft
from mcad.core.nodes.resources import Books, book
from mcad.core.snapshot.slot_counts import Later


class TentativePlan:
    """Where the gang would go, until the node of a pod has too little room."""

    def __init__(self, parts: Sequence[Part], nodes: Later, plan: Draft) -> None:
        self._parts = parts
        self._nodes = nodes
        self._on: dict[int, Draft] = {}
        self._taken: dict[int, Books] = {}
        self._fallen: dict[int, None] = {}  # its nodes with less room since it was looked at
        self._add(plan)

    def _add(self, plan: Draft) -> None:
        for part, row, count in plan:
            self._on.setdefault(row.rank, []).append((part, row, count))
            request = self._parts[part].pods.request
            book(self._taken.setdefault(row.rank, {}), request, count)

    def whole(self) -> Draft:
        """The plan, part after part."""
        return sorted((one for plan in self._on.values() for one in plan), key=lambda one: one[0])

    def fell(self, rank: int) -> None:
        """The node has less room."""
        if rank in self._on:
            self._fallen[rank] = None

    def is_there(self) -> bool:
        """Whether there is still room for it."""
        self._fallen = dict.fromkeys(rank for rank in self._fallen if self._lacks(rank))
        return not self._fallen

    def _lacks(self, rank: int) -> bool:
        free = self._nodes.free(self._on[rank][0][1])
        return any(free.get(name, 0) < n for name, n in self._taken[rank].items())

    def mend(self) -> bool:
        """Move pods without room to nodes that the plan does not use yet. False if that is not
        possible: then the plan is as it was."""
        moved: Draft = []
        taken: set[int] = set()
        for rank in self._fallen:
            for part, _, count in self._on[rank]:
                found = self._places(part, count, taken)
                if found is None:
                    return False
                moved += found
                taken.update(row.rank for _, row, _ in found)
        for rank in self._fallen:
            del self._on[rank], self._taken[rank]
        self._fallen.clear()
        self._add(moved)
        return True

    def _places(self, part: int, count: int, taken: Collection[int]) -> Draft | None:
        pods, found = self._parts[part].pods, Draft()
        if self._parts[part].per_node:
            return None
        for rank, fit in self._nodes.room[pods].items():
            if rank in taken or (rank in self._on and rank not in self._fallen):
                continue
            found.append((part, pods.pool.rows[rank], min(count, fit)))
            count -= fit
            if count <= 0:
                return found
        return None
