"""The status of a Deployment: counts, Available, Progressing, and when progress is overdue.

After ``pkg/controller/deployment/progress.go`` and ``sync.go``.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.rollout import FOREVER, Rollout, counted, replicas_of, unavailable_of
from mcad.sim.controllers.workload import compact
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]

COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
CREATE_ERROR = "ReplicaSetCreateError"
UPDATED = "ReplicaSetUpdated"


def deadline_s(deployment: Json) -> int | None:
    """Seconds without progress after which a rollout has failed; None if it may take for ever."""
    limit: int = deployment["spec"].get("progressDeadlineSeconds", 600)
    return None if limit == FOREVER else limit


def condition_of(status: Json, name: str) -> Json | None:
    """The condition of that type."""
    return next((one for one in status.get("conditions") or () if one["type"] == name), None)


def with_condition(status: Json, condition: Json) -> Json:
    """The status with that condition, unless its status and reason are there already."""
    present = condition_of(status, condition["type"])
    if present is not None and present["status"] == condition["status"]:
        if present.get("reason") == condition["reason"]:
            return status
        condition = condition | {"lastTransitionTime": present["lastTransitionTime"]}
    return without_condition(status, condition["type"], condition)


def without_condition(status: Json, name: str, *instead: Json) -> Json:
    """The status without conditions of that type, but with others ``instead``."""
    kept = [one for one in status.get("conditions") or () if one["type"] != name]
    return {key: value for key, value in status.items() if key != "conditions"} | (
        {"conditions": [*kept, *instead]} if kept or instead else {}
    )


def condition(name: str, state: tuple[str, str, str], now_us: int) -> Json:
    """A condition with its ``(status, reason, message)``."""
    status, reason, message = state
    at = seconds(now_us)
    return {
        "type": name,
        "status": status,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def counts(rollout: Rollout, now_us: int) -> Json:
    """The status by what its ReplicaSets say, with the condition Available."""
    deployment, sets = rollout.deployment, rollout.sets
    present = deployment.get("status") or {}
    available = counted(sets, "availableReplicas")
    status = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": counted([rollout.new] if rollout.new else [], "replicas"),
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(map(replicas_of, sets)) - available, 0),
        "terminatingReplicas": counted(sets, "terminatingReplicas"),
        "conditions": list(present.get("conditions") or ()),
    }
    if "collisionCount" in present:
        status["collisionCount"] = present["collisionCount"]
    status = compact(status, "terminatingReplicas", "collisionCount")
    if available >= rollout.desired - unavailable_of(deployment):
        state = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        text = "Deployment does not have minimum availability."
        state = ("False", "MinimumReplicasUnavailable", text)
    return with_condition(status, condition("Available", state, now_us))


def is_complete(deployment: Json, status: Json) -> bool:
    """Whether all pods are new ones and available, and no others are left."""
    desired = replicas_of(deployment)
    return bool(
        status.get("updatedReplicas", 0) == desired
        and status.get("replicas", 0) == desired
        and status.get("availableReplicas", 0) == desired
        and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    )


def of_rollout(rollout: Rollout, now_us: int) -> Json:
    """``counts`` with Progressing and ReplicaFailure as a rollout changes them."""
    deployment, status = rollout.deployment, counts(rollout, now_us)
    limit_s = deadline_s(deployment)
    if limit_s is None:
        status = without_condition(status, "Progressing")
    else:
        status = _progressing(rollout, status, limit_s, now_us)
    failure = next(
        (
            found
            for one in (rollout.sets[-1:] if rollout.new else []) + rollout.sets
            if (found := condition_of(one.get("status") or {}, "ReplicaFailure"))
        ),
        None,
    )
    if failure is None:
        return without_condition(status, "ReplicaFailure")
    at = failure["lastTransitionTime"]
    return with_condition(status, failure | {"lastUpdateTime": at})


def _progressing(rollout: Rollout, status: Json, limit_s: int, now_us: int) -> Json:
    deployment = rollout.deployment
    present = condition_of(deployment.get("status") or {}, "Progressing")
    all_new = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if all_new and present is not None and present.get("reason") == COMPLETE:
        return status
    who = f'Deployment "{deployment["metadata"]["name"]}"'
    if rollout.new is not None:
        who = f'ReplicaSet "{rollout.new["metadata"]["name"]}"'
    if is_complete(deployment, status):
        state = ("True", COMPLETE, f"{who} has successfully progressed.")
        return with_condition(status, condition("Progressing", state, now_us))
    if _has_progressed(deployment.get("status") or {}, status):
        state = ("True", UPDATED, f"{who} is progressing.")
        news = condition("Progressing", state, now_us)
        if present is not None and present["status"] == "True":
            news["lastTransitionTime"] = present["lastTransitionTime"]
        return without_condition(status, "Progressing", news)
    if is_overdue(status, limit_s, now_us):
        state = ("False", TIMED_OUT, f"{who} has timed out progressing.")
        return with_condition(status, condition("Progressing", state, now_us))
    return status


def _has_progressed(before: Json, now: Json) -> bool:
    def old(status: Json) -> int:
        left: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return left

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old(now) < old(before) or any(now.get(one, 0) > before.get(one, 0) for one in grown)


def is_overdue(status: Json, limit_s: int, now_us: int) -> bool:
    """Whether nothing has progressed for longer than the deadline."""
    present = condition_of(status, "Progressing")
    if present is None or present.get("reason") == COMPLETE:
        return False
    if present.get("reason") == TIMED_OUT:
        return True
    return parse_us(present["lastUpdateTime"]) + limit_s * 1_000_000 < now_us


def check_after_s(deployment: Json, status: Json, now_us: int) -> float | None:
    """When to look whether the rollout is overdue; None if that is not to be expected."""
    limit_s, present = deadline_s(deployment), condition_of(status, "Progressing")
    if limit_s is None or present is None or is_complete(deployment, status):
        return None
    if present.get("reason") == TIMED_OUT:
        return None
    after_us = parse_us(present["lastUpdateTime"]) + limit_s * 1_000_000 - now_us
    return max(after_us / 1e6, 0.0) + 1.0
