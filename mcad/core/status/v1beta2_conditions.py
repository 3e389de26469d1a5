"""The conditions of v1beta2 that follow from the phase of an AppWrapper (facts: v1beta2, 2.2).

Times are those of the last change, so conditions are kept from one status to the next and read back
after a restart.
"""

from __future__ import annotations

from typing import NamedTuple

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import Next
from mcad.core.state.reasons import (
    DELETION_COMPLETE,
    DELETION_INITIATED,
    DELETION_PAUSED,
    RESETTING,
    RESUMING,
    SUCCEEDED,
    SUSPENDED,
    ConditionType,
    State,
)
from mcad.core.state.units import SECOND, Instant


class _Standing(NamedTuple):
    reserved: bool
    deployed: bool
    reason: str
    message: str


_DISPATCHED = _Standing(True, True, RESUMING, "")  # what runs well has no message in a column
_QUEUED = _Standing(False, False, SUSPENDED, "Queued, or held by spec.suspend.")
_PAUSED = _Standing(True, False, RESETTING, "Resources deleted for resetting AppWrapper")
_SUCCEEDED = _Standing(False, True, SUCCEEDED, "All pods have succeeded.")
_CLEARED = _Standing(False, False, SUCCEEDED, "Time to live after success is over.")
_FAILED = _Standing(False, False, State.FAILED, "Resources deleted for failed AppWrapper")

_OF_PHASE = {
    Phase.WAITING: _QUEUED,
    Phase.INTENDING: _DISPATCHED,
    Phase.CREATING: _DISPATCHED,
    Phase.CONFIRMING: _DISPATCHED,
    Phase.RUNNING: _DISPATCHED,
    Phase.KEEPING: _DISPATCHED,
    Phase.PAUSING: _PAUSED,
    Phase.FAILED: _FAILED,
}

_SETTLED = {
    Next.QUEUED: _QUEUED,
    Next.RESET: _PAUSED,
    Next.COMPLETED: _CLEARED,
    Next.FAILED: _FAILED,
}


def keep(entry: Entry, now: Instant) -> None:
    """Bring the conditions up to date."""
    _deletion(entry, now)
    standing = _standing(entry)
    if standing is None:
        return
    _put(entry, ConditionType.QUOTA_RESERVED, now, standing, status=standing.reserved)
    _put(entry, ConditionType.RESOURCES_DEPLOYED, now, standing, status=standing.deployed)
    if entry.phase is Phase.INTENDING:  # every attempt has clocks of its own
        _put(entry, ConditionType.PODS_READY, now, standing, status=False)
        _put(entry, ConditionType.UNHEALTHY, now, standing, status=False)


def _standing(entry: Entry) -> _Standing | None:
    """None while it is being taken back: how far that is cannot be known."""
    if entry.phase is Phase.SETTLING:
        return _SETTLED.get(entry.record.next)
    if entry.phase is Phase.COMPLETED:
        cleared = entry.dispatch is not None and entry.dispatch.next is Next.COMPLETED
        return _CLEARED if cleared else _SUCCEEDED
    return _OF_PHASE.get(entry.phase)


def _put(
    entry: Entry, kind: ConditionType, now: Instant, standing: _Standing, *, status: bool
) -> None:
    """A condition that was never True stays absent, and one about room keeps its first reason."""
    shown = entry.conditions.get(kind)
    if shown is None and not status and entry.phase is not Phase.INTENDING:
        return
    if kind is ConditionType.QUOTA_RESERVED and shown is not None and shown.status == status:
        return
    entry.put_condition(kind, now, status=status, reason=standing.reason, message=standing.message)


def _deletion(entry: Entry, now: Instant) -> None:
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
