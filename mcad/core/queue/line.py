"""The heads that a pass tries, in turn: those that need a verdict, or all."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import EquivalenceClass, Key, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcad.core.queue.active import ActiveClasses, Part
    from mcad.core.queue.ordering import Turns
    from mcad.core.queue.queue import Queue
    from mcad.core.state.refusal import Refusal
    from mcad.core.state.units import Instant

Head = tuple[Turn, EquivalenceClass]

READ_AHEAD = 32
"""Keys of a series that are read together: to find a place in it takes as long as to read them."""


class Line:
    """A heap of classes by the turns of their heads, of which no two are equal. ``seen`` counts the
    classes that were put in it."""

    def __init__(self, turns: Turns, now: Instant, eqclasses: Iterable[EquivalenceClass]) -> None:
        self._turns = turns
        self._now = now
        self._heap: list[Head] = turns.line(eqclasses, now)
        self.seen = len(self._heap)

    @property
    def steps(self) -> int:
        """The work so far: a turn that may change has to be found out, and again when it comes."""
        return self.seen * 2 if self._turns.change else self.seen // 2

    def find_first(self) -> Head | None:
        """The next one, None if there is none."""
        return self._heap[0] if self._heap else None

    def pop(self) -> None:
        """The first one has been tried."""
        heappop(self._heap)

    def renew(self, turn: Turn) -> None:
        """The first one has a later turn by now."""
        heapreplace(self._heap, (turn, self._heap[0][1]))

    def leave(self, until: Turn) -> None:
        """The first one keeps its verdict. A line may leave out all before this turn that do."""
        del until  # the others have to be passed one by one
        self.pop()

    def push(self, eqclass: EquivalenceClass) -> None:
        """One more, or one with another head."""
        self._put(eqclass, self._turns.of(eqclass, self._now))

    def _put(self, eqclass: EquivalenceClass, turn: Turn) -> None:
        self.seen += 1
        heappush(self._heap, (turn, eqclass))


@dataclass(slots=True)
class _Place:
    """How far a pass has come in a part of a series: the ``last`` key that it has read, and those
    that it has read ahead, the next one last."""

    last: Key
    ahead: list[Key] = field(default_factory=list)


class ActiveLine(Line):
    """Those that need a verdict: the first of each part, and the next one when that was tried. A
    class is tried once, unless it is pushed."""

    def __init__(self, turns: Turns, now: Instant, active: ActiveClasses) -> None:
        super().__init__(turns, now, active.firsts())
        heapify(self._heap)
        self._active = active
        self._inside = {eqclass: active.part_of(eqclass) for _, eqclass in self._heap}
        self._places: dict[Part, _Place] = {}
        self._tried: set[EquivalenceClass] = set()

    def pop(self) -> None:
        turn, eqclass = heappop(self._heap)
        part = self._inside.pop(eqclass)
        self._tried.add(eqclass)
        following = self._read(part, self._place(part, eqclass))
        if following is not None and following not in self._inside:
            self._inside[following] = part
            self._put(following, self._turns.alike(turn, following.key, part[0], self._now))

    def leave(self, until: Turn) -> None:
        turn, eqclass = self._heap[0]
        part = self._inside[eqclass]
        if eqclass.may_keep_verdict and part[1]:
            first = self._turns.first_key(turn, part[0], until, self._now)
            place = self._place(part, eqclass)
            if first > place.last:
                place.last = first
                place.ahead = self._active.behind(part, first, 1, inclusive=True)
        self.pop()

    def _place(self, part: Part, tried: EquivalenceClass) -> _Place:
        place = self._places.get(part)
        if place is None:
            place = self._places[part] = _Place(tried.key)
        return place

    def _read(self, part: Part, place: _Place) -> EquivalenceClass | None:
        """The next one in a part, None if there is none."""
        while True:
            if not place.ahead:
                place.ahead = self._active.behind(part, place.last, READ_AHEAD)
                place.ahead.reverse()
                if not place.ahead:
                    return None
            place.last = place.ahead.pop()
            eqclass = self._active.at(place.last)
            if eqclass is not None and eqclass not in self._tried:
                return eqclass

    def push(self, eqclass: EquivalenceClass) -> None:
        if eqclass not in self._inside and eqclass in self._active:
            self._inside[eqclass] = self._active.part_of(eqclass)
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
        found, self._heap = self._heap, []
        self._behind = sorted(found)
        if self._behind != found:
            queue.put_in_order(eqclass for _, eqclass in self._behind)
        self._behind.reverse()
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
