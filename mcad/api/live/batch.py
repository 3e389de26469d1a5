"""Jobs (batch/v1).

Facts from k8s.io/api 0.36.3: JobSpec.parallelism, completions, completionMode,
backoffLimitPerIndex, podReplacementPolicy; JobStatus.active, succeeded, failed, terminating,
completedIndexes, failedIndexes, uncountedTerminatedPods, completionTime, conditions (types
Complete, Failed, FailureTarget, SuccessCriteriaMet). Acts of the controller from k8s.io/kubernetes
1.36.3: manageJob, firstPendingIndexes and parseIndexesFromString of pkg/controller/job.
"""

import re

from mcad.api.live.reading import LiveObject, Reading, end_of, wanted
from mcad.api.located_fields import Part
from mcad.api.wire import Json, as_list, as_text
from mcad.core.state.model import ItemState

ENDS = {"Complete": ItemState.SUCCEEDED, "Failed": ItemState.FAILED}
_DECIDED = ("FailureTarget", "SuccessCriteriaMet")  # its pods go; then it is Failed or Complete

_INTERVAL = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?", re.ASCII)
_INDEXES_MAX = 1 << 20  # characters: the field of 100,000 indexes is smaller


def read_job(obj: LiveObject) -> Reading:
    """As many pods as it may run at once, of those that are left to complete.

    More completions than that come later, but in the same room, so they are not counted.
    """
    if (end := end_of(obj, ENDS)) is not None:
        return end
    if any(obj.condition(kind) for kind in _DECIDED):
        return Reading(obj.none())
    spec, status = obj.spec, obj.status
    left = _left(spec, status)
    waits = min(left, _terminating(spec, status))
    wants = {one.path: wanted(left - waits, waits) for one in obj.sets}
    return Reading(wants, _state(status, left))


def _state(status: Part, left: int) -> ItemState:
    """Between a failed pod and its replacement there is a pause of up to six minutes."""
    there = status.count("active", 0) + status.count("terminating", 0)
    is_between = status.count("failed", 0) > 0 and there < left
    return ItemState.RETRYING if is_between else ItemState.PROGRESSING


def _left(spec: Part, status: Part) -> int:
    parallelism = spec.count("parallelism", 1)
    succeeded = _succeeded(spec, status)
    if spec.value.get("completions") is None:  # a work queue: with the first success it runs dry
        return min(parallelism, status.count("active", 0)) if succeeded else parallelism
    completions = spec.most("completions", parallelism)
    failed = status.value.get("failedIndexes") if _is_per_index(spec) else None
    return max(0, min(parallelism, completions - succeeded - count_indexes(failed, completions)))


def _succeeded(spec: Part, status: Part) -> int:
    """Succeeded pods, those included that the controller has yet to count."""
    succeeded = status.count("succeeded", 0)
    if spec.value.get("completionMode") == "Indexed":
        completions = spec.count("completions", 0)
        return max(succeeded, count_indexes(status.value.get("completedIndexes"), completions))
    return succeeded + len(as_list(status.at("uncountedTerminatedPods").value.get("succeeded")))


def _is_per_index(spec: Part) -> bool:
    """Whether an index that failed for good leaves the others alone."""
    return spec.value.get("backoffLimitPerIndex") is not None


def _terminating(spec: Part, status: Part) -> int:
    """Pods on their way out that have to be gone before others replace them."""
    is_late = spec.value.get("podReplacementPolicy") == "Failed"
    return status.count("terminating", 0) if is_late else 0


def count_indexes(text: Json, completions: int) -> int:
    """How many indexes below ``completions`` a text like ``1,3-5`` has; a malformed interval has
    none."""
    count = 0
    for interval in as_text(text)[:_INDEXES_MAX].split(","):
        match = _INTERVAL.fullmatch(interval)
        if match is not None:
            first, last = int(match[1]), int(match[2] or match[1])
            count += max(0, min(last, completions - 1) - first + 1)
    return min(count, completions)
