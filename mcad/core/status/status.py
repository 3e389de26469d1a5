"""The status of an AppWrapper, derived from its state in the core.

MCAD's words for both dialects, and ``phase`` with its conditions for v1beta2 on top (facts: v1beta1
section 2, v1beta2 section 2).
"""

from __future__ import annotations

from typing import NamedTuple

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import ENDED, TEARING_DOWN, Phase
from mcad.core.state.model import Dialect, Next, Persisted
from mcad.core.state.reasons import (
    DELETION_COMPLETE,
    DELETION_INITIATED,
    DELETION_PAUSED,
    RESETTING,
    RESUMING,
    SUCCEEDED,
    SUSPENDED,
    ConditionType,
    Sender,
    State,
)
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import SECOND, Instant


class _Standing(NamedTuple):
    """The conditions of v1beta2 about room and objects."""

    reserved: bool
    deployed: bool
    reason: str
    message: str


_DISPATCHED = _Standing(True, True, RESUMING, "")  # no message in a column while all is well
_QUEUED = _Standing(False, False, SUSPENDED, "Queued, or held by spec.suspend.")
_PAUSED = _Standing(True, False, RESETTING, "Resources deleted for resetting AppWrapper")
_SUCCEEDED = _Standing(False, True, SUCCEEDED, "All pods have succeeded.")
_CLEARED = _Standing(False, False, SUCCEEDED, "Time to live after success is over.")
_FAILED = _Standing(False, False, State.FAILED, "Resources deleted for failed AppWrapper")


class _Words(NamedTuple):
    """The status in a phase: ``phase`` and ``standing`` are of v1beta2, and without a standing the
    conditions stay as they are."""

    state: State
    phase: str
    standing: _Standing | None
    sender: Sender = Sender.CAN_NOT_RUN


_IN_PHASE = {
    Phase.WAITING: _Words(State.PENDING, "Suspended", _QUEUED, Sender.QUEUEING),
    Phase.INTENDING: _Words(State.PENDING, "Resuming", _DISPATCHED, Sender.CAN_RUN),
    Phase.CREATING: _Words(State.PENDING, "Resuming", _DISPATCHED, Sender.CAN_RUN),
    Phase.CONFIRMING: _Words(State.RUNNING, "Running", _DISPATCHED, Sender.DISPATCHED),
    Phase.RUNNING: _Words(State.RUNNING, "Running", _DISPATCHED, Sender.DISPATCHED),
    Phase.COMPLETED: _Words(State.COMPLETED, "Succeeded", _SUCCEEDED, Sender.COMPLETED),
    Phase.KEEPING: _Words(State.FAILED, "Failed", _DISPATCHED),
    Phase.PAUSING: _Words(State.PENDING, "Resetting", _PAUSED),
    Phase.FAILED: _Words(State.FAILED, "Failed", _FAILED),
    Phase.DELETED: _Words(State.DELETED, "Failed", None),
}

_IN_TEARDOWN = {
    Next.QUEUED: _Words(State.PENDING, "Suspending", _QUEUED),
    Next.RESET: _Words(State.PENDING, "Resetting", _PAUSED),
    Next.COMPLETED: _Words(State.COMPLETED, "Succeeded", _CLEARED, Sender.COMPLETED),
    Next.FAILED: _Words(State.FAILED, "Failed", _FAILED),
    Next.DELETED: _Words(State.DELETED, "Failed", None),
}
"""Status shows from the start how a teardown ends; the standing holds at its end."""

_UNTOLD = _Words(State.PENDING, "", None)


def _at(entry: Entry) -> Phase:
    """The phase that status shows: a held AppWrapper shows the phase before the hold."""
    return entry.held_from if entry.phase is Phase.HELD else entry.phase


def _words(entry: Entry) -> _Words:
    record, phase = entry.dispatch, _at(entry)
    is_cleared = record is not None and record.next is Next.COMPLETED
    if phase in TEARING_DOWN or (phase is Phase.COMPLETED and is_cleared):
        return _IN_TEARDOWN[entry.record.next]
    return _IN_PHASE.get(phase, _UNTOLD)


def derive(entry: Entry) -> StatusView:
    """The present status, with pods as they were last counted (pod_counts.py)."""
    is_v1beta2 = entry.workload.dialect is Dialect.V1BETA2
    return StatusView(
        state=state(entry),
        queue_job_state=queue_job_state(entry),
        can_run=_words(entry).sender in (Sender.CAN_RUN, Sender.DISPATCHED),
        sender=_sender(entry),
        first_seen=entry.first_seen,
        first_dispatch=entry.past.first_dispatch,
        system_priority=entry.workload.priority,
        conditions=tuple(
            entry.conditions[kind] for kind in ConditionType if kind in entry.conditions
        ),
        pods=entry.pods,
        requeueings=entry.past.requeueings,
        requeueing_wait=entry.past.requeueing_wait,
        observed_generation=entry.workload.generation,
        phase=_phase(entry) if is_v1beta2 else "",
        dispatch=entry.dispatch,
        resets=entry.past.resets,
        items=entry.workload.items if is_v1beta2 else (),
        sets=entry.workload.sets if is_v1beta2 else (),
        quota=() if _has_ended(entry) else entry.path,
        reservation=entry.reservation,
        eviction=entry.eviction,
        priority_source=entry.workload.priority_source,
        deleted_trees=() if _has_ended(entry) else entry.deleted_trees,
    )


