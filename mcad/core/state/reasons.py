"""Every word that a user may meet in a condition or an Event, in one place.

The strings of MCAD are part of the contract and are kept with their odd full stops
(facts: the tutorial and KubeRay documents; MCAD sources at its last commit).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # commands import these words alone
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
    SCALE_UP = "ScaleUp"
    STALLED = "Stalled"
    UNHEALTHY = "Unhealthy"
    DELETING_RESOURCES = "DeletingResources"
    EDIT_PENDING = "EditPending"
    INTERNAL_ERROR = "InternalError"


AWAITING_HEAD_OF_LINE = "AwaitingHeadOfLine"
FRONT_OF_QUEUE = "FrontOfQueue."
NOT_RUNNABLE = "AppWrapperNotRunnable."
INSUFFICIENT_RESOURCES = "Insufficient resources to dispatch AppWrapper."
INSUFFICIENT_QUOTA = "Insufficient quota to dispatch AppWrapper."
RUNNABLE = "AppWrapperRunnable"
NEXT_ATTEMPT = "AwaitingNextAttempt"
APPLIED = "Applied"
DISPATCHER_ERROR = "DispatcherError"
SOME_ITEMS_COMPLETED = "SomeItemsCompleted"
PODS_COMPLETED = "PodsCompleted"
PODS_RUNNING = "PodsRunning"
MIN_PODS_NOT_RUNNING = "MinPodsNotRunning"
SUFFICIENT_PODS_READY = "SufficientPodsReady"
INSUFFICIENT_PODS_READY = "InsufficientPodsReady"
PODS_MISSING = "PodsMissing"
PODS_STARTING = "PodsStarting"
RETRYING = "Retrying"
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

DISRUPTIONS = {
    "PreemptionByScheduler": "was preempted by kube-scheduler",
    "DeletionByTaintManager": "was evicted by a taint of its node",
    "EvictionByEvictionAPI": "was evicted, as kubectl drain does",
    "DeletionByPodGC": "was lost with its node",
    "TerminationByKubelet": "was evicted by its node",
}
"""Reasons of the condition DisruptionTarget of a pod (Kubernetes docs, Disruptions)."""

SCALE_UP_TIMED_OUT = "TimedOut"
SCALE_UP_WITHDRAWN = "Withdrawn"
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

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> TeardownReason:
        """A member by its code alone."""
        one = str.__new__(cls, code)
        one._value_, one.meaning = code, meaning
        return one

    ITEM_CREATION_FAILURE = "ItemCreationFailure.", "An item cannot be created."
    SPEC_CHANGED = "SpecChanged", "It was edited while its items were created."
    SUSPENDED = "Suspended", "`spec.suspend` is true."
    TERMINATING = "Terminating", "It is deleted, and a finalizer keeps it."
    WAITING_FOR_NAME = "WaitingForName", "An object that is not its own has the name of an item."
    MISSING_RIGHT = "MissingRight", "A right to create an item is missing."
    NOT_PLACED = (
        "PlacementTimeout",
        "Declared pods never had nodes, for longer than `placementTimeout`.",
    )
    SUPERSEDED = "Superseded", "An attempt that a former dispatcher began does not fit any more."
    MIN_PODS_NOT_RUNNING = (
        "MinPodsNotRunning",
        "Fewer pods than `minAvailable` run or have succeeded.",
    )
    DEADLINE_EXCEEDED = (
        "DispatchDeadlineExceeded",
        "It ran for longer than `dispatchDuration.limit`.",
    )
    MISSING_COMPONENT = "MissingComponent", "An object of it was deleted."
    LOST_COMPONENT = (
        "LostComponent",
        "A bare Pod of it was preempted, evicted, or lost with its node.",
    )
    FAILED_COMPONENT = "FailedComponent", "An object of it reports a failure."
    FOUND_FAILED_PODS = "FoundFailedPods", "Pods have failed."
    INSUFFICIENT_PODS_READY = (
        "InsufficientPodsReady",
        "Too few pods are ready after the grace period.",
    )
    AUTOPILOT_NO_EXECUTE = (
        "AutopilotNoExecute",
        "Autopilot labels a node of its pods as not fit to run them.",
    )
    SUCCESS_TTL = "SuccessTTL", "Its time to live after success is over."
    PREEMPTED = "Preempted", "Evicted for an AppWrapper of higher priority."
    RECLAIMED = "Reclaimed", "Evicted for an AppWrapper that asks for its own share back."


class EventType(StrEnum):
    """``type`` of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"
    BY_CAUSE = "Normal or Warning"


