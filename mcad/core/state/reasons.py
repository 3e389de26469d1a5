"""Every word that a user may meet in a condition or an Event, in one place.

The strings of MCAD are part of the contract and are kept with their odd full stops
(facts: the tutorial and KubeRay documents; MCAD sources at its last commit).
"""

from collections.abc import Sequence
from enum import StrEnum

from mcad.core.state.model import ObjectRef, Remnant
from mcad.core.state.reservation import Reservation


class ConditionType(StrEnum):
    """The condition types in the order in which they are listed in status."""

    INIT = "Init"
    QUEUEING = "Queueing"
    HEAD_OF_LINE = "HeadOfLine"
    BACKOFF = "Backoff"
    DISPATCHED = "Dispatched"
    RUNNING = "Running"
    PREEMPT_CANDIDATE = "PreemptCandidate"
    PREEMPTED = "Preempted"
    RUNNING_HOLD_COMPLETION = "RunningHoldCompletion"
    COMPLETED = "Completed"
    FAILED = "Failed"
    QUOTA_RESERVED = "QuotaReserved"
    RESOURCES_DEPLOYED = "ResourcesDeployed"
    PODS_READY = "PodsReady"
    UNHEALTHY = "Unhealthy"
    DELETING_RESOURCES = "DeletingResources"
    EDIT_PENDING = "EditPending"


AWAITING_HEAD_OF_LINE = "AwaitingHeadOfLine"
FRONT_OF_QUEUE = "FrontOfQueue."
NOT_RUNNABLE = "AppWrapperNotRunnable."
INSUFFICIENT_RESOURCES = "Insufficient resources to dispatch AppWrapper."
INSUFFICIENT_QUOTA = "Insufficient quota to dispatch AppWrapper."
RUNNABLE = "AppWrapperRunnable"
NEXT_ATTEMPT = "AwaitingNextAttempt"
APPLIED = "Applied"
SOME_ITEMS_COMPLETED = "SomeItemsCompleted"
PODS_COMPLETED = "PodsCompleted"
PODS_RUNNING = "PodsRunning"
MIN_PODS_NOT_RUNNING = "MinPodsNotRunning"
SUFFICIENT_PODS_READY = "SufficientPodsReady"
INSUFFICIENT_PODS_READY = "InsufficientPodsReady"
FOUND_FAILED_PODS = "FoundFailedPods"
FOUND_NO_FAILED_PODS = "FoundNoFailedPods"
RESUMING = "Resuming"
SUSPENDED = "Suspended"
SUSPENDED_NOTE = "spec.suspend is true."
RESETTING = "Resetting"
SUCCEEDED = "Succeeded"
DELETION_INITIATED = "DeletionInitiated"
DELETION_PAUSED = "DeletionPaused"
WAITING_FOR_REMAINS = "WaitingForRemains"
DELETION_COMPLETE = "DeletionComplete"
CAME_TO_NOTHING = (
    "It was taken back before all of its pods had nodes; it queues again after a pause."
)

EVICTION_CALLED_OFF = "EvictionCalledOff"


class Sender(StrEnum):
    """``status.sender``: the step of MCAD that wrote last."""

    QUEUEING = "before worker - setQueueing"
    CAN_RUN = "before ScheduleNext - setCanRun"
    BACKOFF = "before [backoff] - Rejoining"
    DISPATCHED = "before manageQueueJob - afterEtcdDispatching"
    HOLD_COMPLETION = "before [UpdateQueueJobs]  setRunningHoldCompletion"
    COMPLETED = "before [UpdateQueueJobs] setCompleted"
    CAN_NOT_RUN = "before preemptAWJobs - CanRun: false"


class State(StrEnum):
    """``status.state``, as MCAD spells it."""

    PENDING = "Pending"
    RUNNING = "Running"
    RUNNING_HOLD_COMPLETION = "RunningHoldCompletion"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETED = "Deleted"


class TeardownReason(StrEnum):
    """Why an attempt is taken back."""

    ITEM_CREATION_FAILURE = "ItemCreationFailure."
    SPEC_CHANGED = "SpecChanged"
    SUSPENDED = "Suspended"
    WAITING_FOR_NAME = "WaitingForName"
    MISSING_RIGHT = "MissingRight"
    NOT_PLACED = "PlacementTimeout"
    SUPERSEDED = "Superseded"
    MIN_PODS_NOT_RUNNING = "MinPodsNotRunning"
    DEADLINE_EXCEEDED = "DispatchDeadlineExceeded"
    MISSING_COMPONENT = "MissingComponent"
    FAILED_COMPONENT = "FailedComponent"
    FOUND_FAILED_PODS = "FoundFailedPods"
    INSUFFICIENT_PODS_READY = "InsufficientPodsReady"
    AUTOPILOT_NO_EXECUTE = "AutopilotNoExecute"
    SUCCESS_TTL = "SuccessTTL"
    PREEMPTED = "Preempted"
    RECLAIMED = "Reclaimed"


