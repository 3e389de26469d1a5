"""All AppWrappers in line, in order. AppWrappers with equal shape, quota path and group form one
equivalence class, because they share their verdict and their turn.

The order is (priority descending, first seen ascending, uid), unless ``fairness`` is set. A
``priorityslope`` ages with a static integer key (core rule R7): slope x first seen - priority x
10^9. All members of a class gain equally with time, so the gain is computed for heads only and
nothing is ever sorted again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import MS, EquivalenceClass, Key
from mcad.core.quota.demand_in_line import DemandInLine
from mcad.core.state.quota_records import Path
from mcad.core.state.records import Struct
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity
    from mcad.core.nodes.shape import Shape
    from mcad.core.queue.equivalence import Alike
    from mcad.core.queue.verdicts import Verdicts
    from mcad.core.state.entry import Entry

_SCALE = 10**9  # priority 1 = slope of 10^6 millionths per second over 1000 ms


class Rank(Struct, frozen=True):
    """The rank of an AppWrapper: its priority, and how it climbs (millionths per second).

    ``until`` is when it has to be ranked anew, because it may climb no further; 0 is never.
    """

    priority: int
    slope: int = 0
    until: Instant = 0

    def key(self, entry: Entry) -> Key:
        """The static sort key within an equivalence class."""
        seen_ms = entry.first_seen // MS
        return (self.slope * seen_ms - self.priority * _SCALE, entry.first_seen, entry.uid)


class Queue:
    """All equivalence classes that have members.

    The capacity remembers the shape of each, ``verdicts`` tells which of them need a verdict, and
    ``waiting`` sums their demand per leaf. ``new`` holds the classes that gained a member since
    reserved room was last offered to them (backfill.py), ``ask_back`` (an ordered set) the classes
    for which borrowers wait (borrow_wait.py).
    """

    def __init__(self, capacity: Capacity, verdicts: Verdicts, waiting: DemandInLine) -> None:
        self._capacity = capacity
        self._verdicts = verdicts
        self._waiting = waiting
        self._eqclasses: dict[Alike, EquivalenceClass] = {}
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
        alike = shape, rank.slope, path, group, entry.workload.never_preempts
        key, eqclass = rank.key(entry), self._eqclasses.get(alike)
        if eqclass is None:
            eqclass = self._eqclasses[alike] = EquivalenceClass(*alike)
            self._verdicts.requeue(eqclass)
            self._capacity.remember(shape)
        eqclass.join(key, entry)
        if eqclass.key == key:
            eqclass.planned_at = 0
        self.new[eqclass] = None
        self._places[entry.uid] = (eqclass, key)
        self._waiting.join(path, shape)
        return eqclass

    def remove(self, entry: Entry) -> None:
        """Take an AppWrapper out of the line, if it is in line."""
        place = self._places.pop(entry.uid, None)
        if place is None:
            return
        eqclass, key = place
        eqclass.part(key)
        self._waiting.join(eqclass.path, eqclass.shape, -1)
        if not eqclass.members:
            self._drop(eqclass)

    def _drop(self, eqclass: EquivalenceClass) -> None:
        self._verdicts.remove(eqclass)
        self.new.pop(eqclass, None)
        self.ask_back.pop(eqclass, None)
        del self._eqclasses[eqclass.alike]
        self._capacity.forget(eqclass.shape)

    def eqclass_of(self, entry: Entry) -> EquivalenceClass | None:
        """The class of an AppWrapper, None if it is not in line."""
        place = self.place_of(entry.uid)
        return place[0] if place is not None else None

    def refusal_of(self, entry: Entry) -> Refusal | None:
        """The verdict that stands for an AppWrapper, None if it has none or is not in line."""
        eqclass = self.eqclass_of(entry)
        return eqclass.refusal if eqclass is not None else None

    def entries(self) -> list[Entry]:
        """All entries in line, in no relevant order; a copy."""
        return [entry for eqclass in self.eqclasses() for entry in eqclass.members.values()]

    def uids(self) -> Iterable[str]:
        """The uids of all entries in line, in no relevant order."""
        return self._places.keys()

    def eqclasses(self) -> Iterable[EquivalenceClass]:
        """All classes, in no relevant order."""
        return self._eqclasses.values()

    def put_in_order(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Keep all classes in this order, which is mostly the order of the next pass."""
        self._eqclasses = {eqclass.alike: eqclass for eqclass in eqclasses}

    def place_of(self, uid: str) -> tuple[EquivalenceClass, Key] | None:
        """The class and the static key of an AppWrapper, None if it is not in line."""
        return self._places.get(uid)

    def places(self) -> dict[str, tuple[EquivalenceClass, Key]]:
        """The class and the static key of each AppWrapper in line, by uid; a copy."""
        return dict(self._places)

    def check(self) -> None:
        """Check classes, places and sums; raises ``InvariantViolated``. O(all in line)."""
        asked = DemandInLine()
        for eqclass in self.eqclasses():
            story = f"{eqclass.path} {eqclass.group}"
            check(bool(eqclass.members), "classes-have-members", story)
            head = (eqclass.key, eqclass.first())
            check(head == eqclass.members.peekitem(0), "heads-are-first", story)
            check(self._eqclasses.get(eqclass.alike) is eqclass, "classes-are-found", story)
            for key, entry in eqclass.members.items():
                place = self._places.get(entry.uid)
                check(place == (eqclass, key), "place-in-line-is-known", entry.title)
                asked.join(eqclass.path, eqclass.shape)
        members = sum(len(eqclass.members) for eqclass in self.eqclasses())
        check(members == len(self._places), "each-is-in-line-once", str(members))
        check(self._waiting.equals(asked), "demand-in-line-is-the-sum", "")
        self._verdicts.check(self.eqclasses())