def failure(entry: Entry) -> str:
    """Why the AppWrapper has failed, "" if it has not."""
    failed = entry.conditions.get(ConditionType.FAILED)
    has_failed = failed is not None and failed.status and state(entry) == State.FAILED
    return failed.message if failed is not None and has_failed else ""


def persisted(view: StatusView) -> Persisted:
    """The part of a written status that a restart reads back."""
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
        priority_source=view.priority_source,
        deleted_trees=view.deleted_trees,
    )


def state(entry: Entry) -> State:
    """``status.state``: Running from the confirmation on; in a teardown the state that follows."""
    current = _words(entry).state
    if current is State.RUNNING and entry.shows(ConditionType.RUNNING_HOLD_COMPLETION):
        return State.RUNNING_HOLD_COMPLETION
    return current


def _has_ended(entry: Entry) -> bool:
    """Whether the AppWrapper holds nothing and waits for nothing, or will not after this write."""
    if _at(entry) is Phase.SETTLING:
        return _words(entry).state is not State.PENDING
    return _at(entry) in ENDED


def queue_job_state(entry: Entry) -> str:
    """``status.queuejobstate``: the type of the condition that describes the present."""
    current = state(entry)
    if current is State.RUNNING:
        return ConditionType.DISPATCHED
    if current is not State.PENDING:
        return current.value
    for kind in (ConditionType.BACKOFF, ConditionType.HEAD_OF_LINE, ConditionType.QUEUEING):
        if entry.shows(kind):
            return kind
    return ConditionType.INIT


def _sender(entry: Entry) -> Sender:
    if state(entry) is State.RUNNING_HOLD_COMPLETION:
        return Sender.HOLD_COMPLETION
    if _at(entry) is Phase.WAITING and entry.shows(ConditionType.BACKOFF):
        return Sender.BACKOFF
    return _words(entry).sender


def _phase(entry: Entry) -> str:
    phase = _at(entry)
    if entry.workload.deleting and phase is not Phase.WAITING:
        return "Terminating"
    if phase in TEARING_DOWN and entry.record.next is Next.RESET and entry.workload.suspended:
        return "Suspending"  # no attempt follows
    return _words(entry).phase


# -- the conditions of v1beta2 -------------------------------------------------------------------


def keep_conditions(entry: Entry, now: Instant) -> None:
    """Update the conditions that follow from the phase (facts: v1beta2, 2.2). Their times are the
    times of the last change, so they are kept from one status to the next and read back after a
    restart. The conditions of a held AppWrapper stay as they are."""
    if entry.phase is Phase.HELD:
        return
    _keep_deletion(entry, now)
    is_on_the_way = entry.phase in TEARING_DOWN and entry.phase is not Phase.SETTLING
    standing = _words(entry).standing
    if standing is None or is_on_the_way:  # the progress of a teardown cannot be known
        return
    _put(entry, ConditionType.QUOTA_RESERVED, now, standing, status=standing.reserved)
    _put(entry, ConditionType.RESOURCES_DEPLOYED, now, standing, status=standing.deployed)
    if entry.phase is Phase.INTENDING:  # every attempt has clocks of its own
        _put(entry, ConditionType.PODS_READY, now, standing, status=False)
        _put(entry, ConditionType.UNHEALTHY, now, standing, status=False)


def _put(
    entry: Entry, kind: ConditionType, now: Instant, standing: _Standing, *, status: bool
) -> None:
    """A condition that was never True stays absent; one about room keeps its first reason."""
    shown = entry.conditions.get(kind)
    if shown is None and not status and entry.phase is not Phase.INTENDING:
        return
    if kind is ConditionType.QUOTA_RESERVED and shown is not None and shown.status == status:
        return
    entry.put_condition(kind, now, status=status, reason=standing.reason, message=standing.message)


def _keep_deletion(entry: Entry, now: Instant) -> None:
    kind = ConditionType.DELETING_RESOURCES
    if entry.phase is Phase.KEEPING and not entry.lingers:
        seconds = entry.workload.tolerance.deletion_on_failure_grace // SECOND
        message = f"deletionOnFailureGracePeriodDuration keeps them for {seconds} s."
        entry.put_condition(kind, now, status=False, reason=DELETION_PAUSED, message=message)
    elif entry.lingers or (entry.phase in TEARING_DOWN and entry.phase is not Phase.SETTLING):
        if not entry.shows(kind):
            entry.set_condition(kind, now, reason=DELETION_INITIATED)
    else:
        entry.unset_condition(kind, now, reason=DELETION_COMPLETE)
