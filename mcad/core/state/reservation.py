"""A reservation: room that is promised to a waiting AppWrapper before it is free (core R8-R10).

All other AppWrappers keep off it, and it ends in a dispatch or is given up. An AppWrapper has one
reservation at most, and a node is in one at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mcad.core.state.records import Struct
from mcad.core.state.units import Duration, Instant


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
    # declared limits (R9). AppWrappers of lower priority, or borrowers, are evicted (R10).
    STARVED = (
        "Starved",
        ", because it was first in line for too long; it starts when that is free.",
    )
    PLANNED = "Planned", "; it starts when that is free, on time by declared limits."
    PREEMPTING = "Preempting", "; AppWrappers of lower priority are evicted for it: {others}."
    RECLAIMING = "Reclaiming", "; its quota is reclaimed from {others}."
    # An autoscaler is asked for nodes for the pods that have no place (R13).
    SCALING_UP = "ScalingUp", "; an autoscaler is asked for nodes for its other pods."


EVICTIONS = frozenset({ReservationReason.PREEMPTING, ReservationReason.RECLAIMING})
"""Reservations for which others are evicted."""


class Reservation(Struct, frozen=True):
    """The reservation of one waiting AppWrapper, as its status shows it.

    ``start`` is when all of it is free at the latest if declared limits hold, 0 if unknown;
    ``until`` is when it is given up. ``nodes`` are the sorted names of its nodes, ``pods`` how many
    of each pod set go to each node, and ``waits_for`` the sorted titles (namespace/name) of the
    AppWrappers that still have to leave.
    """

    reason: ReservationReason
    since: Instant
    until: Instant
    start: Instant = 0
    nodes: tuple[str, ...] = ()
    pods: tuple[tuple[int, ...], ...] = ()
    waits_for: tuple[str, ...] = ()


class Eviction(Struct, frozen=True):
    """The last eviction of an AppWrapper for another, as its status shows it.

    ``by`` is the uid of the preemptor and ``title`` its namespace/name at the time; ``count`` is
    how often the AppWrapper was evicted so far.
    """

    count: int
    reason: ReservationReason
    by: str
    title: str
    at: Instant


class PendingEviction(NamedTuple):
    """An eviction due ``at``: the preemptor (a uid), the right, and the message."""

    by: str
    reason: ReservationReason
    message: str
    at: Instant


@dataclass(slots=True)
class Patience:
    """How often reservations of one AppWrapper came to nothing, and until when there is none."""

    tries: int = 0
    until: Instant = 0

    def came_to_nothing(self, since: Instant, now: Instant, at_least: Duration = 0) -> None:
        """Count a failed reservation: the next waits three times as long as this one lasted."""
        self.tries += 1
        self.until = now + max(at_least, 3 * (now - since))
