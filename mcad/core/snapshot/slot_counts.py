"""Whether there are enough slots for a gang on nodes from which AppWrappers are removed. Counts are
kept up to date node by node, so that asking is free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcad.core.fit.greedy import size
from mcad.core.fit.prospect import Part, Prospect
from mcad.core.nodes.columns import Amounts, Columns, Mask, slots
from mcad.core.nodes.columns import Slots as FreeSlots
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import FILLED_PARTS_MAX, FILLS_MAX


class _Fill:
    """How much of a gang all nodes could take together, each filled as well as possible with pods
    of any parts; a pod counts as its size. Necessary for several parts, and it saves most searches
    that would find nothing."""

    def __init__(self, parts: Sequence[Part], weights: Books) -> None:
        sizes = [size(part.pods.request, weights) for part in parts]
        self._order = sorted(
            (n for n, part in enumerate(parts) if not part.per_node), key=lambda n: -sizes[n]
        )
        self._pods = [part.pods for part in parts]
        self._sizes = sizes
        self._most: dict[int, int] = {}  # by row, of the nodes that had room for any pod
        self._known: dict[object, int] = {}
        self.missing = sum(sizes[n] * parts[n].replicas for n in self._order)

    def has(self, at: int) -> bool:
        """Whether the row is counted."""
        return at in self._most

    def count(self, at: int, kind: tuple[int, ...], names: Sequence[str]) -> None:
        """The node has so much free now; many nodes are of one kind, so each kind is computed
        once."""
        now = self._known.get(kind)
        if now is None:
            admitting, *free = kind
            kinds = [(self._sizes[n], self._pods[n]) for n in self._order if admitting >> n & 1]
            now = self._known[kind] = _best_fill(dict(zip(names, free, strict=True)), kinds)
        self.missing += self._most.get(at, 0) - now
        self._most[at] = now


def _best_fill(free: Books, kinds: Sequence[tuple[int, PodClass]]) -> int:
    """The most that pods of these kinds, given with their sizes, could take of a node; a bound
    where there are too many ways to fill it."""
    ways, bound = 1, 0
    for n, pods in kinds:
        times = slots(free, pods.request, pods.cap)
        ways *= times + 1
        bound += n * times
    return bound if ways > FILLS_MAX else _fill(free, kinds)


def _fill(free: Books, kinds: Sequence[tuple[int, PodClass]]) -> int:
    """The same, by trying all ways."""
    if not kinds:
        return 0
    (n, pods), others = kinds[0], kinds[1:]
    most = slots(free, pods.request, pods.cap)
    if not others:
        return n * most
    found = 0
    for times in range(most + 1):
        left = dict(free)
        book(left, pods.request, -times)
        found = max(found, n * times + _fill(left, others))
    return found


class Slots:
    """Slots of each part on the usable rows: ``exact`` for one part, otherwise only necessary.

    ``changed`` are the rows where something was given back or taken; they are counted when asked.
    """

    def __init__(
        self, parts: Sequence[Part], columns: Columns, usable: Mask, weights: Books
    ) -> None:
        self.exact = len(parts) <= 1
        self.changed: set[int] = set()
        self._parts = parts
        self._columns = columns
        self._names = sorted({name for part in parts for name, _ in part.pods.request})
        self._masks = [part.pods.mask & usable for part in parts]
        self.room = [_by_row(part.pods.slots(columns, usable), columns.rows) for part in parts]
        self._first = [room.copy() for room in self.room]
        self._missing = [
            part.replicas - int(room.sum()) for part, room in zip(parts, self.room, strict=True)
        ]
        self._fill = _Fill(parts, weights) if 1 < len(parts) <= FILLED_PARTS_MAX else None
        self._unfilled = dict.fromkeys(self._with_room()) if self._fill else {}

    def _with_room(self) -> list[int]:
        rows = np.logical_or.reduce([room > 0 for room in self.room])
        return list(np.flatnonzero(rows).tolist())

    def gained(self) -> Mask:
        """The rows with more room than at first."""
        self._look()
        pairs = zip(self.room, self._first, strict=True)
        more: Mask = np.logical_or.reduce([room > first for room, first in pairs])
        return more

    def kind(self, at: int) -> tuple[int, ...]:
        """What matters to the gang of a row: which parts it admits, and what is free."""
        admitting = sum(bool(mask[at]) << n for n, mask in enumerate(self._masks))
        return (admitting, *[self._columns.get(at, name) for name in self._names])

    def give(self, amounts: Resources, times: int) -> None:
        """Unplaced amounts take nothing here: while there are any, nothing is planned."""

    def suffices(self) -> bool:
        """Whether no further AppWrapper has to be removed."""
        if self.changed:
            self._look()
        if max(self._missing, default=0) > 0:
            return False
        return self._fill is None or self._is_filled(self._fill)

    def _look(self) -> None:
        for at in self.changed:
            for number, part in enumerate(self._parts):
                if self._masks[number][at]:
                    now = self._columns.slots_at(at, part.pods.request, part.pods.cap)
                    self._missing[number] += int(self.room[number][at]) - now
                    self.room[number][at] = now
        if self._fill is not None:
            self._unfilled.update(dict.fromkeys(self.changed))
        self.changed.clear()

    def _is_filled(self, fill: _Fill) -> bool:
        for at in self._unfilled:
            if fill.has(at) or any(room[at] for room in self.room):
                fill.count(at, self.kind(at), self._names)
        self._unfilled.clear()
        return fill.missing <= 0


def _by_row(slots: FreeSlots, rows: int) -> Amounts:
    found = np.zeros(rows, np.int64)
    found[slots.rows] = slots.pods
    return found


class Sum:
    """The same for ``fit: aggregate``: the sum of what is free, each node clamped at 0; exact by
    definition."""

    exact = True

    def __init__(self, prospect: Prospect, columns: Columns, usable: Mask) -> None:
        self.changed: set[int] = set()
        self._demand = dict(prospect.demand)
        self._columns = columns
        self._usable = usable
        self._given: Books = {}
        self._missing: Books = {}
        self._count()

    def _count(self) -> None:
        there = {name: self._columns.to_lend(name, self._usable) for name in self._demand}
        self._missing = {
            name: n - there[name] - self._given.get(name, 0) for name, n in self._demand.items()
        }

    def gained(self) -> None:
        """Nodes do not matter."""

    def give(self, amounts: Resources, times: int) -> None:
        """So much is given back that is on no node."""
        book(self._given, amounts, times)
        self._count()

    def suffices(self) -> bool:
        """Whether no further AppWrapper has to be removed."""
        return max(self.missing().values(), default=0) <= 0

    def missing(self) -> Books:
        """What the gang demands beyond what is free, below 0 if there is more than that."""
        if self.changed:
            self.changed.clear()
            self._count()
        return self._missing
