"""States of Jobs, JobSets and LeaderWorkerSets.

Sources: k8s.io/kubernetes 1.36.3, pkg/controller/job (manageJob, firstPendingIndexes,
parseIndexesFromString); sigs.k8s.io/jobset 0.8.2, pkg/controllers; sigs.k8s.io/lws 0.7.0,
pkg/controllers/pod_controller.go.
"""

from __future__ import annotations

from typing import Any

from tests.api.builders import Map, job, template
from tests.api.live.states import (
    AT,
    AT_MICROS,
    EARLIER,
    ENDED,
    FAILED,
    PAUSED,
    RETRIES,
    Pods,
    State,
    States,
    condition,
    conditions,
    written_by,
)
from tests.api.test_podsets import jobset, kind, lws

_FOUR = job(parallelism=4, completions=4)
_INDEXED = job(parallelism=4, completions=4, completionMode="Indexed", backoffLimitPerIndex=0)
_WAVES = job(parallelism=4, completions=6)
_QUEUE = job(parallelism=4)
_LATE = job(parallelism=4, completions=4, podReplacementPolicy="Failed")
_SUSPEND = {"suspend": True}
_LIMIT = "Job has reached the specified backoff limit"


def _indexed(pods: Pods, /, **status: Any) -> State:
    return State(_INDEXED, status, [pods])


