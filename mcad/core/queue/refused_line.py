"""The refused classes in the order of their heads, for what is looked at now and then.

With a hundred thousand different shapes it takes 100 ms to put them in order. So a look reads some
of them in each pass and sorts these, and begins when all are read: what comes next is the first of
all parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.state.bounds import REFUSED_AT_ONCE, REFUSED_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcad.core.queue.ordering import Turns
    from mcad.core.state.agenda import Agenda
    from mcad.core.state.units import Instant

_Place = tuple[int, Turn, int, EquivalenceClass]
"""With a number that no other has: an AppWrapper that is edited may be the head of two classes, if
one of them was read before."""


class RefusedLine(Iterator[EquivalenceClass]):
    """Those of the classes that are refused when they are read and when their turn comes, without
    those that can never fit and those that only let others go first; each comes once.

    It is part of a journal's snapshot, so it has no function. The turns are those of the instant
    ``now`` at which it was begun.
    """

    def __init__(self, eqclasses: Iterable[EquivalenceClass], now: Instant) -> None:
        self._unread = list(eqclasses)
        self._now = now
        self._count = 0
        self._parts: list[list[_Place]] = []
        self._firsts: list[tuple[_Place, int]] = []

    def __bool__(self) -> bool:
        """Whether there may be any left."""
        return bool(self._unread or self._firsts)

    @property
    def is_read(self) -> bool:
        """Whether all are read."""
        return not self._unread

    def read(
        self,
        turns: Turns,
        agenda: Agenda,
        wanted: Callable[[EquivalenceClass], bool] | None = None,
        before: Callable[[EquivalenceClass], int] | None = None,
    ) -> bool:
        """Read on, as far as the work of the pass allows; returns whether all are read. Only those
        ``wanted`` count, and the smallest number ``before`` comes first."""
        while self._unread and not agenda.is_spent:
            part = self._unread[-REFUSED_AT_ONCE:]
            del self._unread[-REFUSED_AT_ONCE:]
            agenda.spent += REFUSED_STEPS * len(part)
            refused = [one for one in part if is_refused(one) and (wanted is None or wanted(one))]
            line = enumerate(turns.line(refused, self._now), self._count)
            places = [(before(one) if before else 0, turn, n, one) for n, (turn, one) in line]
            self._count += len(places)
            self._parts.append(sorted(places, reverse=True))
        if not self._unread and not self._firsts:
            self._firsts = [(part[-1], number) for number, part in enumerate(self._parts) if part]
            heapify(self._firsts)
        return self.is_read

    def rest(self) -> list[EquivalenceClass]:
        """Those that are left, in no order."""
        return [*self._unread, *(place[-1] for part in self._parts for place in part)]

    def find_first(self) -> EquivalenceClass | None:
        """The next one, None if there is none."""
        while self._firsts:
            eqclass = self._firsts[0][0][-1]
            if is_refused(eqclass):
                return eqclass
            self.pop()
        return None

    def pop(self) -> None:
        """The first one is done."""
        _, number = self._firsts[0]
        part = self._parts[number]
        part.pop()
        if part:
            heapreplace(self._firsts, (part[-1], number))
        else:
            heappop(self._firsts)

    def __next__(self) -> EquivalenceClass:
        eqclass = self.find_first()
        if eqclass is None:
            raise StopIteration
        self.pop()
        return eqclass

    def is_behind(self, turns: Turns, eqclasses: Iterable[EquivalenceClass]) -> bool:
        """Whether one of the classes, none of which is in it, comes before the next one."""
        if not self._firsts:
            return False
        others = turns.line(filter(is_refused, eqclasses), self._now)
        return any(turn < self._firsts[0][0][1] for turn, _ in others)


def is_refused(eqclass: EquivalenceClass) -> bool:
    """Whether it is in line, and what comes free may let its head start."""
    refusal = eqclass.refusal
    return refusal is not None and refusal.reason.blocks and bool(eqclass.members)
