"""The equivalence classes that need a verdict, in an order that is kept from pass to pass.

With a hundred thousand different shapes a pass looks at the first few hundred, so it must not look
at the others to find these. Heads whose order among each other never changes form a series, which
is a heap; a pass compares the first of each series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from mcad.core.queue.equivalence import EquivalenceClass, Key, Series
from mcad.core.state.violations import check


@dataclass(slots=True)
class _Heap:
    """Classes by the key of their head. An entry counts if its class has the ticket of it: all
    others are dropped when they come first, or together when half of them are ``stale``."""

    entries: list[tuple[Key, int, EquivalenceClass]] = field(default_factory=list)
    stale: int = 0

    def drop(self, eqclass: EquivalenceClass) -> None:
        eqclass.ticket = 0
        self.stale += 1
        if self.stale > len(self.entries) // 2:
            self.entries = [entry for entry in self.entries if entry[2].ticket == entry[1]]
            self.stale = 0
            heapify(self.entries)

    def first(self) -> EquivalenceClass | None:
        entries = self.entries
        while entries:
            _, ticket, eqclass = entries[0]
            if eqclass.ticket == ticket:
                return eqclass
            heappop(entries)
            self.stale -= 1
        return None


class ActiveClasses:
    """Each class once: in the heap of its series, or among those that the pass has ``passed``.

    Where classes that need no verdict have to be looked at as well (``is_ordered`` is false) no
    order is kept.
    """

    def __init__(self, *, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._tickets = 0
        self._classes: dict[EquivalenceClass, None] = {}
        self._series: dict[Series, _Heap] = {}
        self._passed: dict[EquivalenceClass, None] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def __contains__(self, eqclass: EquivalenceClass) -> bool:
        return eqclass in self._classes

    def __iter__(self) -> Iterator[EquivalenceClass]:
        return iter(self._classes)

    def add(self, eqclass: EquivalenceClass) -> None:
        """It needs a verdict; one that the pass has passed is not tried again in it."""
        self._classes[eqclass] = None
        if self._is_ordered and not eqclass.ticket and eqclass not in self._passed:
            self._push(eqclass)

    def remove(self, eqclass: EquivalenceClass) -> None:
        """It needs none, or has no members any more."""
        if eqclass in self._classes:
            del self._classes[eqclass]
            self._passed.pop(eqclass, None)
            self._unqueue(eqclass)

    def move(self, eqclass: EquivalenceClass) -> None:
        """It has another head."""
        if eqclass in self._classes:
            self._passed.pop(eqclass, None)
            self._unqueue(eqclass)
            self.add(eqclass)

    # -- a pass --------------------------------------------------------------------------------

    def firsts(self) -> list[EquivalenceClass]:
        """The first class of each series."""
        found = []
        for series, heap in list(self._series.items()):
            first = heap.first()
            if first is None:
                del self._series[series]
            else:
                found.append(first)
        return found

    def passed(self, eqclass: EquivalenceClass) -> EquivalenceClass | None:
        """The pass has come to this class; returns the one that is first in its heap now."""
        if eqclass in self._classes:
            self._passed[eqclass] = None
            self._unqueue(eqclass)
        heap = self._series.get(eqclass.series)
        return heap.first() if heap is not None else None

    def end_pass(self) -> None:
        """Those that were passed and still need a verdict are tried again in the next pass."""
        passed, self._passed = self._passed, {}
        for eqclass in passed:
            self.add(eqclass)

    # -- heaps ---------------------------------------------------------------------------------

    def _push(self, eqclass: EquivalenceClass) -> None:
        heap = self._series.get(eqclass.series)
        if heap is None:
            heap = self._series[eqclass.series] = _Heap()
        self._tickets += 1
        eqclass.ticket = self._tickets
        heappush(heap.entries, (eqclass.key, self._tickets, eqclass))

    def _unqueue(self, eqclass: EquivalenceClass) -> None:
        if eqclass.ticket:
            self._series[eqclass.series].drop(eqclass)

    def check(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Each of them can be found by its head; raises ``InvariantViolated``. O(all)."""
        if not self._is_ordered:
            return
        check(not self._passed, "nothing-is-passed-between-passes", "")
        for eqclass in eqclasses:
            story = f"{eqclass.path} {eqclass.group}"
            if eqclass not in self._classes:
                check(not eqclass.ticket, "only-active-classes-are-queued", story)
                continue
            entry = (eqclass.key, eqclass.ticket, eqclass)
            heap = self._series[eqclass.series]
            check(entry in heap.entries, "queued-by-its-head", story)
        counted = sum(len(heap.entries) - heap.stale for heap in self._series.values())
        check(counted == len(self._classes), "stale-entries-are-counted", str(counted))
