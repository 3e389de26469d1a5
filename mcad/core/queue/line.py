"""The heads that a pass tries, in turn: those that need a verdict, or all."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import EquivalenceClass, Key, Series, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcad.core.queue.active import ActiveClasses
    from mcad.core.queue.ordering import Turns
    from mcad.core.queue.queue import Queue
    from mcad.core.state.refusal import Refusal
    from mcad.core.state.units import Instant

Head = tuple[Turn, EquivalenceClass]

READ_AHEAD = 32
"""Keys of a series that are read together: to find a place in it takes as long as to read them."""


class Line:
    """A heap of classes by the turns of their heads, of which no two are equal. ``seen`` counts the
    classes that were put in it, half a step of work each."""

    def __init__(self, turns: Turns, now: Instant, eqclasses: Iterable[EquivalenceClass]) -> None:
        self._turns = turns
        self._now = now
        self._heap: list[Head] = turns.line(eqclasses, now)
        self.seen = len(self._heap)

    def find_first(self) -> Head | None:
        """The next one, None if there is none."""
        return self._heap[0] if self._heap else None

    def pop(self) -> None:
        """The first one has been tried."""
        heappop(self._heap)

    def renew(self, turn: Turn) -> None:
        """The first one has a later turn by now."""
        heapreplace(self._heap, (turn, self._heap[0][1]))

    def push(self, eqclass: EquivalenceClass) -> None:
        """One more, or one with another head."""
        self._put(eqclass, self._turns.of(eqclass, self._now))

    def _put(self, eqclass: EquivalenceClass, turn: Turn) -> None:
        self.seen += 1
        heappush(self._heap, (turn, eqclass))


@dataclass(slots=True)
class _Place:
    """How far a pass has come in a series: the ``last`` key that it has read, and those that it has
    read ahead, the next one last."""

    last: Key
    ahead: list[Key] = field(default_factory=list)


class ActiveLine(Line):
    """Those that need a verdict: the first of each series, and the next one when that was tried. A
    class is tried once, unless it is pushed."""

    def __init__(self, turns: Turns, now: Instant, active: ActiveClasses) -> None:
        super().__init__(turns, now, active.firsts())
        heapify(self._heap)
        self._active = active
        self._inside = {eqclass for _, eqclass in self._heap}
        self._places: dict[Series, _Place] = {}

    def pop(self) -> None:
        turn, eqclass = heappop(self._heap)
        self._inside.discard(eqclass)
        place = self._places.get(eqclass.series)
        if place is None:
            place = self._places[eqclass.series] = _Place(eqclass.key)
        following = self._read(place, eqclass)
        if following is not None and following not in self._inside:
            self._inside.add(following)
            self._put(following, self._turns.after(turn, following, self._now))

    def _read(self, place: _Place, tried: EquivalenceClass) -> EquivalenceClass | None:
        """The next one in the series of the one that was tried, None if there is none."""
        while True:
            if not place.ahead:
                place.ahead = self._active.behind(tried.series, place.last, READ_AHEAD)
                place.ahead.reverse()
                if not place.ahead:
                    return None
            place.last = place.ahead.pop()
            eqclass = self._active.at(place.last)
            if eqclass is not None and eqclass is not tried:
                return eqclass

    def push(self, eqclass: EquivalenceClass) -> None:
        if eqclass not in self._inside:
            self._inside.add(eqclass)
            super().push(eqclass)


class WholeLine(Line):
    """All classes, sorted, because most of them are only passed: those that were ``blocked``, and
    still are (``blocks``), are not even put in the heap. The queue keeps their order, because it is
    mostly that of the next pass, and what is in order is soon sorted."""

    def __init__(
        self,
        turns: Turns,
        now: Instant,
        queue: Queue,
        blocked: Refusal | None,
        blocks: Callable[[EquivalenceClass], bool],
    ) -> None:
        super().__init__(turns, now, queue.eqclasses())
        self.seen *= 2  # to find out whether it is blocked takes as long as to line it up
        self._behind, self._heap = sorted(self._heap, reverse=True), []
        queue.put_in_order(eqclass for _, eqclass in reversed(self._behind))
        self._blocked = blocked
        self._blocks = blocks

    def find_first(self) -> Head | None:
        heap, behind, blocked, blocks = self._heap, self._behind, self._blocked, self._blocks
        while behind and (not heap or behind[-1] < heap[0]):
            following = behind.pop()
            refusal = following[1].refusal
            if refusal is None or refusal is not blocked or not blocks(following[1]):
                heappush(heap, following)
                break
        return super().find_first()
