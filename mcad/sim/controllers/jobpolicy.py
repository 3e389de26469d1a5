"""Rules of a Job's spec about its pods: which failures count, what is success, how long to wait.

After ``pkg/controller/job/{pod_failure_policy,success_policy,backoff_utils}.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mcad.sim.controllers.intervals import Indexes
from mcad.sim.controllers.pods import annotations_of, is_deleting, phase_of, ready_condition
from mcad.sim.times import parse_us

Json = dict[str, Any]

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
TRACKING = "batch.kubernetes.io/job-tracking"

BACKOFF_US, BACKOFF_MAX_US = 10_000_000, 600_000_000


def is_indexed(job: Json) -> bool:
    """Whether its pods have completion indexes."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_suspended(job: Json) -> bool:
    """Whether it must not have pods now."""
    return bool(job["spec"].get("suspend"))


def replaces_failed_only(job: Json) -> bool:
    """Whether a pod that is being deleted is replaced only when it has ended (KEP-3939)."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or bool(spec.get("podFailurePolicy"))


def is_tracked(pod: Json) -> bool:
    """Whether it is still to be counted."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def has_failed(pod: Json, job: Json) -> bool:
    """Whether it counts as failed; a pod that is deleted before it ends does, too."""
    if phase_of(pod) == "Failed":
        return True
    if replaces_failed_only(job):
        return False
    return is_deleting(pod) and phase_of(pod) != "Succeeded"


def index_of(pod: Json) -> int | None:
    """Its completion index, if it has one that makes sense."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else None


def valid_index(pod: Json, job: Json) -> int | None:
    """Its completion index, if the Job has that many completions."""
    index = index_of(pod)
    return index if index is not None and index < (job["spec"].get("completions") or 0) else None


def failures_of(pod: Json, *, ignored: bool = False) -> int:
    """How many pods of its index have failed before it."""
    text = annotations_of(pod).get(IGNORED_FAILURES if ignored else FAILURES, "")
    return int(text) if text.isdecimal() else 0


# -- podFailurePolicy (KEP-3329) ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says about one failed pod."""

    counts: bool = True
    action: str = ""
    message: str = ""  # why the whole Job fails


def judge(job: Json, pod: Json) -> Verdict:
    """By the first rule that applies."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        reason = _match(rule, pod)
        if not reason:
            continue
        action = rule.get("action", "")
        message = f"{reason} matching {action} rule at index {number}"
        return Verdict(action != "Ignore", action, message if action == "FailJob" else "")
    return Verdict()


def _match(rule: Json, pod: Json) -> str:
    """How the rule applies to the pod; empty if it does not."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    who = f"{metadata['namespace']}/{metadata['name']}"
    if rule.get("onExitCodes"):
        statuses = [
            *(status.get("containerStatuses") or ()),
            *(status.get("initContainerStatuses") or ()),
        ]
        for one in statuses:
            code = ((one.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code and _has_code(rule["onExitCodes"], one["name"], code):
                return f"Container {one['name']} for pod {who} failed with exit code {code}"
        return ""
    for condition in status.get("conditions") or ():
        for pattern in rule.get("onPodConditions") or ():
            wanted = (pattern.get("type"), pattern.get("status") or "True")
            if (condition["type"], condition["status"]) == wanted:
                return f"Pod {who} has condition {condition['type']}"
    return ""


def _has_code(rule: Json, container: str, code: int) -> bool:
    if rule.get("containerName") not in {None, container}:
        return False
    return (code in (rule.get("values") or ())) is (rule.get("operator") == "In")


# -- successPolicy (KEP-3998) ------------------------------------------------------------------


def success_by_policy(job: Json, succeeded: Indexes) -> str:
    """Why the Job counts as successful already; empty if it does not."""
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules if len(succeeded) else ()):
        count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
        if text is not None:
            wanted = Indexes.parse(text, job["spec"].get("completions") or 0)
            met = sum(one in succeeded for one in wanted)
            if not len(wanted) or (met < len(wanted) and (count is None or met < count)):
                continue
        elif count is None or len(succeeded) < count:
            continue
        return f"Matched rules at index {number}"
    return ""


# -- backoff -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Backoff:
    """Failures since the last success, and when the last of them was."""

    failures: int = 0
    last_us: int = 0

    def after(self, succeeded: Sequence[Json], failed: Sequence[Json]) -> Backoff:
        """With pods that have ended since."""
        ends = sorted(map(finished_us, failed))
        if not succeeded:
            return Backoff(self.failures + len(ends), ends[-1]) if ends else self
        last_success = max(map(finished_us, succeeded))
        later = [end for end in ends if end > last_success]
        return Backoff(len(later), later[-1]) if later else Backoff()

    def remaining_us(self, now_us: int) -> int:
        """How long to wait with the next pod: 10 s, 20 s, 40 s, up to 10 minutes."""
        if not self.failures:
            return 0
        doublings = min(self.failures - 1, 10)
        wait_us = min(BACKOFF_US << doublings, BACKOFF_MAX_US)
        return max(self.last_us + wait_us - now_us, 0)


def finished_us(pod: Json) -> int:
    """When it ended: its last container, or what else tells (``getFinishedTime``)."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    ends = list(_ends(status.get("containerStatuses") or ()))
    if ends and all(ends):
        return max(map(parse_us, ends))
    ready = ready_condition(pod)
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return parse_us(ready["lastTransitionTime"])
    if is_deleting(pod):
        grace_s: int = metadata.get("deletionGracePeriodSeconds", 0)
        return parse_us(metadata["deletionTimestamp"]) - grace_s * 1_000_000
    return parse_us(metadata["creationTimestamp"])


def _ends(statuses: Iterable[Json]) -> Iterable[str]:
    for one in statuses:
        yield ((one.get("state") or {}).get("terminated") or {}).get("finishedAt") or ""
