"""All requests of the core. A closed union: ``Command`` at the end lists it.

A command names (uid, attempt, item), never a manifest: only the controller knows the objects to
create (protocol P3a).
"""

from mcad.core.state.model import NO_NODE_RULES, NodeRules, ObjectRef, Remnant
from mcad.core.state.quota_records import QuotaSubtree, QuotaView
from mcad.core.state.records import Struct
from mcad.core.state.status_view import StatusView, Urgency
from mcad.core.state.units import Instant


class WriteStatus(Struct, frozen=True):
    """One fenced status patch, answered by StatusWritten or StatusRefused with its ``serial``.

    It supersedes an earlier unsent patch of the same AppWrapper, and must not overtake a sent one.
    """

    uid: str
    serial: int
    status: StatusView
    urgency: Urgency


class WriteQuota(Struct, frozen=True):
    """One fenced patch of the status of a QuotaSubtree; answered by QuotaWritten or QuotaRefused
    with its ``serial``; another patch follows only after the answer."""

    uid: str
    serial: int
    status: QuotaView


class CreateItem(Struct, frozen=True):
    """Create item number ``item`` of this attempt (protocol P2). Its pods follow ``node_rules``."""

    uid: str
    attempt: int
    item: int
    node_rules: NodeRules = NO_NODE_RULES


class InspectItem(Struct, frozen=True):
    """Read, live, the object that holds the item's name (protocol P6)."""

    uid: str
    attempt: int
    item: int
    ref: ObjectRef


class ReadWarnings(Struct, frozen=True):
    """Read, live, the Events that say why pods of an item are not created: Events about the item,
    or an object between it and its pods; for a bare Pod that is gone, the reason of its removal.
    With ``pod``, the uid of the Pod ``ref``: why its node does not start it. Events before
    ``since`` are ignored."""

    uid: str
    attempt: int
    item: int
    ref: ObjectRef
    since: Instant
    pod: str = ""


class ReviewAccess(Struct, frozen=True):
    """Ask the API server whether the user that creates objects like ``ref`` may create them in the
    namespace: this process, or the impersonated service account (protocol, table of errors,
    403)."""

    ref: ObjectRef


class DeleteItem(Struct, frozen=True):
    """Foreground deletion with a uid precondition.

    ``object_uid`` "" means that the uid is unknown: the controller looks it up and deletes only an
    object that this AppWrapper controls, of an attempt up to ``attempt`` (P4 b).
    """

    uid: str
    attempt: int
    item: int
    ref: ObjectRef
    object_uid: str


class LookForRemains(Struct, frozen=True):
    """List live the remaining objects and pods of attempts up to ``attempt`` (protocol P4 c)."""

    uid: str
    namespace: str
    attempt: int
    inventory: tuple[ObjectRef, ...]


class ForceDeletion(Struct, frozen=True):
    """Delete exactly this pod or object of the attempt with a grace period of 0. No step waits for
    the answer: the next look shows what is left."""

    uid: str
    ref: ObjectRef
    object_uid: str


class DeleteStray(Struct, frozen=True):
    """The sweep: delete an object of ours that no recorded attempt accounts for (protocol P7).

    It is left alone if by live GET that AppWrapper does not control it any more: its deletion may
    have orphaned it, and the watches may not have reported that yet.
    """

    uid: str
    ref: ObjectRef
    object_uid: str


class RecordEvent(Struct, frozen=True):
    """A Kubernetes Event about the AppWrapper, or ``about`` an object that outlives it."""

    uid: str
    warning: bool
    reason: str
    action: str
    note: str
    about: Remnant | None = None


class RecordQuotaEvent(Struct, frozen=True):
    """An Event about a QuotaSubtree, which may be deleted; about a tree without one (None) there is
    only a log line. No decision waits for it."""

    subtree: QuotaSubtree | None
    warning: bool
    reason: str
    action: str
    note: str


class RequestScaleUp(Struct, frozen=True):
    """Ask the autoscaler for room: create the request of this attempt, unless it exists. Answered
    by ScaleUpSeen or ScaleUpRefused.

    ``attempt`` is the attempt that the dispatch would begin, ``pods`` are (item, index of the pod
    set in the item, pods) of the whole gang, pods with a place included (ADR 68).
    """

    uid: str
    attempt: int
    pods: tuple[tuple[int, int, int], ...]


class WithdrawScaleUp(Struct, frozen=True):
    """Delete the request of this attempt and all that was made for it, also if its AppWrapper is
    gone; repeated by the controller until nothing of it is left. Answered by ScaleUpGone, also if
    there was nothing to delete."""

    uid: str
    attempt: int


class WakeAt(Struct, frozen=True):
    """Send ``Decide`` at this instant, whatever else happens; a later WakeAt does not undo it."""

    at: Instant


Command = (
    WriteStatus
    | WriteQuota
    | CreateItem
    | InspectItem
    | ReadWarnings
    | ReviewAccess
    | DeleteItem
    | LookForRemains
    | ForceDeletion
    | DeleteStray
    | RecordEvent
    | RecordQuotaEvent
    | WakeAt
    | RequestScaleUp
    | WithdrawScaleUp
)
