"""Jobs, after ``pkg/controller/job/job_controller.go``.

A pod is counted exactly once: its finalizer goes when the counters have grown. A Job that is going
to end says so first (SuccessCriteriaMet or FailureTarget), and ends when the last of its pods is
gone (KEP-3329, KEP-3939). Failures of an index are counted in memory, where a real controller keeps
them in annotations of its pods. Not looked at: ``podFailurePolicy`` and ``successPolicy``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from mcad.kube.types import Json
from mcad.sim.controllers import jobpods
from mcad.sim.controllers.claims import without_finalizer
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.jobpods import TRACKING, finished_condition, index_of, is_indexed
from mcad.sim.controllers.pods import is_active, is_deleting, is_ready, is_terminating, phase_of
from mcad.sim.controllers.ranking import surplus
from mcad.sim.controllers.workload import Workload
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.times import parse_us, seconds

BATCH_S = 1.0  # changes of pods are looked at together
BACKOFF_US, BACKOFF_MAX_US = 10_000_000, 600_000_000
_OURSELVES = "kubernetes.io/job-controller"
_ENDS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
"""What is announced, and the condition with which the Job ends then."""


@dataclass(slots=True)
class _Backoff:
    """Failures since the last success, and when the last of them was seen."""

    failures: int = 0
    last_us: int = 0
    indexes: dict[int, _Backoff] = field(default_factory=dict)  # with backoffLimitPerIndex

    def failed(self, now_us: int, count: int = 1) -> None:
        """Count failures that were seen now."""
        self.failures, self.last_us = self.failures + count, now_us

    def remaining_us(self, now_us: int) -> int:
        """How long to wait with the next pod: 10 s, 20 s, 40 s, up to 10 minutes."""
        if not self.failures:
            return 0
        wait_us = min(BACKOFF_US << min(self.failures - 1, 10), BACKOFF_MAX_US)
        return max(self.last_us + wait_us - now_us, 0)


@dataclass(slots=True)
class _Look:
    """One look at a Job; ``status`` is a copy that is changed and then written."""

    job: Json
    pods: list[Json]
    status: Json
    now_us: int
    ended: list[Json] = field(default_factory=list)  # pods that are counted now
    completed: set[int] = field(default_factory=set)  # indexes, if it has some
    failed: set[int] = field(default_factory=set)  # indexes that are not tried again

    @property
    def spec(self) -> Json:
        spec: Json = self.job["spec"]
        return spec

    @property
    def active(self) -> list[Json]:
        """Pods that run or are going to."""
        return [pod for pod in self.pods if is_active(pod)]

    def announced(self) -> Json | None:
        """The condition that says how the Job is going to end."""
        conditions = self.status.get("conditions") or ()
        return next((one for one in conditions if one["type"] in _ENDS), None)

    def add_condition(self, kind: str, reason: str, message: str, status: str = "True") -> None:
        """A condition instead of the one of that type."""
        at = seconds(self.now_us)
        news = {"type": kind, "status": status, "lastProbeTime": at, "lastTransitionTime": at}
        others = [one for one in self.status.get("conditions") or () if one["type"] != kind]
        self.status["conditions"] = [*others, news | {"reason": reason, "message": message}]


class JobController(Workload):
    """Runs pods until enough of them have succeeded, or too many have failed."""

    def __init__(self, registry: Registry, pods: OwnedIndex) -> None:
        super().__init__(registry, registry.kind("batch/v1", "Job"), pods, "job-controller")
        self._backoffs: dict[str, _Backoff] = {}  # by uid of the Job

    def on_owner(self, change: Change) -> None:
        """At once if the spec has changed; a status of its own is no news."""
        before, metadata = change.previous, change.obj["metadata"]
        if change.type == "DELETED":
            self._backoffs.pop(metadata["uid"], None)
        elif before and before["metadata"].get("generation") == metadata.get("generation"):
            return
        super().on_owner(change)

    def on_owned(self, _change: Change, owner: Key) -> None:
        """A second later, because more may come."""
        self.enqueue_after(owner, BATCH_S)

    def reconcile(self, key: Key) -> None:
        """Count, create or delete pods, and end the Job if it is time."""
        job = self.registry.find(self.kind, key)
        if job is None:
            return
        if finished_condition(job) is not None:
            self._backoffs.pop(job["metadata"]["uid"], None)
            return
        if job["spec"].get("managedBy") not in {None, "", _OURSELVES}:
            return
        now_us = self.registry.clock.now_us()
        pods = self.claim(job, finalizer=TRACKING)
        look = _Look(job, pods, dict(job.get("status") or {}), now_us)
        if "startTime" not in look.status and not job["spec"].get("suspend"):
            look.status["startTime"] = seconds(now_us)
        self._count(look)
        _judge(look)
        self._watch_deadline(look)
        trouble: Failure | None = None
        try:
            self._manage(look)
        except Failure as failure:
            trouble = failure
        self._write(look)
        if trouble is not None:
            raise trouble

    # -- counting ------------------------------------------------------------------------------

    def _count(self, look: _Look) -> None:
        """Pods that have ended, each once."""
        job, status, below = look.job, look.status, look.spec.get("completions") or 0
        look.completed = jobpods.parse_indexes(status.get("completedIndexes", ""))
        look.failed = jobpods.parse_indexes(status.get("failedIndexes", ""))
        backoff = self._backoffs.setdefault(job["metadata"]["uid"], _Backoff())
        succeeded = failed = 0
        for pod in look.pods:
            if not jobpods.is_tracked(pod) or not _has_ended(pod, job):
                continue
            look.ended.append(pod)
            index = index_of(pod, below)
            if is_indexed(job) and index is None:
                continue
            if phase_of(pod) != "Succeeded":
                failed += 1
                _count_index(look, backoff, index)
            elif index is None or index not in look.completed:
                look.completed |= set() if index is None else {index}
                succeeded += 1
        for name, number in (("succeeded", succeeded), ("failed", failed)):
            if number:
                status[name] = status.get(name, 0) + number
        if look.completed:
            status["completedIndexes"] = jobpods.show_indexes(look.completed)
        if _limit_per_index(job) is not None:
            status["failedIndexes"] = jobpods.show_indexes(look.failed)
        if succeeded:
            backoff.failures = 0
        if failed:
            backoff.failed(look.now_us, failed)

    # -- creating and deleting -----------------------------------------------------------------

    def _manage(self, look: _Look) -> None:
        if look.announced() is not None:
            self._delete(look, look.active, release=False)
            return
        if is_deleting(look.job):
            return
        self._keep_size(look)
        done, wanted = look.status.get("succeeded", 0), look.spec.get("completions")
        if not self._active(look) and (done >= wanted if wanted is not None else done):
            message = "Reached expected number of succeeded pods"
            look.add_condition("SuccessCriteriaMet", "CompletionsReached", message)
        else:
            self._note_suspension(look)

    def _keep_size(self, look: _Look) -> None:
        job, active = look.job, look.active
        if job["spec"].get("suspend"):
            self._delete(look, active, release=True)
            return
        wanted = _wanted(look)
        twins = [] if not is_indexed(job) else _duplicates(look, active)
        gone = surplus(active, len(active) - wanted) if len(active) > wanted else []
        if gone or twins:
            self._delete(look, twins or gone, release=True)
            return
        missing = wanted - len(active)
        if _replaces_failed_only(job):
            missing -= sum(map(is_terminating, look.pods))
        if missing <= 0:
            return
        backoff, pod = self._backoffs[job["metadata"]["uid"]], jobpods.pod_for(job)
        due, wait_us = _due_indexes(look, backoff, missing)
        if wait_us:
            self.enqueue_after(key_of(job), max(wait_us / 1e6, BATCH_S))
        if not is_indexed(job) and not wait_us:
            for _ in range(missing):
                self.create_pod(job, pod)
        for index in due:
            self.create_pod(job, jobpods.with_index(job, pod, index))

    def _delete(self, look: _Look, pods: list[Json], *, release: bool) -> None:
        """Delete; with ``release`` they are not to be counted."""
        for pod in pods:
            if release:
                self._release(pod)
            self.delete_pod(look.job, pod)

    def _release(self, pod: Json) -> None:
        self.registry.patch(
            self.owned.kind, key_of(pod), lambda live: without_finalizer(live, TRACKING)
        )

    # -- status --------------------------------------------------------------------------------

    def _active(self, look: _Look) -> list[Json]:
        """Those that are active now, after creating and deleting."""
        return [pod for pod in self._owned(look) if is_active(pod)]

    def _owned(self, look: _Look) -> list[Json]:
        return self.owned.owned(look.job["metadata"]["uid"])

    def _watch_deadline(self, look: _Look) -> None:
        limit_s = look.spec.get("activeDeadlineSeconds")
        if limit_s is not None and "startTime" in look.status and look.announced() is None:
            end_us = parse_us(look.status["startTime"]) + limit_s * 1_000_000
            self.enqueue_after(key_of(look.job), max((end_us - look.now_us) / 1e6, 0.0))

    def _note_suspension(self, look: _Look) -> None:
        """Keep the condition Suspended and the start."""
        conditions = look.status.get("conditions") or ()
        present = next((one["status"] for one in conditions if one["type"] == "Suspended"), "")
        suspended = bool(look.spec.get("suspend"))
        if (present == "True") == suspended:
            return
        if suspended:
            look.add_condition("Suspended", "JobSuspended", "Job suspended")
            look.status.pop("startTime", None)  # MutableSchedulingDirectivesForSuspendedJobs, 1.36
        else:
            look.add_condition("Suspended", "JobResumed", "Job resumed", "False")
            look.status["startTime"] = seconds(look.now_us)
        event = "Suspended" if suspended else "Resumed"
        self.recorder.normal(look.job, event, f"Job {event.lower()}")

    def _write(self, look: _Look) -> None:
        """Tell the figures, let go of what was counted, and end the Job if nothing is left."""
        status, active = look.status, self._active(look)
        status |= {"ready": sum(map(is_ready, active)), "uncountedTerminatedPods": {}}
        status["terminating"] = sum(map(is_terminating, self._owned(look)))
        status.pop("active", None)
        if active:
            status["active"] = len(active)
        job = self.write_status(look.job, status)
        for pod in look.ended:
            self._release(pod)
        announced = look.announced()
        if announced is None or active or any(map(is_terminating, self._owned(look))):
            return
        kind = _ENDS[announced["type"]]
        look.status = job["status"] | {"terminating": 0}
        look.add_condition(kind, announced["reason"], announced["message"])
        if kind == "Complete":
            look.status["completionTime"] = seconds(look.now_us)
        self.write_status(job, look.status)
        if kind == "Failed":
            self.recorder.warning(job, announced["reason"], announced["message"])
        else:
            self.recorder.normal(job, "Completed", "Job completed")


def _limit_per_index(job: Json) -> int | None:
    """How often an index is tried again, None if failures of all indexes count together."""
    limit: int | None = job["spec"].get("backoffLimitPerIndex")
    return limit if is_indexed(job) else None


def _due_indexes(look: _Look, backoff: _Backoff, count: int) -> tuple[list[int], int]:
    """The indexes that get a pod now, and in how many microseconds others may."""
    free = _free_indexes(look)[:count]
    if _limit_per_index(look.job) is None:
        wait_us = backoff.remaining_us(look.now_us)
        return ([] if wait_us else free), wait_us
    fresh = _Backoff()
    waits = {one: backoff.indexes.get(one, fresh).remaining_us(look.now_us) for one in free}
    soonest = min(filter(None, waits.values()), default=0)
    return [index for index, wait_us in waits.items() if not wait_us], soonest


def _count_index(look: _Look, backoff: _Backoff, index: int | None) -> None:
    """A pod has failed: its index is tried again, or has failed (KEP-3850)."""
    limit = _limit_per_index(look.job)
    if limit is None or index is None:
        return
    own = backoff.indexes.setdefault(index, _Backoff())
    own.failed(look.now_us)
    if own.failures > limit and index not in look.completed:
        look.failed.add(index)


def _replaces_failed_only(job: Json) -> bool:
    """Whether a pod that is being deleted is replaced only when it has ended (KEP-3939)."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def _has_ended(pod: Json, job: Json) -> bool:
    """Whether it is to be counted; one that is deleted before it ends counts as failed."""
    if phase_of(pod) in {"Succeeded", "Failed"}:
        return True
    return is_deleting(pod) and not _replaces_failed_only(job)


