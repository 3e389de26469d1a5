"""When a Job ends, and why."""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.jobpolicy import (
    has_failed,
    is_indexed,
    is_suspended,
    judge,
    success_by_policy,
)
from mcad.sim.controllers.jobview import JobView
from mcad.sim.controllers.pods import phase_of
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]

COMPLETE, FAILED = "Complete", "Failed"
CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
SUSPENDED = "Suspended"


def new_condition(kind: str, reason: str, message: str, now_us: int) -> Json:
    """A condition of a Job that is true."""
    at = seconds(now_us)
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def find_condition(status: Json, kind: str) -> Json | None:
    """The condition of that type."""
    return next((one for one in status.get("conditions") or () if one["type"] == kind), None)


def success(reason: str, now_us: int, message: str = "") -> Json:
    """The announcement of success."""
    text = message or "Reached expected number of succeeded pods"
    return new_condition(CRITERIA_MET, reason, text, now_us)


def judge_end(view: JobView, now_us: int) -> None:
    """Set ``view.finished`` if the Job is over; what was announced before stays so."""
    for kind in (CRITERIA_MET, FAILURE_TARGET):
        announced = find_condition(view.status, kind)
        if announced is not None and announced["status"] == "True":
            view.finished = announced
            return
    why = _policy_failure(view) or _limit_failure(view, now_us) or _index_failure(view)
    if why is not None:
        view.finished = new_condition(FAILURE_TARGET, *why, now_us)
    elif is_indexed(view.job):
        message = success_by_policy(view.job, view.succeeded_indexes)
        if message:
            view.finished = success("SuccessPolicy", now_us, message)


def _policy_failure(view: JobView) -> tuple[str, str] | None:
    if view.job["spec"].get("podFailurePolicy"):
        for pod in view.pods:
            message = judge(view.job, pod).message if has_failed(pod, view.job) else ""
            if message:
                return "PodFailurePolicy", message
    return None


def _limit_failure(view: JobView, now_us: int) -> tuple[str, str] | None:
    spec = view.job["spec"]
    if view.failed > spec.get("backoffLimit", 6) or _has_restarted_too_often(view):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    limit_s, start = spec.get("activeDeadlineSeconds"), view.status.get("startTime")
    if limit_s is None or not start or is_suspended(view.job):
        return None
    if now_us - parse_us(start) < limit_s * 1_000_000:
        return None
    return "DeadlineExceeded", "Job was active longer than specified deadline"


def _has_restarted_too_often(view: JobView) -> bool:
    """With restartPolicy OnFailure the restarts of containers count, not pods."""
    spec = view.job["spec"]
    if ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        container.get("restartCount", 0)
        for pod in view.pods
        if phase_of(pod) in {"Running", "Pending"}
        for name in ("initContainerStatuses", "containerStatuses")
        for container in pod["status"].get(name) or ()
    )
    limit = spec.get("backoffLimit", 6)
    return bool(restarts >= limit if limit else restarts > 0)


def _index_failure(view: JobView) -> tuple[str, str] | None:
    failed = view.failed_indexes
    if failed is None or not len(failed):
        return None
    limit = view.job["spec"].get("maxFailedIndexes")
    if limit is not None and len(failed) > limit:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    if len(failed) + len(view.succeeded_indexes) >= (view.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def with_suspension(view: JobView, now_us: int) -> str:
    """Keep the condition Suspended and the start; "Suspended" or "Resumed" if it has changed."""
    conditions = view.status.get("conditions") or []
    present, suspended = find_condition(view.status, SUSPENDED), is_suspended(view.job)
    if (present is not None and present["status"] == "True") == suspended:
        return ""
    if suspended:
        news = new_condition(SUSPENDED, "JobSuspended", "Job suspended", now_us)
        view.status.pop("startTime", None)  # MutableSchedulingDirectivesForSuspendedJobs, 1.36
    else:
        news = new_condition(SUSPENDED, "JobResumed", "Job resumed", now_us) | {"status": "False"}
        view.status["startTime"] = seconds(now_us)
    view.status["conditions"] = [news if one is present else one for one in conditions]
    if present is None:
        view.status["conditions"].append(news)
    return "Suspended" if suspended else "Resumed"
