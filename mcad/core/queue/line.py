"""The heads that a pass tries, in turn."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import EquivalenceClass, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcad.core.queue.ordering import Turns
    from mcad.core.state.units import Instant

Head = tuple[Turn, EquivalenceClass]


class Line:
    """Classes by the turns of their heads, all of which differ. ``seen`` counts the classes put in
    line; ``is_reordered`` tells whether they came in another order."""

    def __init__(self, turns: Turns, now: Instant, eqclasses: Iterable[EquivalenceClass]) -> None:
        self._turns = turns
        self._now = now
        found = turns.line(eqclasses, now)
        self._heads: list[Head] = sorted(found)
        self.is_reordered = self._heads != found
        self._at = 0
        self._left_until: Turn | None = None
        self.seen = len(self._heads)

    @property
    def steps(self) -> int:
        """The work so far: a turn that may change is computed twice, on entry and when it comes."""
        return self.seen * 2 if self._turns.change else self.seen // 2

    def eqclasses(self) -> Iterator[EquivalenceClass]:
        """The remaining classes, in order."""
        return (eqclass for _, eqclass in self._heads[self._at :])

    def first(self) -> Head | None:
        """The next class with its turn, None if none is left."""
        return self._heads[self._at] if self._at < len(self._heads) else None

    def pop(self) -> None:
        """Drop the first class, which has been tried."""
        self._at += 1

    def renew(self, turn: Turn) -> None:
        """Move the first class to a later turn."""
        eqclass = self._heads[self._at][1]
        self.pop()
        self._put(turn, eqclass)

    def push(self, eqclass: EquivalenceClass) -> None:
        """Put a class that was tried back in line, with its next head."""
        self._put(self._turns.of(eqclass, self._now), eqclass)

    def leave(self, until: Turn) -> int:
        """Skip the classes before this turn that may keep their verdict. Returns how many. A second
        call for the same turn finds none, because no verdict changes before its class comes; so it
        looks at none, although thousands call."""
        if self._left_until == until:
            return 0
        self._left_until = until
        end = bisect_left(self._heads, until, lo=self._at, key=_turn)
        passed = self._heads[self._at : end]
        self._heads[self._at : end] = tried = [h for h in passed if not h[1].may_keep_verdict]
        return len(passed) - len(tried)

    def _put(self, turn: Turn, eqclass: EquivalenceClass) -> None:
        self.seen += 1
        insort(self._heads, (turn, eqclass), lo=self._at)


def _turn(head: Head) -> Turn:
    return head[0]
