"""Jobs, after ``pkg/controller/job/job_controller.go``.

A pod is counted exactly once (KEP-2307): its uid goes into ``uncountedTerminatedPods``, then its
finalizer goes, then the counters grow. A Job that is going to end says so first (SuccessCriteriaMet
or FailureTarget), and ends when the last of its pods is gone (KEP-3329, KEP-3939).
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers import jobcounting
from mcad.sim.controllers.claims import without_finalizer
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.jobends import (
    COMPLETE,
    CRITERIA_MET,
    FAILED,
    find_condition,
    judge_end,
    new_condition,
    success,
    with_suspension,
)
from mcad.sim.controllers.jobpods import finished_condition, pod_for, pod_for_index
from mcad.sim.controllers.jobpolicy import (
    TRACKING,
    Backoff,
    failures_of,
    finished_us,
    is_indexed,
    is_suspended,
    is_tracked,
    replaces_failed_only,
    valid_index,
)
from mcad.sim.controllers.jobview import JobView, look_at
from mcad.sim.controllers.pods import is_deleting, is_ready, is_terminating
from mcad.sim.controllers.ranking import surplus_of_job
from mcad.sim.controllers.workload import Workload
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]

BATCH_S = 1.0  # changes of pods are looked at together
BURST = 500  # pods created or deleted in one go
_OURSELVES = "kubernetes.io/job-controller"


class JobController(Workload):
    """Runs pods until enough of them have succeeded, or too many have failed."""

    def __init__(self, registry: Registry, pods: OwnedIndex) -> None:
        """``pods`` is the index that all controllers share."""
        super().__init__(registry, registry.kind("batch/v1", "Job"), pods, "job-controller")
        self._backoffs: dict[str, Backoff] = {}  # by uid of the Job

    def on_owner(self, change: Change) -> None:
        """At once if somebody wants something else; its own status is no news."""
        before = change.previous
        if change.type == "DELETED":
            self._backoffs.pop(change.obj["metadata"]["uid"], None)
        elif before is not None and not _is_news(before, change.obj):
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
        uid, spec = job["metadata"]["uid"], job["spec"]
        if finished_condition(job) is not None:
            self._backoffs.pop(uid, None)
            return
        if spec.get("managedBy") not in {None, "", _OURSELVES}:
            return
        pods = self.claim(job, finalizer=TRACKING)
        view = look_at(job, pods, self._backoffs.get(uid, Backoff()))
        now_us = self.registry.clock.now_us()
        if "startTime" not in view.status and not is_suspended(job):
            view.status["startTime"] = seconds(now_us)
        judge_end(view, now_us)
        self._watch_deadline(view, now_us)
        trouble: Failure | None = None
        try:
            active = self._manage(view, now_us)
        except Failure as failure:
            trouble, active = failure, sum(map(self._is_there, view.active))
        self._tell_counts(view, active)
        self._count(view, now_us)
        if trouble is not None:
            raise trouble

    # -- creating and deleting -----------------------------------------------------------------

    def _manage(self, view: JobView, now_us: int) -> int:
        """The number of active pods after creating or deleting some; raises Failure."""
        job = view.job
        if view.finished is not None:
            return self._delete(view, view.active, release=False)
        active = len(view.active)
        if not is_deleting(job):
            active = self._keep_size(view, now_us)
        done = view.succeeded > 0
        if view.completions is not None:
            done = view.succeeded >= view.completions
        if done and not active:
            view.finished = success("CompletionsReached", now_us)
        elif not is_deleting(job):
            event = with_suspension(view, now_us)
            if event:
                self.recorder.normal(job, event, f"Job {event.lower()}")
        return active

    def _keep_size(self, view: JobView, now_us: int) -> int:
        job, active = view.job, len(view.active)
        if is_suspended(job):
            return self._delete(view, view.active, release=True)
        wanted = _wanted(view)
        surplus = _surplus(view, max(active - wanted, 0))[:BURST]
        if surplus:
            return self._delete(view, surplus, release=True)
        missing = wanted - active - (view.terminating if replaces_failed_only(job) else 0)
        if missing <= 0:
            return active
        if job["spec"].get("backoffLimitPerIndex") is None:
            wait_us = view.backoff.remaining_us(now_us)
            if wait_us:
                self.enqueue_after(key_of(job), max(wait_us / 1e6, BATCH_S))
                return active
        return active + self._create(view, min(missing, BURST), now_us)

    def _create(self, view: JobView, count: int, now_us: int) -> int:
        """How many pods were made; raises Failure."""
        job, pod = view.job, pod_for(view.job)
        if not is_indexed(job):
            return sum(self.create_pod(job, pod) is not None for _ in range(count))
        indexes = self._ready_indexes(view, _pending_indexes(view, count), now_us)
        made = 0
        for index in indexes:
            body = pod_for_index(job, pod, index, view.kept.get(index))
            made += self.create_pod(job, body) is not None
        return made

    def _ready_indexes(self, view: JobView, indexes: list[int], now_us: int) -> list[int]:
        """Those that need not wait after a failure; if all must, look again in time."""
        if view.job["spec"].get("backoffLimitPerIndex") is None:
            return indexes
        waits = {}
        for index in indexes:
            failed = view.kept.get(index)
            if failed is not None:
                count = failures_of(failed) + failures_of(failed, ignored=True) + 1
                waits[index] = Backoff(count, finished_us(failed)).remaining_us(now_us)
        ready = [index for index in indexes if not waits.get(index)]
        if not ready and waits:
            wait_s = max(min(waits.values()) / 1e6, BATCH_S)
            self.enqueue_after(key_of(view.job), wait_s)
        return ready

    def _delete(self, view: JobView, pods: list[Json], *, release: bool) -> int:
        """Delete; with ``release`` they are not to be counted. The active pods that are left."""
        for pod in pods:
            if release:
                self._release_pod(pod)
            if self._is_there(pod):
                self.delete_pod(view.job, pod)
        view.terminating += len(pods)
        view.ready -= sum(map(is_ready, pods))
        return len(view.active) - len(pods)

    def _release_pod(self, pod: Json) -> None:
        if self._is_there(pod) and is_tracked(pod):
            self.registry.patch(
                self.owned.kind, key_of(pod), lambda live: without_finalizer(live, TRACKING)
            )

    def _is_there(self, pod: Json) -> bool:
        live = self.registry.find(self.owned.kind, key_of(pod))
        uid: str = pod["metadata"]["uid"]
        return live is not None and uid == str(live["metadata"]["uid"])

    # -- status --------------------------------------------------------------------------------

    def _watch_deadline(self, view: JobView, now_us: int) -> None:
        limit_s = view.job["spec"].get("activeDeadlineSeconds")
        if limit_s is not None and "startTime" in view.status and view.finished is None:
            end_us = parse_us(view.status["startTime"]) + limit_s * 1_000_000
            self.enqueue_after(key_of(view.job), max((end_us - now_us) / 1e6, 0.0))

    def _tell_counts(self, view: JobView, active: int) -> None:
        status = view.status
        status["ready"], status["terminating"] = view.ready, view.terminating
        status.pop("active", None)
        if active:
            status["active"] = active

    def _count(self, view: JobView, now_us: int) -> None:
        """Count pods that have ended, and end the Job when nothing is left to count."""
        job = view.job
        released = jobcounting.note_uncounted(view)
        end = _final(view, now_us)
        job = self.write_status(job, view.status)
        self._backoffs[job["metadata"]["uid"]] = view.backoff
        for pod in released:
            self._release_pod(pod)
        status = jobcounting.counted(job["status"], released)
        left = status.get("uncountedTerminatedPods") or {}
        if end is not None and not left and not view.terminating and not view.has_more:
            status = status | {"conditions": [*(status.get("conditions") or ()), end]}
            if end["type"] == COMPLETE:
                status["completionTime"] = end["lastTransitionTime"]
            self.write_status(job, status)
            self._tell_end(job, status, end)
            return
        self.write_status(job, status)

    def _tell_end(self, job: Json, status: Json, end: Json) -> None:
        if end["type"] == FAILED:
            self.recorder.warning(job, end["reason"], end["message"])
            return
        wanted = job["spec"].get("completions")
        if wanted is not None and status.get("succeeded", 0) > wanted:
            text = "Too many succeeded pods running after completion count reached"
            self.recorder.warning(job, "TooManySucceededPods", text)
        self.recorder.normal(job, "Completed", "Job completed")


def _is_news(before: Json, now: Json) -> bool:
    return bool(before["metadata"].get("generation") != now["metadata"].get("generation"))


def _final(view: JobView, now_us: int) -> Json | None:
    """Announce the end in ``view.status``; the condition with which it will have ended."""
    end = view.finished
    if end is None:
        return None
    if find_condition(view.status, end["type"]) is None:
        view.status["conditions"] = [*(view.status.get("conditions") or ()), end]
    kind = COMPLETE if end["type"] == CRITERIA_MET else FAILED
    return new_condition(kind, end["reason"], end["message"], now_us)


def _wanted(view: JobView) -> int:
    """How many pods should be active."""
    parallelism: int = view.job["spec"].get("parallelism", 1)
    if view.completions is None:
        return len(view.active) if view.succeeded else parallelism
    return max(min(view.completions - view.succeeded, parallelism), 0)


def _surplus(view: JobView, at_least: int) -> list[Json]:
    """Active pods to delete: those whose index another one has, and if need be more."""
    job, gone, left = view.job, [], view.active
    if is_indexed(job):
        by_index: dict[int, list[Json]] = {}
        for pod in view.active:
            index = valid_index(pod, job)
            if index is None:
                gone.append(pod)
            else:
                by_index.setdefault(index, []).append(pod)
        left = []
        for _, pods in sorted(by_index.items()):
            *twins, last = surplus_of_job(pods, len(pods))
            gone += twins
            left.append(last)
    if len(gone) < at_least:
        gone += surplus_of_job(left, at_least - len(gone))
    return gone


def _pending_indexes(view: JobView, count: int) -> list[int]:
    """The first indexes that have neither ended nor a pod."""
    job = view.job
    found: list[int] = []
    taken = {valid_index(pod, job) for pod in view.active}
    if replaces_failed_only(job):
        taken |= {valid_index(pod, job) for pod in view.pods if is_terminating(pod)}
    for index in range(view.completions or 0):
        if len(found) == count:
            break
        ended = index in view.succeeded_indexes or index in (view.failed_indexes or ())
        if index not in taken and not ended:
            found.append(index)
    return found
