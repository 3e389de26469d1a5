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

    Those that were refused in this walk and may fit again (``again``) have heaps of their own: when
    a pass has no more work left for them it need not look at any of them. Where classes that need
    no verdict have to be looked at as well (``is_ordered`` is false) no order is kept.
    """

    def __init__(self, *, is_ordered: bool) -> None:
        self.walk = 1
        self._is_ordered = is_ordered
        self._tickets = 0
        self._classes: dict[EquivalenceClass, None] = {}
        self._series: dict[Series, _Heap] = {}
        self._again: dict[Series, _Heap] = {}
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
            eqclass.again = self._is_again(eqclass)
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
        """The first class of each series, and the first of those that may fit again."""
        found = []
        for heaps in (self._series, self._again):
            for series, heap in list(heaps.items()):
                first = heap.first()
                if first is None:
                    del heaps[series]
                else:
                    found.append(first)
        return found

    def passed(self, eqclass: EquivalenceClass) -> EquivalenceClass | None:
        """The pass has come to this class; returns the one that is first in its heap now."""
        if eqclass in self._classes:
            self._passed[eqclass] = None
            self._unqueue(eqclass)
        heap = self._heaps(eqclass).get(eqclass.series)
        return heap.first() if heap is not None else None

    def end_pass(self, *, ends_walk: bool) -> None:
        """Those that were passed and still need a verdict are tried again in the next pass."""
        passed, self._passed = self._passed, {}
        for eqclass in passed:
            self.add(eqclass)
        if ends_walk:
            self._end_walk()

    def _end_walk(self) -> None:
        self.walk += 1
        again, self._again = self._again, {}
        for series, heap in again.items():
            fewer, more = heap.entries, self._series.setdefault(series, _Heap())
            if len(fewer) > len(more.entries):
                fewer, self._series[series] = more.entries, heap
            for entry in heap.entries:
                entry[2].again = False
            for entry in fewer:
                heappush(self._series[series].entries, entry)
            self._series[series].stale = heap.stale + more.stale

    # -- heaps ---------------------------------------------------------------------------------

    def _is_again(self, eqclass: EquivalenceClass) -> bool:
        refusal = eqclass.refusal
        is_refused = refusal is not None and not refusal.reason.lets_others_first
        return is_refused and eqclass.refused_in == self.walk

    def _heaps(self, eqclass: EquivalenceClass) -> dict[Series, _Heap]:
        return self._again if eqclass.again else self._series

    def _push(self, eqclass: EquivalenceClass) -> None:
        heaps = self._heaps(eqclass)
        heap = heaps.get(eqclass.series)
        if heap is None:
            heap = heaps[eqclass.series] = _Heap()
        self._tickets += 1
        eqclass.ticket = self._tickets
        heappush(heap.entries, (eqclass.key, self._tickets, eqclass))

    def _unqueue(self, eqclass: EquivalenceClass) -> None:
        if eqclass.ticket:
            self._heaps(eqclass)[eqclass.series].drop(eqclass)

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
            heap = self._heaps(eqclass)[eqclass.series]
            check(entry in heap.entries, "queued-by-its-head", story)
        heaps = (*self._series.values(), *self._again.values())
        counted = sum(len(heap.entries) - heap.stale for heap in heaps)
        check(counted == len(self._classes), "stale-entries-are-counted", str(counted))