def _judge(look: _Look) -> None:
    """Announce that the Job fails, if it does; what was announced before stays so."""
    if look.announced() is not None:
        return
    if look.status.get("failed", 0) > look.spec.get("backoffLimit", 6) or _restarts_too_often(look):
        text = "Job has reached the specified backoff limit"
        look.add_condition("FailureTarget", "BackoffLimitExceeded", text)
    elif len(look.failed) > look.spec.get("maxFailedIndexes", inf):
        text = "Job has exceeded the specified maximal number of failed indexes"
        look.add_condition("FailureTarget", "MaxFailedIndexesExceeded", text)
    elif look.failed and len(look.failed | look.completed) >= (look.spec.get("completions") or 0):
        look.add_condition("FailureTarget", "FailedIndexes", "Job has failed indexes")
    elif _is_late(look):
        text = "Job was active longer than specified deadline"
        look.add_condition("FailureTarget", "DeadlineExceeded", text)


def _is_late(look: _Look) -> bool:
    limit_s, start = look.spec.get("activeDeadlineSeconds"), look.status.get("startTime")
    if limit_s is None or not start or look.spec.get("suspend"):
        return False
    return look.now_us - parse_us(start) >= int(limit_s) * 1_000_000


def _restarts_too_often(look: _Look) -> bool:
    """With restartPolicy OnFailure the restarts of containers count, not pods."""
    if (look.spec["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts: int = sum(
        one.get("restartCount", 0)
        for pod in look.active
        for one in pod["status"].get("containerStatuses") or ()
    )
    limit: int = look.spec.get("backoffLimit", 6)
    return restarts >= max(limit, 1)


def _wanted(look: _Look) -> int:
    """How many pods should be active."""
    parallelism: int = look.spec.get("parallelism", 1)
    succeeded, completions = look.status.get("succeeded", 0), look.spec.get("completions")
    if completions is None:
        return len(look.active) if succeeded else parallelism
    left: int = completions - succeeded
    return max(min(left, parallelism), 0)


def _duplicates(look: _Look, active: list[Json]) -> list[Json]:
    """Active pods without an index, or with one that another has."""
    seen: set[int] = set()
    gone = []
    for pod in active:
        index = index_of(pod, look.spec.get("completions") or 0)
        if index is None or index in seen:
            gone.append(pod)
        else:
            seen.add(index)
    return gone


def _free_indexes(look: _Look) -> list[int]:
    """The indexes that have neither ended nor a pod; none if pods have no index."""
    if not is_indexed(look.job):
        return []
    below: int = look.spec.get("completions") or 0
    waits = _replaces_failed_only(look.job)
    pods = [pod for pod in look.pods if is_active(pod) or (waits and is_terminating(pod))]
    taken = {index_of(pod, below) for pod in pods} | look.completed | look.failed
    return [index for index in range(below) if index not in taken]
