"""Counting the pods of a Job, each exactly once (KEP-2307)."""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.jobpolicy import (
    has_failed,
    index_of,
    is_indexed,
    is_tracked,
    judge,
    valid_index,
)
from mcad.sim.controllers.jobview import JobView
from mcad.sim.controllers.pods import is_deleting, phase_of

Json = dict[str, Any]

UNCOUNTED_MAX = 500  # uids in a status, so that it stays small


def note_uncounted(view: JobView) -> list[Json]:
    """Write down in ``view.status`` what has ended; the pods whose finalizer may go then."""
    job, status = view.job, view.status
    released: list[Json] = []
    new_indexes: list[int] = []
    _forget_released(view)
    succeeded = list(view.uncounted.get("succeeded", ()))
    failed = list(view.uncounted.get("failed", ()))
    pods = sorted(view.pods, key=lambda pod: index_of(pod) or 0) if is_indexed(job) else view.pods
    for pod in pods:
        if not is_tracked(pod) or not _may_go(view, pod):
            continue
        released.append(pod)
        uid, index = pod["metadata"]["uid"], valid_index(pod, job)
        if phase_of(pod) == "Succeeded" and uid not in failed:
            if is_indexed(job):
                new_indexes += [index] if index is not None else []
            elif uid not in succeeded:
                succeeded.append(uid)
        elif uid not in failed and _counts_as_failed(view, pod):
            failed.append(uid)
        if len(new_indexes) + len(succeeded) + len(failed) >= UNCOUNTED_MAX:
            view.has_more = True
            break
    lists = {"succeeded": succeeded, "failed": failed}
    status["uncountedTerminatedPods"] = {name: uids for name, uids in lists.items() if uids}
    if is_indexed(job):
        _note_indexes(view, new_indexes)
    return released


def counted(status: Json, released: list[Json]) -> Json:
    """The status in which the released pods have been counted."""
    gone = {pod["metadata"]["uid"] for pod in released}
    status = dict(status)
    left: Json = {}
    for name, uids in (status.get("uncountedTerminatedPods") or {}).items():
        kept = [uid for uid in uids if uid not in gone]
        if len(uids) > len(kept):
            status[name] = status.get(name, 0) + len(uids) - len(kept)
        left |= {name: kept} if kept else {}
    status["uncountedTerminatedPods"] = left
    return status


def _forget_released(view: JobView) -> None:
    """Count those whose finalizer has gone in the meantime, by whomever."""
    tracked = {pod["metadata"]["uid"] for pod in view.pods if is_tracked(pod)}
    noted = [uid for uids in view.uncounted.values() for uid in uids]
    gone = [{"metadata": {"uid": uid}} for uid in noted if uid not in tracked]
    if gone:
        view.status = counted(view.status, gone)


def _may_go(view: JobView, pod: Json) -> bool:
    if is_deleting(view.job) or view.finished is not None or phase_of(pod) == "Succeeded":
        return True
    if not has_failed(pod, view.job):
        return False
    kept = view.kept.get(index_of(pod) or 0) if view.failed_indexes is not None else None
    return kept is None or kept["metadata"]["uid"] != pod["metadata"]["uid"]


def _counts_as_failed(view: JobView, pod: Json) -> bool:
    """Failed pods do, and when the Job has failed, those that are stopped for it."""
    if is_indexed(view.job) and valid_index(pod, view.job) is None:
        return False
    ends_badly = view.finished is not None and view.finished["type"] != "SuccessCriteriaMet"
    if not has_failed(pod, view.job) and not ends_badly:
        return False
    return judge(view.job, pod).counts


def _note_indexes(view: JobView, new: list[int]) -> None:
    status = view.status
    done = view.counted_indexes.union(new)
    view.succeeded_indexes = view.succeeded_indexes.union(new)
    status["completedIndexes"] = str(done)
    status["succeeded"] = len(done)
    for name in ("completedIndexes", "succeeded"):
        if not status[name]:
            del status[name]
    if view.failed_indexes is not None:
        status["failedIndexes"] = str(view.failed_indexes)
