"""Everything the core can ask for. A closed union: ``Command`` at the end lists it.

A command names (uid, attempt, item), never a manifest: what is created is known to the controller
only (protocol P3a).
"""

from enum import StrEnum

from mcad.core.quota.records import Path, QuotaSubtree, QuotaView
from mcad.core.state.model import (
    NO_RESERVED_NODES,
    Condition,
    DispatchRecord,
    Item,
    ObjectRef,
    PodCounts,
    PodSet,
    Remnant,
    ReservedNodes,
)
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


class WriteStatus(Struct, frozen=True):
    """One fenced status patch; answered by StatusWritten or StatusRefused with its ``serial``.

    A later one of the same AppWrapper supersedes one that was not sent yet; it must not overtake
    one that was.
    """

    uid: str
    serial: int
    status: StatusView
    urgency: Urgency


class WriteQuota(Struct, frozen=True):
    """One fenced patch of the status of a QuotaSubtree; answered by QuotaWritten or QuotaRefused
    with its ``serial``, and never before that by another one."""

    uid: str
    serial: int
    status: QuotaView


class CreateItem(Struct, frozen=True):
    """Create item number ``item`` of this attempt (protocol P2). Its pods keep off the nodes that
    are ``assumed_uids`` for others."""

    uid: str
    attempt: int
    item: int
    reserved: ReservedNodes = NO_RESERVED_NODES


class InspectItem(Struct, frozen=True):
    """Look, live, at the object that holds the item's name (protocol P6)."""

    uid: str
    attempt: int
    item: int
    ref: ObjectRef


class ReviewAccess(Struct, frozen=True):
    """Ask the API server whether objects like ``ref`` may be created in its namespace.

    The user is the one that creates there: ourselves, or a service account that we impersonate
    (protocol, table of errors, 403).
    """

    ref: ObjectRef


class DeleteItem(Struct, frozen=True):
    """Foreground deletion with a uid precondition.

    ``object_uid`` "" means that the uid is not known: the controller looks it up and deletes only
    what is controlled by this AppWrapper and of an attempt up to ``attempt`` (protocol P4 b).
    """

    uid: str
    attempt: int
    item: int
    ref: ObjectRef
    object_uid: str


class LookForRemains(Struct, frozen=True):
    """List live what is left of attempts up to ``attempt``: objects and pods (protocol P4 c)."""

    uid: str
    namespace: str
    attempt: int
    inventory: tuple[ObjectRef, ...]


class ForceDeletion(Struct, frozen=True):
    """Delete a pod or an object of the attempt with a grace period of 0, this very one.

    The answer is not waited for: the next look tells what is left.
    """

    uid: str
    ref: ObjectRef
    object_uid: str


class DeleteStray(Struct, frozen=True):
    """The sweep: delete an object of ours that no recorded attempt accounts for (protocol P7).

    It is left alone if by live GET that AppWrapper does not control it any more: its deletion may
    have orphaned it, and the watches need not have told of that yet.
    """

    uid: str
    ref: ObjectRef
    object_uid: str


class RecordEvent(Struct, frozen=True):
    """A Kubernetes Event about the AppWrapper, or ``about`` an object that outlives it; nothing
    waits for it."""

    uid: str
    warning: bool
    reason: str
    action: str
    note: str
    about: Remnant | None = None


class RecordQuotaEvent(Struct, frozen=True):
    """An Event about a QuotaSubtree, which may be deleted; about a tree without one (None) there is
    a log line alone. It is not waited for."""

    subtree: QuotaSubtree | None
    warning: bool
    reason: str
    action: str
    note: str


class WakeAt(Struct, frozen=True):
    """Send ``Decide`` at this instant, whatever else happens; a later WakeAt does not undo it."""

    at: Instant


Command = (
    WriteStatus
    | WriteQuota
    | CreateItem
    | InspectItem
    | ReviewAccess
    | DeleteItem
    | LookForRemains
    | ForceDeletion
    | DeleteStray
    | RecordEvent
    | RecordQuotaEvent
    | WakeAt
)
