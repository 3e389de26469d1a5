"""The content of the status of an AppWrapper, and how soon it has to be written."""

from __future__ import annotations

from enum import StrEnum

from mcad.core.state.model import (
    Condition,
    DispatchRecord,
    Item,
    PodCounts,
    PodSet,
    PrioritySource,
)
from mcad.core.state.quota_records import Path
from mcad.core.state.records import Struct
from mcad.core.state.reservation import Eviction, Reservation
from mcad.core.state.units import Duration, Instant


class StatusView(Struct, frozen=True):
    """The status of one AppWrapper, derived from core state; the border renders it for the wire."""

    state: str
    queue_job_state: str
    can_run: bool
    sender: str
    first_seen: Instant
    first_dispatch: Instant
    system_priority: int  # the priority it queues with
    conditions: tuple[Condition, ...]
    pods: PodCounts
    requeueings: int
    requeueing_wait: Duration  # the present wait before a requeue, 0 before the first
    observed_generation: int
    phase: str  # of v1beta2, else ""
    dispatch: DispatchRecord | None
    resets: int = 0  # of v1beta2, as are the components: ``items`` with their ``sets``
    items: tuple[Item, ...] = ()
    sets: tuple[PodSet, ...] = ()
    quota: Path = ()  # where it counts: (tree, leaf)
    reservation: Reservation | None = None  # the room that is reserved for it while it waits
    eviction: Eviction | None = None  # its last eviction for another AppWrapper
    priority_source: PrioritySource | None = None
    # Trees of ``quota`` that are deleted and still count, and since when; only some AppWrappers
    # have this record.
    deleted_trees: tuple[tuple[str, Instant], ...] = ()


class Urgency(StrEnum):
    """Whether a next step waits for a write. Reports give way to dispatches. A confirmation may
    wait a moment where writes queue up: the end of a short attempt makes it needless."""

    DISPATCH = "dispatch"
    CONFIRMATION = "confirmation"
    REPORT = "report"
