"""The status of an AppWrapper as a pure function of what the core knows of it.

MCAD's words for both dialects, and ``phase`` for v1beta2 on top (facts: v1beta1 section 2,
v1beta2 section 2.1).
"""

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import ENDED, TEARING_DOWN, Phase
from mcad.core.state.model import Dialect, Next, Persisted
from mcad.core.state.reasons import (
    SENDER_BACKOFF,
    SENDER_CAN_NOT_RUN,
    SENDER_CAN_RUN,
    SENDER_COMPLETED,
    SENDER_DISPATCHED,
    SENDER_HOLD_COMPLETION,
    SENDER_QUEUEING,
    ConditionType,
    State,
)
from mcad.core.state.status_view import StatusView

_CAN_RUN = frozenset({Phase.INTENDING, Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING})

_SENDER = {
    Phase.INTENDING: SENDER_CAN_RUN,
    Phase.CREATING: SENDER_CAN_RUN,
    Phase.CONFIRMING: SENDER_DISPATCHED,
    Phase.RUNNING: SENDER_DISPATCHED,
}

_PHASE = {
    Phase.WAITING: "Suspended",
    Phase.INTENDING: "Resuming",
    Phase.CREATING: "Resuming",
    Phase.CONFIRMING: "Running",
    Phase.RUNNING: "Running",
    Phase.COMPLETED: "Succeeded",
    Phase.KEEPING: "Failed",
    Phase.PAUSING: "Resetting",
    Phase.FAILED: "Failed",
    Phase.DELETED: "Failed",
}

_PHASE_ON_THE_WAY = {
    Next.RESET: "Resetting",
    Next.COMPLETED: "Succeeded",
    Next.FAILED: "Failed",
    Next.DELETED: "Failed",
}


def derive(entry: Entry) -> StatusView:
    """What ``status`` says now; its pods as they were counted last (pod_counts.py)."""
    is_v1beta2 = entry.workload.dialect is Dialect.V1BETA2
    return StatusView(
        state=state(entry),
        queue_job_state=queue_job_state(entry),
        can_run=entry.phase in _CAN_RUN,
        sender=_sender(entry),
        first_seen=entry.first_seen,
        first_dispatch=entry.first_dispatch,
        system_priority=entry.workload.priority,
        conditions=tuple(
            entry.conditions[kind] for kind in ConditionType if kind in entry.conditions
        ),
        pods=entry.pods,
        requeueings=entry.requeueings,
        requeueing_wait=entry.requeueing_wait,
        observed_generation=entry.workload.generation,
        phase=_phase(entry) if is_v1beta2 else "",
        dispatch=entry.dispatch,
        resets=entry.resets,
        items=entry.workload.items if is_v1beta2 else (),
        sets=entry.workload.sets if is_v1beta2 else (),
        quota=() if _has_ended(entry) else entry.path,
        reservation=entry.reservation,
        eviction=entry.eviction,
    )


def persisted(view: StatusView) -> Persisted:
    """What a restart reads back of a status that was written."""
    return Persisted(
        view.state,
        view.first_seen,
        view.conditions,
        view.dispatch,
        view.first_dispatch,
        view.requeueings,
        view.requeueing_wait,
        view.resets,
        view.pods,
        view.observed_generation,
        view.quota,
        view.reservation,
        view.eviction,
    )


_OUTCOME = {
    Next.COMPLETED: State.COMPLETED,
    Next.FAILED: State.FAILED,
    Next.DELETED: State.DELETED,
}


def state(entry: Entry) -> State:
    """``status.state``: Running from the confirmation on; in a teardown the state that follows."""
    match entry.phase:
        case Phase.CONFIRMING | Phase.RUNNING:
            held = entry.shows(ConditionType.RUNNING_HOLD_COMPLETION)
            return State.RUNNING_HOLD_COMPLETION if held else State.RUNNING
        case Phase.COMPLETED:
            return State.COMPLETED
        case Phase.FAILED | Phase.KEEPING:
            return State.FAILED
        case Phase.DELETED:
            return State.DELETED
        case _ if entry.phase in TEARING_DOWN:
            return _OUTCOME.get(entry.record.next, State.PENDING)
        case _:
            return State.PENDING


def _has_ended(entry: Entry) -> bool:
    """Whether it holds nothing and waits for nothing any more, or will not once this is written."""
    if entry.phase is Phase.SETTLING:
        return entry.record.next in _OUTCOME
    return entry.phase in ENDED


def queue_job_state(entry: Entry) -> str:
    """``status.queuejobstate``: the type of the condition that describes the present."""
    current = state(entry)
    if current in (State.COMPLETED, State.FAILED, State.DELETED, State.RUNNING_HOLD_COMPLETION):
        return current.value
    if current is State.RUNNING:
        return ConditionType.DISPATCHED
    for kind in (ConditionType.BACKOFF, ConditionType.HEAD_OF_LINE, ConditionType.QUEUEING):
        condition = entry.conditions.get(kind)
        if condition is not None and condition.status:
            return kind
    return ConditionType.INIT


def _sender(entry: Entry) -> str:
    current = state(entry)
    if current is State.RUNNING_HOLD_COMPLETION:
        return SENDER_HOLD_COMPLETION
    if current is State.COMPLETED:
        return SENDER_COMPLETED
    if entry.phase in _SENDER:
        return _SENDER[entry.phase]
    if entry.phase is not Phase.WAITING:
        return SENDER_CAN_NOT_RUN
    backoff = entry.conditions.get(ConditionType.BACKOFF)
    return SENDER_BACKOFF if backoff is not None and backoff.status else SENDER_QUEUEING


def _phase(entry: Entry) -> str:
    if entry.workload.deleting and entry.phase is not Phase.WAITING:
        return "Terminating"
    if entry.phase in _PHASE:
        return _PHASE[entry.phase]
    then = entry.record.next
    if then is Next.RESET and entry.workload.suspended:
        return "Suspending"  # no attempt follows
    return _PHASE_ON_THE_WAY.get(then, "Suspending")
