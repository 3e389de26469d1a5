"""All AppWrappers in line, in their order. Those with equal shape, quota path and group form one
equivalence class, because they share their verdict and their turn.

The order is (priority descending, first seen ascending, uid), unless ``fairness`` is set. A
``priorityslope`` ages with a static integer key (core rule R7): slope x first seen - priority x
10^9. What all members of a class gain with time is equal, so it is subtracted for heads only and
nothing is ever sorted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import MS, EquivalenceClass, Key, Turn
from mcad.core.queue.refused_line import RefusedLine
from mcad.core.quota.demand_in_line import DemandInLine
from mcad.core.state.quota_records import Path
from mcad.core.state.records import Struct
from mcad.core.state.refusal import Refusal
from mcad.core.state.survey import Survey
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity
    from mcad.core.nodes.reserved_free import Spare
    from mcad.core.nodes.shape import Shape
    from mcad.core.queue.inadmissible import InadmissibleLists
    from mcad.core.state.entry import Entry

_Alike = tuple[Path, str, bool]  # the group that shares what is in use; never preempts

_SCALE = 10**9  # priority 1 = slope of 10^6 millionths per second over 1000 ms


Scope = tuple[str, str] | None
"""A node of a quota tree that an AppWrapper waits for, as (tree, node), or None for the nodes of
the cluster."""


class Rank(Struct, frozen=True):
    """What an AppWrapper queues with: a priority, and how it climbs (millionths per second).

    ``until`` is when it has to be ranked anew, because it may climb no further; 0 is never.
    """

    priority: int
    slope: int = 0
    until: Instant = 0

    def key(self, entry: Entry) -> Key:
        """The static sort key within an equivalence class."""
        seen_ms = entry.first_seen // MS
        return (self.slope * seen_ms - self.priority * _SCALE, entry.first_seen, entry.uid)


@dataclass(slots=True)
class Search:
    """A search for evictions that takes several passes: the classes that are ``due`` for a plan,
    None if no search is under way; and the candidates, if they are known."""

    due: RefusedLine | None = None
    present: Survey | None = None


@dataclass(slots=True)
class Offer:
    """An offer of reserved room that takes several passes (backfill.py): to the classes in
    ``line``, what was ``relieved``; all that is free to those that are ``new``."""

    line: RefusedLine
    new: dict[EquivalenceClass, None]
    relieved: Spare


@dataclass(slots=True)
class Walk:
    """Where the walk along the queue stands, and a ``search`` for evictions.

    ``resume_at`` is the turn at which the next pass continues, None at the first (R5).
    ``look_again_at`` is when refused classes are tested again at the latest. ``heads`` are the uids
    of the heads whose holding time runs, by what they wait for (R6). ``in_flight`` are the uids of
    those that were dispatched lately, the first one first, and when (binding_wait.py). It
    ``gives_way`` to what is looked at now and then, if a pass had no time for that. For
    ``protection`` (R8) the first in line are looked for among these; None if that is not under way,
    as with an ``offer``.
    """

    resume_at: Turn | None = None
    look_again_at: Instant = 0
    heads: dict[Scope, str] = field(default_factory=dict)
    in_flight: dict[str, Instant] = field(default_factory=dict)
    gives_way: bool = False
    search: Search = field(default_factory=Search)
    protection: RefusedLine | None = None
    offer: Offer | None = None


class Queue:
    """All equivalence classes that have members.

    The capacity remembers the shape of each, ``inadmissible`` knows which of them need no verdict
    now, and ``waiting`` sums their demand per leaf. ``new`` holds the classes that gained a member
    since reserved room was last offered to them (backfill.py), ``ask_back`` (an ordered set) those
    that borrowers wait for (borrow_wait.py).
    """

    def __init__(
        self, capacity: Capacity, inadmissible: InadmissibleLists, waiting: DemandInLine
    ) -> None:
        self._capacity = capacity
        self._inadmissible = inadmissible
        self._waiting = waiting
        self._eqclasses: dict[Shape, dict[int, dict[_Alike, EquivalenceClass]]] = {}
        self._by_path: dict[Path, dict[EquivalenceClass, None]] = {}
        self._places: dict[str, tuple[EquivalenceClass, Key]] = {}
        self.new: dict[EquivalenceClass, None] = {}
        self.ask_back: dict[EquivalenceClass, None] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, entry: Entry) -> bool:
        return entry.uid in self._places

    def add(
        self, entry: Entry, shape: Shape, path: Path, group: str, rank: Rank
    ) -> EquivalenceClass:
        """Put an AppWrapper in line; in a refused class this is one insertion."""
        alike = self._eqclasses.setdefault(shape, {}).setdefault(rank.slope, {})
        never, key = entry.workload.never_preempts, rank.key(entry)
        eqclass = alike.get((path, group, never))
        if eqclass is None:
            eqclass = self._inadmissible.new_class(shape, rank.slope, path, group)
            eqclass.never_preempts = never
            eqclass.join(key, entry)
            alike[path, group, never] = eqclass
            self._by_path.setdefault(path, {})[eqclass] = None
            self._inadmissible.enter(eqclass)
            self._capacity.remember(shape)
        else:
            eqclass.join(key, entry)
        if eqclass.key == key:
            eqclass.planned_at = 0
            self._inadmissible.active.move(eqclass)
        self.new[eqclass] = None
        self._places[entry.uid] = (eqclass, key)
        self._waiting.join(path, shape)
        if eqclass.listed_by is not None and key < eqclass.listed_by:
            self._inadmissible.move(eqclass)
        return eqclass

    def remove(self, entry: Entry) -> None:
        """Take an AppWrapper out of the line, if it is there."""
        place = self._places.pop(entry.uid, None)
        if place is None:
            return
        eqclass, key = place
        before = eqclass.key
        eqclass.part(key)
        if eqclass.key != before:
            self._inadmissible.active.move(eqclass)
        self._waiting.join(eqclass.path, eqclass.shape, -1)
        # With another head it may be behind the next in its list.
        self._inadmissible.hand_over(eqclass)
        if not eqclass.members:
            self._drop(eqclass)
        elif eqclass.listed_by == key:
            self._inadmissible.move(eqclass)

    def _drop(self, eqclass: EquivalenceClass) -> None:
        self._inadmissible.leave(eqclass)
        self.new.pop(eqclass, None)
        self.ask_back.pop(eqclass, None)
        of_path = self._by_path[eqclass.path]
        del of_path[eqclass]
        if not of_path:
            del self._by_path[eqclass.path]
        slopes = self._eqclasses[eqclass.shape]
        del slopes[eqclass.slope][eqclass.path, eqclass.group, eqclass.never_preempts]
        if not slopes[eqclass.slope]:
            self._inadmissible.forget(eqclass.shape, eqclass.slope)
            del slopes[eqclass.slope]
        if not slopes:
            del self._eqclasses[eqclass.shape]
        self._capacity.forget(eqclass.shape)

    def eqclass_of(self, entry: Entry) -> EquivalenceClass | None:
        """The class of an AppWrapper, None if it is not in line."""
        place = self._places.get(entry.uid)
        return place[0] if place is not None else None

    def refusal_of(self, entry: Entry) -> Refusal | None:
        """The verdict that stands for an AppWrapper, None if it has none or is not in line."""
        eqclass = self.eqclass_of(entry)
        return eqclass.refusal if eqclass is not None else None

    def entries(self) -> list[Entry]:
        """All in line, in no order that matters; a copy."""
        return [entry for eqclass in self.eqclasses() for entry in eqclass.members.values()]

    def uids(self) -> Iterable[str]:
        """The uids of all in line, in no order that matters."""
        return self._places.keys()

    def eqclasses(self) -> Iterator[EquivalenceClass]:
        """All classes, those of one quota path together."""
        return chain.from_iterable(self._by_path.values())

    def put_in_order(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """From now on they are found in this order, within their paths, as long as none comes."""
        self._by_path = {path: {} for path in self._by_path}
        for eqclass in eqclasses:
            self._by_path[eqclass.path][eqclass] = None

    def places(self) -> dict[str, tuple[EquivalenceClass, Key]]:
        """The class and the static key of each AppWrapper in line, by uid; a copy."""
        return dict(self._places)

    def check(self) -> None:
        """Classes, places and sums agree; raises ``InvariantViolated``. O(all in line)."""
        asked = DemandInLine()
        for eqclass in self.eqclasses():
            story = f"{eqclass.path} {eqclass.group}"
            check(bool(eqclass.members), "classes-have-members", story)
            head = (eqclass.key, eqclass.first())
            check(head == eqclass.members.peekitem(0), "heads-are-first", story)
            check(eqclass in self._by_path[eqclass.path], "classes-are-found-by-path", story)
            for key, entry in eqclass.members.items():
                place = self._places.get(entry.uid)
                check(place == (eqclass, key), "place-in-line-is-known", entry.title)
                asked.join(eqclass.path, eqclass.shape)
        members = sum(len(eqclass.members) for eqclass in self.eqclasses())
        check(members == len(self._places), "each-is-in-line-once", str(members))
        eqclasses = sum(map(len, self._by_path.values()))
        of_shapes = sum(len(one) for slopes in self._eqclasses.values() for one in slopes.values())
        check(eqclasses == of_shapes, "paths-hold-all-classes", str(eqclasses))
        check(self._waiting.equals(asked), "demand-in-line-is-the-sum", "")
        self._inadmissible.check(self.eqclasses())
