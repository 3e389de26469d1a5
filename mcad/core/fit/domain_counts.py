"""What is free in each topology domain of a level, and how many slots it has: sums over the rows by
the code of a label.

A verdict on a gang with topology tries only the domains that have enough of both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mcad.core.nodes.columns import Amounts, Columns
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.resources import Books
from mcad.core.state.model import Resources

_MILLION = 1_000_000


class DomainCounts:
    """Counts of all domains of a level, kept until something changes. ``emptied``: as if every
    AppWrapper had left. Pods and reservations without a node are not counted."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._at = -1
        self._slots: dict[tuple[str, PodClass, bool], Mapping[str, int]] = {}
        self._sums: dict[tuple[str, str, bool], Mapping[str, int]] = {}

    def slots(self, level: str, pods: PodClass, *, emptied: bool) -> Mapping[str, int]:
        """How many pods of the class have slots in each domain; exact."""
        self._renew()
        key = level, pods, emptied
        found = self._slots.get(key)
        if found is None:
            slots = pods.slots(self._columns(emptied=emptied))
            found = self._slots[key] = self._by_value(level, slots.rows, slots.pods)
        return found

    def sums(self, level: str, value: str) -> Books:
        """The sum of each resource that is free in one domain."""
        names = self._ledger.free.names()
        return {name: self._free(level, name, emptied=False).get(value, 0) for name in names}

    def with_room(self, level: str, demand: Resources, *, emptied: bool) -> list[str]:
        """The domains where the demand is free in sum."""
        sums = [(self._free(level, name, emptied=emptied), n) for name, n in demand]
        values = self._ledger.label(level).values()
        return [value for value in values if all(one.get(value, 0) >= n for one, n in sums)]

    def rooms(self, level: str, demand: Resources) -> Mapping[str, int]:
        """How often the demand fits in each domain in sum (millionths), by scarcest resource."""
        sums = [(self._free(level, name, emptied=False), n) for name, n in demand]
        values = self._ledger.label(level).values()
        return {v: min(one.get(v, 0) * _MILLION // n for one, n in sums) for v in values}

    def labels_of(self, level: str, value: str) -> dict[str, str]:
        """The labels of the first node of a domain."""
        codes = self._ledger.label(level)
        at = int(np.argmax(codes.of == codes.code(value)))
        return dict(self._ledger.row(at).node.labels)

    def _free(self, level: str, name: str, *, emptied: bool) -> Mapping[str, int]:
        """The free sum of a resource per domain, on ready nodes; overcommitted nodes count as 0."""
        self._renew()
        key = level, name, emptied
        found = self._sums.get(key)
        if found is None:
            rows = np.flatnonzero(self._ledger.facts.ready)
            lent = np.maximum(self._columns(emptied=emptied).column(name)[rows], 0)
            found = self._sums[key] = self._by_value(level, rows, lent)
        return found

    def _columns(self, *, emptied: bool) -> Columns:
        return self._ledger.idle if emptied else self._ledger.free

    def _by_value(self, level: str, rows: Amounts, amounts: Amounts) -> Mapping[str, int]:
        codes = self._ledger.label(level)
        sums = np.zeros(codes.size, np.int64)
        np.add.at(sums, codes.of[rows], amounts)
        return {value: int(sums[codes.code(value)]) for value in codes.values()}

    def _renew(self) -> None:
        if self._at != self._ledger.now:
            self._at = self._ledger.now
            self._slots.clear()
            self._sums.clear()