class EventReason(StrEnum):
    """``reason`` of the Kubernetes Events that we record, with their type and meaning.

    docs/reference/events.md shows them as a table, which is generated from here.
    """

    type: EventType
    meaning: str

    def __new__(
        cls, code: str, kind: EventType = EventType.NORMAL, meaning: str = ""
    ) -> EventReason:
        """A member by its code alone."""
        one = str.__new__(cls, code)
        one._value_, one.type, one.meaning = code, kind, meaning
        return one

    QUEUED = (
        "Queued",
        EventType.NORMAL,
        "It does not fit now: the text says what is missing. Once per wait.",
    )
    DISPATCHED = (
        "Dispatched",
        EventType.NORMAL,
        "All of its objects are created.",
    )
    COMPLETED = (
        "Completed",
        EventType.NORMAL,
        "All items are finished.",
    )
    FAILED = (
        "Failed",
        EventType.WARNING,
        "It has failed for good, and its objects are deleted.",
    )
    TAKEN_BACK = (
        "TakenBack",
        EventType.BY_CAUSE,
        "Its objects are deleted and it queues again; the text says why.",
    )
    UNHEALTHY = (
        "Unhealthy",
        EventType.WARNING,
        "Its pods or objects do not work; the text says what, and whether it is retried.",
    )
    RESET = (
        "Reset",
        EventType.WARNING,
        "Its objects are deleted, and it is dispatched again without queueing.",
    )
    CLEARED = (
        "Cleared",
        EventType.NORMAL,
        "Its time to live after success is over: its objects are deleted.",
    )
    GIVEN_UP = (
        "GivenUp",
        EventType.WARNING,
        "It was requeued as often as `requeuing.maxNumRequeuings` allows; its objects are deleted.",
    )
    REFUSED = (
        "Refused",
        EventType.WARNING,
        "The manifest cannot be dispatched, or the API server refuses to delete an item.",
    )
    MANIFEST = (
        "ManifestWarning",
        EventType.WARNING,
        "A field of the manifest is ignored or has no effect.",
    )
    PODS_ASK_FOR_MORE = (
        "PodsAskForMore",
        EventType.WARNING,
        "Its pods ask for more than their templates: a mutating webhook or policy adds it. The "
        "next attempt waits for room for that as well.",
    )
    UNSCHEDULED = (
        "PodsUnschedulable",
        EventType.WARNING,
        "kube-scheduler finds no node for some of its pods.",
    )
    IMAGE_PULL_FAILED = (
        "ImagePullFailed",
        EventType.WARNING,
        "The image of a container cannot be pulled; the text has the words of the kubelet.",
    )
    CONTAINER_CANNOT_START = (
        "ContainerCannotStart",
        EventType.WARNING,
        "A container cannot be created or started; the text has the words of the kubelet.",
    )
    CRASH_LOOP = (
        "CrashLoop",
        EventType.WARNING,
        "A container crashes again and again.",
    )
    PODS_REFUSED = (
        "PodsRefused",
        EventType.WARNING,
        "The API server refuses to create pods of it; the text has its words.",
    )
    ITEM_SUSPENDED = (
        "ItemSuspended",
        EventType.WARNING,
        "An object of it is suspended: it has no pods until a client resumes it.",
    )
    ITEM_FAILED = (
        "ItemFailed",
        EventType.WARNING,
        "An object of it has failed, and its `completionstatus` has not come.",
    )
    SCHEDULING_GATED = (
        "SchedulingGated",
        EventType.WARNING,
        "Pods of it have scheduling gates: kube-scheduler does not look at them yet.",
    )
    PODS_REMAIN = (
        "PodsRemain",
        EventType.WARNING,
        "An object of it is over, and its controller lets pods run on.",
    )
    PODS_NOT_ATTRIBUTED = (
        "PodsNotAttributed",
        EventType.WARNING,
        "Pods that it declares did not appear in time; room is not kept for them any more.",
    )
    LEFT_ALONE = (
        "LeftAlone",
        EventType.WARNING,
        "Another controller or a newer version dispatched it: it is left as it is.",
    )
    ADOPTED = (
        "Adopted",
        EventType.NORMAL,
        "The finalizer of the controller that managed it before is removed.",
    )
    STATUS_REFUSED = (
        "StatusRefused",
        EventType.WARNING,
        "The API server refuses to store its status.",
    )
    HELD = (
        "ResourceHeld",
        EventType.WARNING,
        "A right to create a resource is missing; AppWrappers that need it wait.",
    )
    REMAINS = (
        "WaitingForRemains",
        EventType.WARNING,
        "Objects of an ended attempt are still there: the text names one and what holds it.",
    )
    EDIT_PENDING = (
        "EditPending",
        EventType.WARNING,
        "It was edited while it runs; the edit counts from its next attempt on.",
    )
    OWNER_UNKNOWN = (
        "AppWrapperUnknown",
        EventType.WARNING,
        "On an object whose AppWrapper does not exist: room for its pods is kept for a while.",
    )
    ROOM_RESERVED = (
        "RoomReserved",
        EventType.NORMAL,
        "Room is reserved for it before it is free.",
    )
    RESERVATION_ENDED = (
        "ReservationEnded",
        EventType.WARNING,
        "Its reservation ended before it could start.",
    )
    PREEMPT_CANDIDATE = (
        "PreemptCandidate",
        EventType.WARNING,
        "It will be evicted: the text says for which AppWrapper.",
    )
    QUOTA_ABSENT = (
        "QuotaAbsent",
        EventType.WARNING,
        "On a QuotaSubtree: it was deleted, and counts as before until its grace period ends.",
    )
    QUOTA_DROPPED = (
        "QuotaDropped",
        EventType.WARNING,
        "On a QuotaSubtree: the grace period after its deletion is over; it limits nothing.",
    )


