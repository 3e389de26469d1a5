"""A reservation: room that is promised to a waiting AppWrapper before it is free (core R8-R10).

All others keep off it, and it ends in a dispatch or is given up. None has two, and no node is in
two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.state.records import Struct, replace
from mcad.core.state.units import Duration, Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.state.entry import Entry


class ReservationReason(StrEnum):
    """Why room is promised, and what makes it free; ``text`` ends the sentence about the room, with
    the AppWrappers that have to leave in place of ``{others}``."""

    text: str

    def __new__(cls, code: str, text: str = "") -> ReservationReason:
        """A member by its code alone."""
        one = str.__new__(cls, code)
        one._value_, one.text = code, text
        return one

    # First in line for ``protectAfter``: others end (R8). Policy Backfill: others end by their
    # declared limits (R9). AppWrappers of lower priority are evicted (R10), or that borrow.
    STARVED = (
        "Starved",
        ", because it was first in line for too long; it starts when that is free.",
    )
    PLANNED = "Planned", "; it starts when that is free, on time by declared limits."
    PREEMPTING = "Preempting", "; AppWrappers of lower priority are evicted for it: {others}."
    RECLAIMING = "Reclaiming", "; its quota is reclaimed from {others}."


EVICTIONS = frozenset({ReservationReason.PREEMPTING, ReservationReason.RECLAIMING})
"""Reservations for which others are evicted."""


class Reservation(Struct, frozen=True):
    """What one waiting AppWrapper reserves, as its status shows it.

    ``start`` is when all of it is free at the latest if declared limits hold, 0 if that is unknown;
    ``until`` is when it is given up. ``nodes`` are the names of the nodes that it is on, sorted,
    ``pods`` how many of each pod set go to each of these, and ``waits_for`` the titles
    (namespace/name) of those that still have to leave, sorted.
    """

    reason: ReservationReason
    since: Instant
    until: Instant
    start: Instant = 0
    nodes: tuple[str, ...] = ()
    pods: tuple[tuple[int, ...], ...] = ()
    waits_for: tuple[str, ...] = ()

    @property
    def is_placed(self) -> bool:
        """Whether it says how many pods go to each of its nodes."""
        return len(self.pods) == len(self.nodes)


class Eviction(Struct, frozen=True):
    """The last eviction of an AppWrapper for another one, as its status shows it.

    ``by`` is the uid of that one and ``title`` its namespace/name at the time; ``count`` is how
    often this has happened so far.
    """

    count: int
    reason: ReservationReason
    by: str
    title: str
    at: Instant


class PendingEviction(NamedTuple):
    """An eviction due ``at``: for which AppWrapper (a uid), by what right, in which words."""

    by: str
    reason: ReservationReason
    message: str
    at: Instant


@dataclass(slots=True)
class Patience:
    """How often reservations of one AppWrapper came to nothing, and until when there is none."""

    tries: int = 0
    until: Instant = 0

    def came_to_nothing(self, since: Instant, now: Instant) -> None:
        """The next one has to wait three times as long as this one lasted."""
        self.tries += 1
        self.until = now + 3 * (now - since)


@dataclass(slots=True)
class Firsts:
    """The first in line at the last look, and for how long so far, by uid (R8); and whether a
    reservation ended since, so that the next look is now."""

    looked_at: Instant = 0
    waited: dict[str, Duration] = field(default_factory=dict)
    reservation_ended: bool = False


class Reservations(Mapping[str, "Entry"]):
    """The owners of reservations by uid, the oldest reservation first.

    Owns ``reservation``, ``waits_for``, ``patience`` and ``eviction_patience`` of every AppWrapper.
    ``fulfilled`` (an ordered set) are AppWrappers that were dispatched to their reserved room and
    whose pods are not all bound; ``intended`` holds the reservation of those whose intent is not
    persisted yet. ``on_record`` are reservations to be planned again, as the status of their owners
    shows them, ``preemptors`` as the records of their victims do. ``firsts`` counts how long the
    first in line have waited (R8).
    """

    def __init__(self) -> None:
        self._owners: dict[str, Entry] = {}
        self.fulfilled: dict[str, None] = {}
        self.intended: dict[str, Reservation] = {}
        self.on_record: dict[str, Reservation] = {}
        self.preemptors: dict[str, Reservation] = {}
        self.firsts = Firsts()

    def __getitem__(self, uid: str) -> Entry:
        return self._owners[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, entry: Entry, reservation: Reservation, waits_for: dict[str, int]) -> None:
        """Room is reserved for the AppWrapper; ``waits_for`` (uid -> attempt) leave it first."""
        self._owners[entry.uid] = entry
        entry.reservation, entry.waits_for = reservation, waits_for

    def show(self, entry: Entry, waits_for: tuple[str, ...]) -> None:
        """The AppWrappers that the reservation waits for now, by their titles."""
        entry.reservation = replace(entry.reserved, waits_for=waits_for)

    def let_stay(self, entry: Entry, uid: str) -> None:
        """The reservation does not wait for this AppWrapper any more."""
        del entry.waits_for[uid]

    def remove(self, entry: Entry) -> bool:
        """The reservation ends; False if the AppWrapper has none."""
        if self._owners.pop(entry.uid, None) is None:
            return False
        entry.reservation, entry.waits_for = None, {}
        self.firsts.reservation_ended = True
        return True

    def fulfil(self, entry: Entry, reservation: Reservation) -> None:
        """The AppWrapper takes the room that was reserved for it."""
        self.fulfilled[entry.uid] = None
        self.intended[entry.uid] = reservation

    def intent_written(self, entry: Entry) -> None:
        """The intent is persisted: what was reserved is used."""
        self.intended.pop(entry.uid, None)

    def intent_refused(self, entry: Entry) -> None:
        """The intent was not persisted: plan its reservation again; others may have left for it."""
        reservation = self.intended.pop(entry.uid, None)
        if reservation is not None:
            self.on_record[entry.uid] = reservation

    def waits_no_more(self, entry: Entry) -> None:
        """The AppWrapper was dispatched or is gone: it starts afresh the next time."""
        self.firsts.waited.pop(entry.uid, None)
        self.intended.pop(entry.uid, None)
        entry.patience, entry.eviction_patience = Patience(), Patience()

    def take_on_record(self) -> dict[str, Reservation]:
        """The reservations to be planned again, once."""
        found = self.preemptors | self.on_record
        self.preemptors, self.on_record = {}, {}
        return found

    def check_one(self, entry: Entry) -> None:
        """What is kept about one AppWrapper agrees; raises ``InvariantViolated``."""
        has = entry.uid in self._owners
        check(has == (entry.reservation is not None), "reservations-are-known", entry.title)
        check(has or not entry.waits_for, "only-reservations-wait-for-others", entry.title)
