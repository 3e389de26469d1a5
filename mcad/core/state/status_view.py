"""What the status of an AppWrapper says, and how soon it has to be written."""

from __future__ import annotations

from enum import StrEnum

from mcad.core.state.model import Condition, DispatchRecord, Item, PodCounts, PodSet
from mcad.core.state.quota_records import Path
from mcad.core.state.records import Struct
from mcad.core.state.reservation import Eviction, Reservation
from mcad.core.state.units import Duration, Instant


class StatusView(Struct, frozen=True):
    """The status of one AppWrapper, derived from core state; the border renders it for the wire.

    ``phase`` is "" on v1beta1 AppWrappers, and ``resets`` and the components (``items`` with their
    ``sets``) are of v1beta2 ones only. ``system_priority`` is the priority it queues with,
    ``requeueing_wait`` the present wait before a requeue, 0 before the first, and ``quota`` where
    it counts: (tree, leaf). ``reservation`` is the room that is promised to it while it waits, and
    ``eviction`` tells of the last time that it was evicted for another one.
    """

    state: str
    queue_job_state: str
    can_run: bool
    sender: str
    first_seen: Instant
    first_dispatch: Instant
    system_priority: int
    conditions: tuple[Condition, ...]
    pods: PodCounts
    requeueings: int
    requeueing_wait: Duration
    observed_generation: int
    phase: str
    dispatch: DispatchRecord | None
    resets: int = 0
    items: tuple[Item, ...] = ()
    sets: tuple[PodSet, ...] = ()
    quota: Path = ()
    reservation: Reservation | None = None
    eviction: Eviction | None = None


class Urgency(StrEnum):
    """Whether anything waits for a write. Reports give way to dispatches."""

    DISPATCH = "dispatch"
    REPORT = "report"