class EventReason(StrEnum):
    """``reason`` of the Kubernetes Events that we record."""

    QUEUED = "Queued"
    DISPATCHED = "Dispatched"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TAKEN_BACK = "TakenBack"
    UNHEALTHY = "Unhealthy"
    RESET = "Reset"
    CLEARED = "Cleared"
    GIVEN_UP = "GivenUp"
    REFUSED = "Refused"
    MANIFEST = "ManifestWarning"
    UNSCHEDULED = "PodsUnschedulable"
    PODS_NOT_ATTRIBUTED = "PodsNotAttributed"
    LEFT_ALONE = "LeftAlone"
    ADOPTED = "Adopted"
    STATUS_REFUSED = "StatusRefused"
    HELD = "ResourceHeld"
    REMAINS = "WaitingForRemains"
    EDIT_PENDING = "EditPending"
    OWNER_UNKNOWN = "AppWrapperUnknown"
    ROOM_RESERVED = "RoomReserved"
    RESERVATION_ENDED = "ReservationEnded"
    PREEMPT_CANDIDATE = "PreemptCandidate"
    QUOTA_ABSENT = "QuotaAbsent"
    QUOTA_DROPPED = "QuotaDropped"


HARMLESS_FINALIZERS = frozenset(
    {"foregroundDeletion", "orphan", "batch.kubernetes.io/job-tracking"}
)
"""Those of the cluster itself, which removes them when what they stand for is done."""


def explain_remains(remains: Sequence[Remnant], node: str) -> str:
    """What a teardown waits for, by its most important object; ``node`` is where that one runs, if
    it is a pod (see ``most_telling``)."""
    one = most_telling(remains)
    foreign = [name for name in one.finalizers if name not in HARMLESS_FINALIZERS]
    if foreign:
        text = f"{one.ref} cannot be deleted because of its finalizer {foreign[0]}: its controller "
        text += "has to remove it, or remove it by hand."
    elif one.ref.kind == "Pod" and one.terminating:
        where = f" on node {node}" if node else ""
        text = f"{one.ref} is terminating{where}: if the node is lost, delete the pod by force."
    else:
        text = f"{one.ref} is still there."
    others = len(remains) - 1
    return f"{text} Also left: {others}." if others else text


def most_telling(remains: Sequence[Remnant]) -> Remnant:
    """The object to name first: with a foreign finalizer, else a pod, else any."""

    def rank(one: Remnant) -> tuple[bool, bool, str]:
        is_held = HARMLESS_FINALIZERS.issuperset(one.finalizers)
        return is_held, one.ref.kind != "Pod", str(one.ref)

    return min(remains, key=rank)


SOME = 3
"""Things that a message names; the others can be asked of the cluster."""


def some_of(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    more = len(names) - SOME
    return ", ".join(names[:SOME]) + (f" and {more} more" if more > 0 else "")


def explain_reservation(reservation: Reservation) -> str:
    """The sentence about an AppWrapper that has this reservation."""
    count = len(reservation.nodes)
    where = f" on {count} node{'' if count == 1 else 's'}" if count else ""
    text = reservation.reason.text.format(others=some_of(reservation.waits_for))
    return f"Room{where} is reserved for it{text}"


def held_by(ref: ObjectRef, owner: str) -> str:
    """The sentence for a name that another object holds."""
    return f"{ref} exists already and belongs to {owner}. Rename the item, or delete that object."


def no_fault_of_it(status: int, reason: str, words: str) -> str:
    """The sentences for an answer that says nothing about the manifest; ``status`` 0 for none."""
    answer = f"{status} {reason}: {words}" if status else f"no answer: {words}"
    return f"{answer.rstrip('.: ')}. Not caused by the manifest; retrying."


def missing_right(ref: ObjectRef, words: str, user: str) -> str:
    """The sentences for a right to create that ``user`` ("" for the dispatcher) does not have."""
    resource = f"{ref.resource}.{ref.group}" if ref.group else ref.resource
    return (
        f"{user or 'The dispatcher'} has no right to create {resource} in namespace "
        f"{ref.namespace}: {words.rstrip('.')}. Grant it; the AppWrappers that wait for it then go "
        "on by themselves."
    )