HARMLESS_FINALIZERS = frozenset(
    {"foregroundDeletion", "orphan", "batch.kubernetes.io/job-tracking"}
)
"""Finalizers of the cluster itself, which removes them when their purpose is fulfilled."""


def explain_remains(remains: Sequence[Remnant], node: str) -> str:
    """What a teardown waits for, by its most important object (see ``most_telling``); ``node`` is
    where that object runs, if it is a pod."""
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
"""How many names a message has; the others can be looked up in the cluster."""


def some_of(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    more = len(names) - SOME
    return ", ".join(names[:SOME]) + (f" and {more} more" if more > 0 else "")


def explain_reservation(reservation: Reservation) -> str:
    """The sentence about an AppWrapper that has this reservation."""
    count = len(reservation.nodes)
    if reservation.reason == "ScalingUp" and not count:
        return "No node has room for its pods; an autoscaler is asked for nodes."
    where = f" on {count} node{'' if count == 1 else 's'}" if count else ""
    text = reservation.reason.text.format(others=some_of(reservation.waits_for))
    return f"Room{where} is reserved for it{text}"


def held_by(ref: ObjectRef, owner: str) -> str:
    """The sentence for a name that another object holds."""
    return f"{ref} exists already and belongs to {owner}. Rename the item, or delete that object."


def no_fault_of_it(status: int, reason: str, words: str) -> str:
    """The sentences for an answer not caused by the manifest; ``status`` 0: no answer."""
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
