"""What AppWrappers can be awaited for: dispatched, running, completed, failed, deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.wire import as_int, as_map
from mcad.cli.appwrapper_state import DISPATCHED, condition, message, state
from mcad.cli.appwrapper_wait import Goal, Verdict
from mcad.core.state.model import Dialect
from mcad.core.state.reasons import ConditionType, State

Json = dict[str, Any]

_REACHED = Verdict(reached=True)


def _unless_ended(reached: Callable[[Json], bool], obj: Json) -> Verdict | None:
    """The verdict where a failure, or giving up, is the end of all hope."""
    match state(obj):
        case State.FAILED:
            said = message(obj, ConditionType.FAILED)
            return Verdict(reached=False, why=f"has failed{': ' * bool(said)}{said}")
        case State.DELETED:
            return Verdict(reached=False, why="was given up")
    return _REACHED if reached(obj) else None


def _is_dispatched(obj: Json) -> bool:
    return state(obj) in DISPATCHED


def _is_running(obj: Json) -> bool:
    """Whether all of its pods run, or have succeeded."""
    if state(obj) == State.COMPLETED:
        return True
    if state(obj) not in DISPATCHED:
        return False
    work = parse(obj, catalog_of(Config(), WELL_KNOWN)).workload
    if work.dialect is Dialect.V1BETA2:
        return bool(condition(obj, ConditionType.PODS_READY).get("status") == "True")
    status = as_map(obj.get("status"))
    expected = sum(one.replicas for one in work.sets if not one.per_node)
    return as_int(status.get("running")) + as_int(status.get("Succeeded")) >= expected


def _is_completed(obj: Json) -> bool:
    return state(obj) == State.COMPLETED


def _has_failed(obj: Json) -> Verdict | None:
    match state(obj):
        case State.FAILED | State.DELETED:
            return _REACHED
        case State.COMPLETED:
            return Verdict(reached=False, why="has completed")
    return None


def _never(_: Json) -> Verdict | None:
    return None


def _gone(done: str) -> Verdict:
    return Verdict(reached=False, why=f"was deleted before it was {done}")


DISPATCH = Goal(
    "dispatched",
    partial(_unless_ended, _is_dispatched),
    _gone("dispatched"),
    hint="still queued, see `mcad queue`",
)

GOALS = {
    "dispatched": DISPATCH,
    "running": Goal("running", partial(_unless_ended, _is_running), _gone("running")),
    "completed": Goal("completed", partial(_unless_ended, _is_completed), _gone("completed")),
    "failed": Goal("failed", _has_failed, Verdict(reached=False, why="was deleted")),
    "deleted": Goal("deleted", _never, _REACHED, explains=False),
}
"""By the word of ``mcad wait --for``."""
