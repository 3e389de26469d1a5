"""Reads from an AppWrapper of the API server where it stands: held, dispatched, ended."""

from __future__ import annotations

from typing import Any

from mcad.api.labels import PREFIX
from mcad.api.wire import as_list, as_map, as_text
from mcad.core.state.model import DispatchPhase, Next
from mcad.core.state.reasons import ConditionType, State

Json = dict[str, Any]

DISPATCHED = (State.RUNNING, State.RUNNING_HOLD_COMPLETION, State.COMPLETED)
_ENDS = {
    State.COMPLETED: "it has completed",
    State.FAILED: "it has failed",
    State.DELETED: "it was given up",
}


def title(obj: Json) -> str:
    """NAMESPACE/NAME, for messages."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def reference(obj: Json) -> str:
    """The name as kubectl prints it."""
    metadata = as_map(obj["metadata"])
    return f"{PREFIX}{metadata.get('name') or metadata.get('generateName')}"


def state(obj: Json) -> str:
    """``status.state``, "" before the dispatcher has seen it."""
    return as_text(as_map(obj.get("status")).get("state"))


def end(obj: Json) -> str:
    """How it has ended, "" if it has not: ``it has failed``."""
    return _ENDS.get(State(state(obj)), "") if state(obj) in {*State} else ""


def is_deleting(obj: Json) -> bool:
    """Whether it is deleted, and only its finalizers are awaited."""
    return "deletionTimestamp" in obj["metadata"]


def is_held(obj: Json) -> bool:
    """Whether it is on hold by ``spec.suspend``."""
    return as_map(obj.get("spec")).get("suspend") is True


def has_attempt(obj: Json) -> bool:
    """Whether an attempt of it stands that can be ended: it holds room, or keeps it for a reset."""
    record = as_map(as_map(obj.get("status")).get("dispatch"))
    phase = record.get("phase")
    if phase == DispatchPhase.UNDEPLOYING:
        return bool(record.get("next") == Next.RESET)
    return state(obj) != State.COMPLETED and phase not in (None, DispatchPhase.RELEASED)


def why_over(obj: Json) -> str:
    """Why it will not start again in any case, "" if it may."""
    if is_deleting(obj):
        return "it is being deleted"
    return "" if has_attempt(obj) else end(obj)


def condition(obj: Json, kind: ConditionType) -> Json:
    """One condition, {} if it is absent."""
    conditions = map(as_map, as_list(as_map(obj.get("status")).get("conditions")))
    return next((one for one in conditions if one.get("type") == kind), {})


def message(obj: Json, kind: ConditionType) -> str:
    """What a condition that is True says, "" if there is none."""
    found = condition(obj, kind)
    if found.get("status") != "True":
        return ""
    return as_text(found.get("message")) or as_text(found.get("reason"))
