"""All reservations: present, just used, and found on record after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mcad.core.state.bounds import SCALE_UP_PAUSE, SCALE_UP_PAUSE_MAX, backoff
from mcad.core.state.entry import Entry
from mcad.core.state.reasons import SCALE_UP_TIMED_OUT, ConditionType
from mcad.core.state.records import replace
from mcad.core.state.reservation import Patience, Reservation
from mcad.core.state.scale_up import FAILURES
from mcad.core.state.units import Duration, Instant
from mcad.core.state.violations import check

_FAILED = frozenset({*map(str, FAILURES), SCALE_UP_TIMED_OUT})
"""Reasons of a condition ScaleUp that is False because no nodes came."""

Ends = tuple[Instant, Instant, Instant]
"""(when an AppWrapper is gone at the latest, when it is expected to be gone, order among
AppWrappers without an expectation)"""


@dataclass(slots=True)
class EndOrder:
    """The AppWrappers that hold room, those that end first in front, found in parts: ``line`` is
    sorted, and ``unknown`` are the uids whose end is not determined yet, None before the first
    part."""

    line: list[tuple[Ends, str]] = field(default_factory=list)
    unknown: list[str] | None = None

    def forget(self) -> None:
        """Begin anew at the next question."""
        self.line, self.unknown = [], None


@dataclass(slots=True)
class Firsts:
    """The first in line at the last look, and for how long so far, by uid (R8); and whether a
    reservation ended since, so that the next look is now.

    ``to_consider`` (an ordered set) are the uids of first AppWrappers that the look has not planned
    for yet; ``ends`` is found once for all of them.
    """

    looked_at: Instant = 0
    waited: dict[str, Duration] = field(default_factory=dict)
    reservation_ended: bool = False
    to_consider: dict[str, None] = field(default_factory=dict)
    ends: EndOrder = field(default_factory=EndOrder)


class Reservations(Mapping[str, Entry]):
    """The owners of reservations by uid, the oldest reservation first.

    Owns ``reservation``, ``waits_for``, ``patience`` and ``eviction_patience`` of every AppWrapper.
    ``fulfilled`` (an ordered set) are AppWrappers that were dispatched to their reserved room and
    whose pods are not all bound; ``intended`` holds the reservations whose owners' intent is not
    persisted yet. ``on_record`` are reservations to be planned again, as the status of their owners
    shows them, ``preemptors`` as the records of their victims do. ``firsts`` counts how long the
    first in line have waited (R8), ``soon`` is the order of ends for AppWrappers that may ask for
    nodes (R13). ``to_look`` (an ordered set) are the uids of the owners whose
    reservations are due for a look at their nodes. ``next_try`` is when an owner of free room that
    could not start is planned for again; without an entry, in each pass.
    """

    def __init__(self) -> None:
        self._owners: dict[str, Entry] = {}
        self.fulfilled: dict[str, None] = {}
        self.intended: dict[str, Reservation] = {}
        self.on_record: dict[str, Reservation] = {}
        self.preemptors: dict[str, Reservation] = {}
        self.firsts = Firsts()
        self.soon = EndOrder()
        self.to_look: dict[str, None] = {}
        self.next_try: dict[str, Instant] = {}
        self._next = ""

    def __getitem__(self, uid: str) -> Entry:
        return self._owners[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)

    def younger(self, uid: str) -> Iterator[str]:
        """The uids of the owners whose reservations were planned after this one, beside it."""
        owners = iter(self._owners)
        for one in owners:
            if one == uid:
                yield from owners

    def in_turn(self) -> list[tuple[str, Entry]]:
        """The owners and their uids, from the first that the last pass did not reach."""
        owners = list(self._owners.items())
        at = next((n for n, (uid, _) in enumerate(owners) if uid == self._next), 0)
        self._next = ""
        return owners[at:] + owners[:at]

    def leave(self, uid: str) -> None:
        """Note the first reservation that this pass did not reach."""
        self._next = uid

    def add(self, entry: Entry, reservation: Reservation, waits_for: dict[str, int]) -> None:
        """Add a reservation; the AppWrappers ``waits_for`` (uid -> attempt) leave first."""
        self._owners[entry.uid] = entry
        entry.reservation, entry.waits_for = reservation, waits_for

    def show(self, entry: Entry, waits_for: tuple[str, ...]) -> None:
        """Show the titles of the AppWrappers that the reservation waits for now."""
        entry.reservation = replace(entry.reserved, waits_for=waits_for)

    def let_stay(self, entry: Entry, uid: str) -> None:
        """Stop waiting for this AppWrapper: it may stay."""
        del entry.waits_for[uid]

    def remove(self, entry: Entry) -> bool:
        """End the reservation; False if the AppWrapper has none."""
        if self._owners.pop(entry.uid, None) is None:
            return False
        entry.reservation, entry.waits_for = None, {}
        self.to_look.pop(entry.uid, None)
        self.next_try.pop(entry.uid, None)
        self.firsts.reservation_ended = True
        return True

    def fulfil(self, entry: Entry, reservation: Reservation) -> None:
        """Note that the AppWrapper takes its reserved room."""
        self.fulfilled[entry.uid] = None
        self.intended[entry.uid] = reservation

    def intent_written(self, entry: Entry) -> None:
        """Forget the reservation once the intent is persisted: its room is used."""
        self.intended.pop(entry.uid, None)

    def intent_refused(self, entry: Entry) -> None:
        """Plan the reservation of a refused intent again; others may have left for it."""
        reservation = self.intended.pop(entry.uid, None)
        if reservation is not None:
            self.on_record[entry.uid] = reservation

    def scale_up_failed(self, entry: Entry, now: Instant) -> None:
        """Count a reservation for which no nodes came: the next waits, longer each time."""
        patience = entry.scale_up_patience
        pause = backoff(patience.tries + 1, SCALE_UP_PAUSE, SCALE_UP_PAUSE_MAX)
        patience.came_to_nothing(entry.reserved.since, now, pause)

    @staticmethod
    def scale_up_on_record(entry: Entry, now: Instant, timeout: Duration) -> None:
        """Resume the pause after a scale-up that failed. How often it failed is not on record; as
        each pause is twice as long as the one before, it is the shortest that is not over yet."""
        failed = entry.conditions.get(ConditionType.SCALE_UP)
        if failed is None or failed.status or failed.reason not in _FAILED:
            return
        tries, pause = 1, SCALE_UP_PAUSE
        while pause < SCALE_UP_PAUSE_MAX and failed.changed + pause <= now:
            tries += 1
            pause = backoff(tries, SCALE_UP_PAUSE, SCALE_UP_PAUSE_MAX)
        lasted = timeout if failed.reason == SCALE_UP_TIMED_OUT else 0
        entry.scale_up_patience = Patience(tries, failed.changed + max(pause, 3 * lasted))

    def waits_no_more(self, entry: Entry) -> None:
        """Reset the counts of an AppWrapper that was dispatched or is gone."""
        self.firsts.waited.pop(entry.uid, None)
        self.intended.pop(entry.uid, None)
        entry.patience, entry.eviction_patience = Patience(), Patience()
        entry.scale_up_patience = Patience()

    def take_on_record(self) -> dict[str, Reservation]:
        """Take the reservations to be planned again, once."""
        found = self.preemptors | self.on_record
        self.preemptors, self.on_record = {}, {}
        return found

    def check_one(self, entry: Entry) -> None:
        """Check that the books agree about one AppWrapper; raises ``InvariantViolated``."""
        has = entry.uid in self._owners
        check(has == (entry.reservation is not None), "reservations-are-known", entry.title)
        check(has or not entry.waits_for, "only-reservations-wait-for-others", entry.title)
