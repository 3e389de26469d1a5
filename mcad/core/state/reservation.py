"""A reservation: room that is promised to a waiting AppWrapper before it is free (core R8-R10).

All others keep off it, and it ends in a dispatch or is given up. None has two, and no node is in
two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mcad.core.state.records import Struct
from mcad.core.state.units import Instant


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
