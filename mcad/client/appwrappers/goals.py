"""What AppWrappers can be awaited for: dispatched, running, completed, failed, deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mcad.api.wire import as_int, as_map
from mcad.client.appwrappers.state import DISPATCHED, condition, message, state
from mcad.client.appwrappers.watch import Goal, Verdict
from mcad.core.state.reasons import ConditionType, State

Json = dict[str, Any]

_REACHED = Verdict(reached=True)


def _unless_ended(reached: Callable[[Json, int], bool], obj: Json, pods: int) -> Verdict | None:
    """The verdict on a goal that is not reached any more after a failure."""
    match state(obj):
        case State.FAILED:
            said = message(obj, ConditionType.FAILED)
            return Verdict(reached=False, why=f"has failed{': ' * bool(said)}{said}")
        case State.DELETED:
            return Verdict(reached=False, why="was given up")
    return _REACHED if reached(obj, pods) else None


def _is_dispatched(obj: Json, _: int) -> bool:
    return state(obj) in DISPATCHED


def _is_running(obj: Json, pods: int) -> bool:
    """Whether all of its pods run, or have succeeded; ``pods``: so many of those that are known."""
    # These take a quarter of a second.
    from mcad.api.appwrapper import parse  # noqa: PLC0415
    from mcad.api.catalog import WELL_KNOWN  # noqa: PLC0415
    from mcad.api.config import Config, catalog_of  # noqa: PLC0415

    if state(obj) == State.COMPLETED:
        return True
    if state(obj) not in DISPATCHED:
        return False
    if condition(obj, ConditionType.PODS_READY).get("status") == "True":
        return True
    work, status = parse(obj, catalog_of(Config(), WELL_KNOWN)).workload, as_map(obj.get("status"))
    counted = as_int(status.get("running")) + as_int(status.get("Succeeded"))
    return max(counted, pods) >= sum(one.replicas for one in work.sets if not one.per_node)


def _is_completed(obj: Json, _: int) -> bool:
    return state(obj) == State.COMPLETED


def _has_failed(obj: Json, _: int) -> Verdict | None:
    match state(obj):
        case State.FAILED | State.DELETED:
            return _REACHED
        case State.COMPLETED:
            return Verdict(reached=False, why="has completed")
    return None


def _never(_: Json, __: int) -> Verdict | None:
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
    "running": Goal("running", partial(_unless_ended, _is_running), _gone("running"), pods=True),
    "completed": Goal("completed", partial(_unless_ended, _is_completed), _gone("completed")),
    "failed": Goal("failed", _has_failed, Verdict(reached=False, why="was deleted")),
    "deleted": Goal("deleted", _never, _REACHED, explains=False),
}
"""By the word of ``mcad wait --for``."""
