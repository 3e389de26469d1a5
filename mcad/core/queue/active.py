"""The equivalence classes that need a verdict, in an order that is kept from pass to pass.

With a hundred thousand different shapes a pass looks at the first few hundred, so it must not look
at the others to find these. Heads whose order among each other never changes form a series, which
is a sorted list; a pass compares the first of each series, and reads on where it takes one. Those
that may keep their verdict until the next walk are listed apart, because a pass may leave out
thousands of them at a time.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from sortedcontainers import SortedList

from mcad.core.queue.equivalence import EquivalenceClass, Key, Series
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from collections.abc import Iterable

Part = tuple[Series, bool]
"""A series, and of it those that may keep their verdict (True) or the others."""


class ActiveClasses:
    """Each class once, by the key of its head, of which no two are equal.

    Where classes that need no verdict have to be looked at as well (``is_ordered`` is false) no
    order is kept.
    """

    def __init__(self, *, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._places: dict[EquivalenceClass, tuple[Part, Key]] = {}
        self._at: dict[Key, EquivalenceClass] = {}
        self._parts: dict[Part, SortedList[Key]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, eqclass: EquivalenceClass) -> bool:
        return eqclass in self._places

    def add(self, eqclass: EquivalenceClass) -> None:
        """It needs a verdict."""
        if eqclass in self._places:
            return
        part, key = self._places[eqclass] = _place(eqclass)
        if self._is_ordered:
            self._at[key] = eqclass
            keys = self._parts.get(part)
            if keys is None:
                keys = self._parts[part] = SortedList()
            keys.add(key)

    def remove(self, eqclass: EquivalenceClass) -> None:
        """It needs none, or has no members any more."""
        place = self._places.pop(eqclass, None)
        if place is None or not self._is_ordered:
            return
        part, key = place
        del self._at[key]
        keys = self._parts[part]
        keys.remove(key)
        if not keys:
            del self._parts[part]

    def move(self, eqclass: EquivalenceClass) -> None:
        """It has another head, or another verdict."""
        place = self._places.get(eqclass)
        if place is not None and place != _place(eqclass):
            self.remove(eqclass)
            self.add(eqclass)

    def firsts(self) -> list[EquivalenceClass]:
        """The first class of each part."""
        return [self._at[keys[0]] for keys in self._parts.values()]

    def part_of(self, eqclass: EquivalenceClass) -> Part:
        """Where it is listed; it must need a verdict."""
        return self._places[eqclass][0]

    def behind(self, part: Part, key: Key, most: int, *, inclusive: bool = False) -> list[Key]:
        """The keys that follow in a part, this one too if it is ``inclusive``, at most so many."""
        following = self._parts.get(part)
        if following is None:
            return []
        return list(islice(following.irange(key, inclusive=(inclusive, True)), most))

    def at(self, key: Key) -> EquivalenceClass | None:
        """The class with this key, None if it needs no verdict any more."""
        return self._at.get(key)

    def check(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Each of them is found by its head; raises ``InvariantViolated``. O(all)."""
        if not self._is_ordered:
            return
        active = [eqclass for eqclass in eqclasses if eqclass in self._places]
        for eqclass in active:
            story, (part, key) = f"{eqclass.path} {eqclass.group}", _place(eqclass)
            check(self._places[eqclass] == (part, key), "active-at-its-place", story)
            check(self._at.get(key) is eqclass, "active-classes-are-found", story)
            check(key in self._parts.get(part, ()), "active-in-its-series", story)
        listed = sum(map(len, self._parts.values()))
        check(listed == len(self._at) == len(active), "only-active-classes-are-listed", str(listed))


def _place(eqclass: EquivalenceClass) -> tuple[Part, Key]:
    return (eqclass.series, eqclass.may_keep_verdict), eqclass.key
