"""The phase of an AppWrapper by its recorded status."""

from __future__ import annotations

from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase, Next, Persisted
from mcad.core.state.reasons import State

_LIVE = {
    DispatchPhase.CREATING: Phase.CREATING,
    DispatchPhase.DISPATCHED: Phase.RUNNING,
    DispatchPhase.KEEPING: Phase.KEEPING,
    DispatchPhase.UNDEPLOYING: Phase.DELETING,
    DispatchPhase.PAUSED: Phase.PAUSING,
}

_ENDED = {
    Next.QUEUED: Phase.WAITING,
    Next.COMPLETED: Phase.COMPLETED,
    Next.FAILED: Phase.FAILED,
    Next.DELETED: Phase.DELETED,
}

_WITHOUT_RECORD: dict[str, Phase] = {
    State.COMPLETED: Phase.COMPLETED,
    State.FAILED: Phase.FAILED,
    State.DELETED: Phase.DELETED,
}


def restored_phase(saved: Persisted) -> Phase:
    """The phase in which the AppWrapper goes on after a restart."""
    record = saved.dispatch
    if record is None:
        is_others = saved.foreign or saved.state in (State.RUNNING, State.RUNNING_HOLD_COMPLETION)
        return _WITHOUT_RECORD.get(saved.state, Phase.FOREIGN if is_others else Phase.WAITING)
    if record.phase is DispatchPhase.DISPATCHED and saved.state == State.COMPLETED:
        return Phase.COMPLETED
    if record.phase is DispatchPhase.RELEASED:
        return _ENDED.get(record.next, Phase.WAITING)
    return _LIVE[record.phase]