JOB: States = {
    "not seen by its controller yet": State(_FOUR, {}, [4]),
    "running": State(_FOUR, {"active": 4, "ready": 4}, [4]),
    "with two pods that succeeded": State(_FOUR, {"active": 2, "succeeded": 2}, [2]),
    "with a success that is not counted yet": State(
        _FOUR,
        {"active": 2, "succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["u"]}},
        [2],
    ),
    "with more completions than parallelism": State(_WAVES, {"active": 4}, [4]),
    "with more completions than a cluster has pods": State(
        job(parallelism=4, completions=2_000_000), {"active": 4, "succeeded": 4}, [4]
    ),
    "in its second wave": State(_WAVES, {"active": 3, "succeeded": 3}, [3]),
    "between two pods": State(_FOUR, {"failed": 1, "active": 3}, [4], RETRIES),
    "between two pods, with none": State(job(), {"failed": 1}, [1], RETRIES),
    "whose failed pod is replaced": State(_FOUR, {"failed": 1, "active": 4}, [4]),
    "whose failed pods go": State(_FOUR, {"failed": 1, "active": 3, "terminating": 1}, [4]),
    "that replaces pods when they are gone": State(
        _LATE, {"active": 3, "terminating": 1}, [(3, 1)]
    ),
    "with an index that failed for good": _indexed(3, active=3, failed=1, failedIndexes="2"),
    "with two failed indexes and one done": _indexed(
        1, active=1, failed=2, failedIndexes="0,2", succeeded=1, completedIndexes="3"
    ),
    "with ranges of failed indexes": _indexed(1, active=1, failedIndexes="0-1,3"),
    "with a range beyond its completions": _indexed(2, active=2, failedIndexes="2-9"),
    "with failed indexes that cannot be read": _indexed(4, failedIndexes="x,,1-,-"),
    "with indexes that succeeded": _indexed(2, active=2, completedIndexes="0,1"),
    "with failed indexes, but one limit for all": State(
        _FOUR, {"active": 4, "failedIndexes": "2"}, [4]
    ),
    "a work queue": State(_QUEUE, {"active": 4}, [4]),
    "a work queue that runs dry": State(_QUEUE, {"active": 2, "succeeded": 1}, [2]),
    "a work queue that is dry": State(_QUEUE, {"active": 0, "succeeded": 4}, [0]),
    "made smaller": State(_INDEXED, {"active": 4}, [2], spec={"parallelism": 2, "completions": 2}),
    "made larger": State(_INDEXED, {"active": 4}, [6], spec={"parallelism": 6, "completions": 6}),
    "suspended by a client": State(
        _FOUR,
        {"active": 4},
        [0],
        PAUSED,
        _SUSPEND,
        written_by("kubectl-patch", "spec", "suspend"),
        {"suspended": "spec.suspend is true, set by kubectl-patch"},
    ),
    "suspended": State(_FOUR, conditions("Suspended"), [0], PAUSED, _SUSPEND),
    "resumed": State(
        _FOUR, {"conditions": [condition("Suspended", "False")]}, [4], spec={"suspend": False}
    ),
    "paused by its parallelism": State(
        _FOUR,
        {"active": 4},
        [0],
        PAUSED,
        {"parallelism": 0},
        says={"suspended": "spec.parallelism is 0"},
    ),
    "about to fail": State(_FOUR, conditions("FailureTarget", active=2), [0]),
    "about to be complete": State(_INDEXED, conditions("SuccessCriteriaMet", active=2), [0]),
    "complete": State(
        _FOUR,
        conditions("SuccessCriteriaMet", "Complete", succeeded=4, completionTime=AT),
        [0],
        ENDED,
        says={"ended": AT_MICROS, "met": frozenset({"successcriteriamet", "complete"})},
    ),
    "complete before that was on record": State(
        _FOUR,
        conditions("Complete", completionTime=EARLIER),
        [0],
        ENDED,
        says={"ended": AT_MICROS - 60_000_000},
    ),
    "suspended when it was complete": State(_FOUR, conditions("Complete"), [0], ENDED, _SUSPEND),
    "not complete": State(_FOUR, {"conditions": [condition("Complete", "False")]}, [4]),
    "failed": State(
        _FOUR,
        {"conditions": [condition("Failed", reason="BackoffLimitExceeded", message=_LIMIT)]},
        [0],
        FAILED,
        says={"words": _LIMIT, "ended": AT_MICROS, "met": frozenset({"failed"})},
    ),
}

_PAIR = {"parallelism": 2}


def _jobset(*needs: tuple[str, str], **spec: Any) -> Map:
    """Two replicated jobs, of two jobs of two pods, and of one pod."""
    thing = kind("JobSet", **jobset(("a", 2, _PAIR), ("b", 1, {})), **spec)
    if needs:
        depends = [{"name": name, "status": status} for name, status in needs]
        thing["spec"]["replicatedJobs"][1]["dependsOn"] = depends
    return thing


def _jobs(a: Map, b: Map | None = None, **more: Any) -> Map:
    reports = [{"name": "a"} | a, {"name": "b"} | (b or {})]
    return {"replicatedJobsStatus": reports} | more


_AT_ONCE, _RETRIED = _jobset(), _jobset(failurePolicy={"maxRestarts": 3})
_IN_ORDER = _jobset(startupPolicy={"startupPolicyOrder": "InOrder"})
_READY, _COMPLETE = _jobset(("a", "Ready")), _jobset(("a", "Complete"))

JOBSET: States = {
    "not seen by its controller yet": State(_AT_ONCE, {}, [4, 1]),
    "running": State(_AT_ONCE, _jobs({"active": 2}, {"active": 1}), [4, 1]),
    "with a job that succeeded": State(_AT_ONCE, _jobs({"active": 1, "succeeded": 1}), [2, 1]),
    "with a stage that succeeded": State(_AT_ONCE, _jobs({"succeeded": 2}, {"active": 1}), [0, 1]),
    "in order, at its start": State(_IN_ORDER, {}, [4, (0, 1)]),
    "in order, half ready": State(_IN_ORDER, _jobs({"active": 2, "ready": 1}), [4, (0, 1)]),
    "in order, with its first stage ready": State(
        _IN_ORDER, _jobs({"active": 2, "ready": 2}), [4, 1]
    ),
    "in order, with a first stage that is not ready any more": State(
        _IN_ORDER, _jobs({"active": 2, "ready": 1}, {"active": 1}), [4, 1]
    ),
    "that waits for a stage to be ready": State(_READY, _jobs({"active": 2}), [4, (0, 1)]),
    "whose stage is ready": State(_READY, _jobs({"active": 2, "ready": 2}), [4, 1]),
    "that waits for a stage to be complete": State(
        _COMPLETE, _jobs({"active": 1, "ready": 1, "succeeded": 1}), [2, (0, 1)]
    ),
    "whose stage is complete": State(_COMPLETE, _jobs({"succeeded": 2}), [0, 1]),
    "that waits for a stage that it does not have": State(
        _jobset(("c", "Ready")), _jobs({"active": 2, "ready": 2}), [4, (0, 1)]
    ),
    "with a failed job, before it begins again": State(
        _RETRIED, _jobs({"active": 1, "failed": 1}, {"active": 1}), [4, 1], RETRIES
    ),
    "that begins again": State(_RETRIED, _jobs({}, restarts=1), [4, 1], RETRIES),
    "that has begun again": State(
        _RETRIED, _jobs({"active": 2}, {"active": 1}, restarts=1), [4, 1]
    ),
    "with a failed job, for good": State(_AT_ONCE, _jobs({"failed": 1}), [4, 1]),
    "suspended": State(
        _AT_ONCE,
        conditions("Suspended", **_jobs({"suspended": 2})),
        [0, 0],
        PAUSED,
        _SUSPEND,
        written_by("kueue", "spec", "suspend"),
        {"suspended": "spec.suspend is true, set by kueue"},
    ),
    "completed": State(_AT_ONCE, conditions("Completed"), [0, 0], ENDED, says={"ended": AT_MICROS}),
    "failed": State(
        _RETRIED,
        {"conditions": [condition("Failed", message="jobset failed")], "restarts": 3},
        [0, 0],
        FAILED,
        says={"words": "jobset failed"},
    ),
    "with a terminal state only": State(_AT_ONCE, {"terminalState": "Completed"}, [0, 0], ENDED),
}

_LEADER = {"leaderTemplate": template()}
_GROUPS = kind("LeaderWorkerSet", **lws(2, 3, **_LEADER))
_ALIKE = kind("LeaderWorkerSet", **lws(2, 3))
_FIRST = kind("LeaderWorkerSet", **lws(2, 3, **_LEADER), startupPolicy="LeaderReady")
_FIRST_ALIKE = kind("LeaderWorkerSet", **lws(2, 3), startupPolicy="LeaderReady")

LEADER_WORKER_SET: States = {
    "not seen by its controller yet": State(_GROUPS, {}, [2, 4]),
    "of one template": State(_ALIKE, {}, [6]),
    "with one group ready": State(_GROUPS, {"replicas": 2, "readyReplicas": 1}, [2, 4]),
    "whose leaders come first": State(_FIRST, {"replicas": 2}, [2, (0, 4)]),
    "whose leaders come first, with one group ready": State(
        _FIRST, {"replicas": 2, "readyReplicas": 1}, [2, (2, 2)]
    ),
    "whose leaders come first, with all groups ready": State(
        _FIRST, {"replicas": 2, "readyReplicas": 2}, [2, 4]
    ),
    "of one template whose leaders come first": State(_FIRST_ALIKE, {}, [(2, 4)]),
    "of one template with one group ready": State(
        _FIRST_ALIKE, {"replicas": 2, "readyReplicas": 1}, [(4, 2)]
    ),
    "scaled down": State(_ALIKE, {"replicas": 2}, [3], spec={"replicas": 1}),
    "scaled up": State(_GROUPS, {"replicas": 2}, [3, 6], spec={"replicas": 3}),
    "that says more are ready than it has": State(_FIRST, {"readyReplicas": 9}, [2, 4]),
}

TABLE: dict[str, States] = {
    "Job": JOB,
    "JobSet": JOBSET,
    "LeaderWorkerSet": LEADER_WORKER_SET,
}
