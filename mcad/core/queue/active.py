"""The equivalence classes that need a verdict, in an order that is kept from pass to pass.

With a hundred thousand different shapes a pass looks at the first few hundred, so it must not look
at the others to find these. Heads whose order among each other never changes form a series, which
is a sorted list; a pass compares the first of each series, and reads on where it takes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from sortedcontainers import SortedList

from mcad.core.queue.equivalence import EquivalenceClass, Key, Series
from mcad.core.state.violations import check


class ActiveClasses:
    """Each class once, by the key of its head, of which no two are equal.

    Where classes that need no verdict have to be looked at as well (``is_ordered`` is false) no
    order is kept.
    """

    def __init__(self, *, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._keys: dict[EquivalenceClass, Key] = {}
        self._at: dict[Key, EquivalenceClass] = {}
        self._series: dict[Series, SortedList[Key]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, eqclass: EquivalenceClass) -> bool:
        return eqclass in self._keys

    def add(self, eqclass: EquivalenceClass) -> None:
        """It needs a verdict."""
        if eqclass in self._keys:
            return
        key = self._keys[eqclass] = eqclass.key
        if self._is_ordered:
            self._at[key] = eqclass
            series = self._series.get(eqclass.series)
            if series is None:
                series = self._series[eqclass.series] = SortedList()
            series.add(key)

    def remove(self, eqclass: EquivalenceClass) -> None:
        """It needs none, or has no members any more."""
        key = self._keys.pop(eqclass, None)
        if key is None or not self._is_ordered:
            return
        del self._at[key]
        series = self._series[eqclass.series]
        series.remove(key)
        if not series:
            del self._series[eqclass.series]

    def move(self, eqclass: EquivalenceClass) -> None:
        """It has another head."""
        key = self._keys.get(eqclass)
        if key is not None and key != eqclass.key:
            self.remove(eqclass)
            self.add(eqclass)

    def firsts(self) -> list[EquivalenceClass]:
        """The first class of each series."""
        return [self._at[series[0]] for series in self._series.values()]

    def behind(self, series: Series, key: Key, most: int) -> list[Key]:
        """The keys that follow in a series, at most so many."""
        following = self._series.get(series)
        if following is None:
            return []
        return list(islice(following.irange(key, inclusive=(False, True)), most))

    def at(self, key: Key) -> EquivalenceClass | None:
        """The class with this key, None if it needs no verdict any more."""
        return self._at.get(key)

    def check(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Each of them is found by its head; raises ``InvariantViolated``. O(all)."""
        if not self._is_ordered:
            return
        active = [eqclass for eqclass in eqclasses if eqclass in self._keys]
        for eqclass in active:
            story, key = f"{eqclass.path} {eqclass.group}", eqclass.key
            check(self._keys[eqclass] == key, "active-by-its-head", story)
            check(self._at.get(key) is eqclass, "active-classes-are-found", story)
            check(key in self._series.get(eqclass.series, ()), "active-in-its-series", story)
        listed = sum(map(len, self._series.values()))
        check(listed == len(self._at) == len(active), "only-active-classes-are-listed", str(listed))
