"""The meaning of each condition of an AppWrapper, and of each of its reasons.

docs/reference/conditions.md shows them as a table, which is generated from here. A test compares
every condition that the core writes in the tests of the core with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcad.core.state import reasons
from mcad.core.state.reasons import ConditionType, EventReason, State, TeardownReason
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.waiting_reason import RESERVED, Ends, WaitingReason

_EVICTIONS: Final = {
    str(one): one.meaning for one in (TeardownReason.PREEMPTED, TeardownReason.RECLAIMED)
}
_TEARDOWNS: Final = {str(one): one.meaning for one in TeardownReason}
_BREAKDOWNS: Final = {
    str(one): one.meaning
    for one in (
        TeardownReason.MISSING_COMPONENT,
        TeardownReason.LOST_COMPONENT,
        TeardownReason.FAILED_COMPONENT,
        TeardownReason.FOUND_FAILED_PODS,
        TeardownReason.INSUFFICIENT_PODS_READY,
        TeardownReason.AUTOPILOT_NO_EXECUTE,
    )
}
_FAILURES: Final = _BREAKDOWNS | {
    str(one): one.meaning
    for one in (TeardownReason.ITEM_CREATION_FAILURE, TeardownReason.DEADLINE_EXCEEDED)
}
_OUT_OF_LINE: Final = (Ends.EVENT, Ends.INSTANT, Ends.MANIFEST, Ends.RESUME)
_HOLDS: Final = {
    str(one): one.meaning
    for one in WaitingReason
    if (one.ends in _OUT_OF_LINE and one is not WaitingReason.DELETED) or one in RESERVED
}
_STALLS: Final = {
    str(one): one.meaning
    for one in (
        EventReason.UNSCHEDULED,
        EventReason.IMAGE_PULL_FAILED,
        EventReason.CONTAINER_CANNOT_START,
        EventReason.CRASH_LOOP,
        EventReason.PODS_REFUSED,
        EventReason.ITEM_SUSPENDED,
        EventReason.ITEM_FAILED,
        EventReason.SCHEDULING_GATED,
        EventReason.PODS_REMAIN,
    )
}
_QUEUED: Final = {reasons.SUSPENDED: "It waits in the queue, or `spec.suspend` is true."}
_RESUMED: Final = {reasons.RESUMING: "It is dispatched."}
_RESET: Final = {reasons.RESETTING: "Its objects are deleted, and it is dispatched again."}
_SUCCEEDED: Final = {reasons.SUCCEEDED: "All of its items are finished."}
_FAILED: Final[Mapping[str, str]] = {str(State.FAILED): "It has failed."}

MEANING: Final[Mapping[ConditionType, str]] = {
    ConditionType.INIT: "The dispatcher has seen the AppWrapper.",
    ConditionType.QUEUEING: "The AppWrapper is in the queue, or was.",
    ConditionType.HEAD_OF_LINE: "Its turn has come at least once; only room is missing.",
    ConditionType.BACKOFF: "It waits; the message says what for.",
    ConditionType.DISPATCHED: "Its objects are created.",
    ConditionType.RUNNING: "At least `minAvailable` pods run or have succeeded.",
    ConditionType.PREEMPT_CANDIDATE: "It is about to be evicted or requeued.",
    ConditionType.PREEMPTED: "It was evicted and queues again.",
    ConditionType.RUNNING_HOLD_COMPLETION: "Some items are finished, others are not (v1beta1).",
    ConditionType.COMPLETED: "All items are finished.",
    ConditionType.FAILED: "It has failed for good.",
    ConditionType.QUOTA_RESERVED: "It holds room on nodes and in its quota (v1beta2).",
    ConditionType.RESOURCES_DEPLOYED: "Its objects exist (v1beta2).",
    ConditionType.PODS_READY: "As many pods as expected are ready (v1beta2).",
    ConditionType.SCALE_UP: "It waits for nodes that it asked an autoscaler for.",
    ConditionType.STALLED: "Pods of it do not run; the message says why. Absent if all do.",
    ConditionType.UNHEALTHY: "Its pods or objects do not work (v1beta2).",
    ConditionType.DELETING_RESOURCES: "Its objects are being deleted.",
    ConditionType.EDIT_PENDING: "It was edited while it runs.",
    ConditionType.INTERNAL_ERROR: (
        "The dispatcher had an error of its own about it, and leaves it alone: nothing is created, "
        "deleted or judged, and what its attempt declared stays booked. It is tried again after an "
        "edit of its spec (`mcad requeue` makes two), or by another version of the dispatcher."
    ),
}

TRUE: Final[Mapping[ConditionType, Mapping[str, str]]] = {
    ConditionType.INIT: {"": "Always."},
    ConditionType.QUEUEING: {reasons.AWAITING_HEAD_OF_LINE: "It waits for its turn."},
    ConditionType.HEAD_OF_LINE: {reasons.FRONT_OF_QUEUE: "It was tried, and does not fit yet."},
    ConditionType.BACKOFF: {
        reasons.NOT_RUNNABLE: "In the queue; the message has the room or quota that is missing.",
        **_HOLDS,
    },
    ConditionType.DISPATCHED: {reasons.RUNNABLE: "All of it fits."},
    ConditionType.RUNNING: {reasons.PODS_RUNNING: "Enough pods run or have succeeded."},
    ConditionType.PREEMPT_CANDIDATE: {
        TeardownReason.PREEMPTED: "An AppWrapper of higher priority needs its room.",
        TeardownReason.RECLAIMED: "It borrows from the share of an AppWrapper that asks for it.",
        TeardownReason.MIN_PODS_NOT_RUNNING: TeardownReason.MIN_PODS_NOT_RUNNING.meaning,
        TeardownReason.DEADLINE_EXCEEDED: TeardownReason.DEADLINE_EXCEEDED.meaning,
    },
    ConditionType.PREEMPTED: _EVICTIONS,
    ConditionType.RUNNING_HOLD_COMPLETION: {
        reasons.SOME_ITEMS_COMPLETED: "Some items are finished.",
    },
    ConditionType.COMPLETED: {reasons.PODS_COMPLETED: "All items are finished, and no pod runs."},
    ConditionType.FAILED: _FAILURES,
    ConditionType.QUOTA_RESERVED: {**_RESUMED, **_RESET},
    ConditionType.RESOURCES_DEPLOYED: {**_RESUMED, **_SUCCEEDED},
    ConditionType.PODS_READY: {reasons.SUFFICIENT_PODS_READY: "Enough pods are ready."},
    ConditionType.SCALE_UP: {
        ScaleUpState.ASKED: "The autoscaler has not answered yet.",
        ScaleUpState.ACCEPTED: "The autoscaler works on it.",
        ScaleUpState.PROVISIONED: "The autoscaler says that the nodes are there.",
        ScaleUpState.EXPIRED: "The nodes are not kept for it any more; it asks again.",
    },
    ConditionType.STALLED: {
        **_STALLS,
        reasons.PODS_MISSING: "Its controllers have not created pods that they should.",
        reasons.PODS_STARTING: "None of its pods runs yet, for longer than usual.",
        reasons.RETRYING: "An object of it failed, and its controller begins again.",
    },
    ConditionType.UNHEALTHY: _BREAKDOWNS,
    ConditionType.DELETING_RESOURCES: {
        reasons.DELETION_INITIATED: "The deletion has begun.",
        reasons.WAITING_FOR_REMAINS: "An object is still there; the message names it.",
    },
    ConditionType.EDIT_PENDING: {
        reasons.NEXT_ATTEMPT: "The edit counts from the next attempt on.",
    },
    ConditionType.INTERNAL_ERROR: {
        reasons.DISPATCHER_ERROR: "The message has the place in the code, and an id to report.",
    },
}
"""Reasons while the condition is True."""

FALSE: Final[Mapping[ConditionType, Mapping[str, str]]] = {
    ConditionType.HEAD_OF_LINE: {reasons.AWAITING_HEAD_OF_LINE: "It queues again."},
    ConditionType.BACKOFF: {reasons.RUNNABLE: "It is dispatched."},
    ConditionType.DISPATCHED: _TEARDOWNS,
    ConditionType.RUNNING: {reasons.MIN_PODS_NOT_RUNNING: "Too few pods run or have succeeded."},
    ConditionType.PREEMPT_CANDIDATE: {
        reasons.PODS_RUNNING: "Enough pods run again.",
        reasons.EVICTION_CALLED_OFF: "The eviction is not needed any more.",
        **_EVICTIONS,
    },
    ConditionType.PREEMPTED: {reasons.RUNNABLE: "It is dispatched again."},
    ConditionType.RUNNING_HOLD_COMPLETION: {
        reasons.PODS_COMPLETED: "All items are finished.",
        **_TEARDOWNS,
    },
    ConditionType.QUOTA_RESERVED: {**_QUEUED, **_SUCCEEDED, **_FAILED},
    ConditionType.RESOURCES_DEPLOYED: {**_QUEUED, **_RESET, **_SUCCEEDED, **_FAILED},
    ConditionType.PODS_READY: {
        reasons.RESUMING: "An attempt begins.",
        reasons.INSUFFICIENT_PODS_READY: "Too few pods are ready; the message counts them.",
        reasons.SUSPENDED: "An item is suspended, and no pod is left to expect.",
        **_TEARDOWNS,
    },
    ConditionType.SCALE_UP: {
        ScaleUpState.FAILED: "The autoscaler gave up; the message has its words.",
        ScaleUpState.REVOKED: "The nodes were lost again; the message has the autoscaler's words.",
        reasons.SCALE_UP_TIMED_OUT: "The nodes did not come within `scaleUp.timeout`.",
        reasons.SCALE_UP_WITHDRAWN: "It does not wait for new nodes any more.",
        reasons.RUNNABLE: "It is dispatched.",
    },
    ConditionType.UNHEALTHY: {
        reasons.RESUMING: "An attempt begins.",
        reasons.FOUND_NO_FAILED_PODS: "The failed pods are gone.",
    },
    ConditionType.DELETING_RESOURCES: {
        reasons.DELETION_PAUSED: "It has failed, and its objects are kept for a while.",
        reasons.DELETION_COMPLETE: "Nothing of it is left.",
    },
    ConditionType.EDIT_PENDING: {reasons.APPLIED: "The edit counts now, or was undone."},
}
"""Reasons while the condition is False; a condition that was never True is absent."""
