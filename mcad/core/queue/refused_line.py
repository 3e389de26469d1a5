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

_Place = tuple[int, Turn, EquivalenceClass]


class RefusedLine(Iterator[EquivalenceClass]):
    """Those of the classes that are refused when they are read and when their turn comes, without
    those that can never fit and those that only let others go first; each comes once.

    It is part of a journal's snapshot, so it has no function. The turns are those of the instant
    ``now`` at which it was begun.
    """

    def __init__(self, eqclasses: Iterable[EquivalenceClass], now: Instant) -> None:
        self._unread = list(eqclasses)
        self._now = now
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
            refused = [one for one in part if _is_refused(one) and (wanted is None or wanted(one))]
            if refused:
                line = turns.line(refused, self._now)
                places = [(before(one) if before else 0, turn, one) for turn, one in line]
                self._parts.append(sorted(places, reverse=True))
        if not self._unread and not self._firsts:
            self._firsts = [(part[-1], number) for number, part in enumerate(self._parts) if part]
            heapify(self._firsts)
        return self.is_read

    def rest(self) -> list[EquivalenceClass]:
        """Those that are left, in no order."""
        return [*self._unread, *(eqclass for part in self._parts for _, _, eqclass in part)]

    def __next__(self) -> EquivalenceClass:
        while self._firsts:
            (_, _, eqclass), number = self._firsts[0]
            part = self._parts[number]
            part.pop()
            if part:
                heapreplace(self._firsts, (part[-1], number))
            else:
                heappop(self._firsts)
            if eqclass.members and _is_refused(eqclass):
                return eqclass
        raise StopIteration


def _is_refused(eqclass: EquivalenceClass) -> bool:
    return eqclass.refusal is not None and eqclass.refusal.reason.blocks
