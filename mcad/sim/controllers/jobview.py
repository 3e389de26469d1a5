"""What the job controller sees of one Job: its pods, sorted by what they mean for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcad.sim.controllers.intervals import Indexes
from mcad.sim.controllers.jobpolicy import (
    Backoff,
    failures_of,
    finished_us,
    has_failed,
    is_indexed,
    is_tracked,
    judge,
    valid_index,
)
from mcad.sim.controllers.pods import is_active, is_ready, is_terminating, phase_of
from mcad.sim.copying import copied

Json = dict[str, Any]


@dataclass(slots=True)
class JobView:
    """One look at a Job; ``status`` is a copy that the controller changes and then writes."""

    job: Json
    pods: list[Json]
    status: Json
    active: list[Json] = field(default_factory=list)
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    newly_succeeded: list[Json] = field(default_factory=list)
    newly_failed: list[Json] = field(default_factory=list)
    counted_indexes: Indexes = field(default_factory=Indexes)  # as status had it
    succeeded_indexes: Indexes = field(default_factory=Indexes)
    failed_indexes: Indexes | None = None  # with backoffLimitPerIndex only
    kept: dict[int, Json] = field(default_factory=dict)  # failed pods to be replaced, by index
    backoff: Backoff = field(default_factory=Backoff)
    finished: Json | None = None  # the condition that ends the Job
    has_more: bool = False  # pods that are left to be counted the next time

    @property
    def uncounted(self) -> Json:
        """``status.uncountedTerminatedPods``, for changing."""
        found: Json = self.status.setdefault("uncountedTerminatedPods", {})
        return found

    @property
    def completions(self) -> int | None:
        """``spec.completions``; None if one success is enough."""
        found: int | None = self.job["spec"].get("completions")
        return found


def look_at(job: Json, pods: list[Json], known: Backoff) -> JobView:
    """The picture of a Job and the pods that it has claimed."""
    view = JobView(job, pods, copied(job.get("status") or {}))
    view.active = [pod for pod in pods if is_active(pod)]
    view.ready = sum(map(is_ready, view.active))
    view.terminating = sum(map(is_terminating, pods))
    _sort_out_finished(view)
    view.backoff = known.after(view.newly_succeeded, view.newly_failed)
    if is_indexed(job):
        _sort_out_indexes(view)
    return view


def _sort_out_finished(view: JobView) -> None:
    job, status, uncounted = view.job, view.status, view.uncounted
    for pod in view.pods:
        uid = pod["metadata"]["uid"]
        if not is_tracked(pod) or (is_indexed(job) and valid_index(pod, job) is None):
            continue
        if phase_of(pod) == "Succeeded":
            if uid not in uncounted.get("succeeded", ()):
                view.newly_succeeded.append(pod)
        elif has_failed(pod, job) and uid not in uncounted.get("failed", ()):
            view.newly_failed.append(pod)
    failed = sum(judge(job, pod).counts for pod in view.newly_failed)
    view.succeeded = status.get("succeeded", 0) + len(view.newly_succeeded)
    view.succeeded += len(uncounted.get("succeeded", ()))
    view.failed = status.get("failed", 0) + failed + len(uncounted.get("failed", ()))


def _sort_out_indexes(view: JobView) -> None:
    job, status, below = view.job, view.status, view.completions or 0
    view.counted_indexes = Indexes.parse(status.get("completedIndexes", ""), below)
    tracked = [pod for pod in view.pods if is_tracked(pod) and valid_index(pod, job) is not None]
    new = [valid_index(pod, job) or 0 for pod in tracked if phase_of(pod) == "Succeeded"]
    view.succeeded_indexes = view.counted_indexes.union(new)
    view.succeeded = len(view.succeeded_indexes)
    if job["spec"].get("backoffLimitPerIndex") is None:
        return
    before = Indexes.parse(status.get("failedIndexes") or "", below)
    new = [valid_index(pod, job) or 0 for pod in tracked if _spends_its_index(pod, job)]
    view.failed_indexes = before.union(new)
    _keep_failed(view, tracked)


def _spends_its_index(pod: Json, job: Json) -> bool:
    """Whether with this failure its index has failed for good (KEP-3850)."""
    if not has_failed(pod, job):
        return False
    verdict = judge(job, pod)
    if verdict.action == "FailIndex":
        return True
    return verdict.counts and failures_of(pod) >= job["spec"]["backoffLimitPerIndex"]


def _keep_failed(view: JobView, tracked: list[Json]) -> None:
    """A failed pod stays until its successor carries its count of failures on."""
    job, running = view.job, {valid_index(pod, view.job) for pod in view.active}
    for pod in tracked:
        index = valid_index(pod, job)
        if index is None or not has_failed(pod, job) or index in running:
            continue
        if index in view.succeeded_indexes or index in (view.failed_indexes or ()):
            continue
        known = view.kept.get(index)
        if known is None or _age(known) <= _age(pod):
            view.kept[index] = pod


def _age(pod: Json) -> tuple[int, int]:
    return failures_of(pod) + failures_of(pod, ignored=True), finished_us(pod)
