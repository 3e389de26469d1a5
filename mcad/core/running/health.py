"""Whether the pods of a running AppWrapper are healthy, by the rules of v1beta2's fault tolerance.

The checks in order: pods failed and were not replaced; pods run on nodes that they have to leave;
not enough pods are ready. An unhealthy AppWrapper is reset, or fails (reset.py). The clocks are
those of the conditions ``Unhealthy`` and ``PodsReady``, which are persisted, and of the stage.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.running import reset, stage
from mcad.core.running.reset import Breakdown
from mcad.core.state.entry import Entry
from mcad.core.state.model import Dialect, ItemState, Pod
from mcad.core.state.reasons import (
    FOUND_FAILED_PODS,
    FOUND_NO_FAILED_PODS,
    INSUFFICIENT_PODS_READY,
    SUFFICIENT_PODS_READY,
    SUSPENDED,
    ConditionType,
    TeardownReason,
    some_of,
)
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.stall import refusal
from mcad.core.state.units import Instant

_Verdict = tuple[Breakdown | None, Instant]
"""The breakdown, or until when a fault is tolerated; (None, 0) without a fault."""


def judge(cluster: Cluster, entry: Entry) -> Instant:
    """Leave the AppWrapper running, reset it, or fail it; returns until when it may stay."""
    if entry.workload.dialect is not Dialect.V1BETA2:
        return 0
    due = 0
    for rule in (_failed_pods, _evicted, _too_few):
        broken, until = rule(cluster, entry)
        if broken is not None:
            reset.break_down(cluster, entry, broken)
            return 0
        due = stage.earliest(due, until)
    return due


def _failed_pods(cluster: Cluster, entry: Entry) -> _Verdict:
    """Failed pods are tolerated for a grace period, and for ever if they are replaced."""
    left, kind = _unreplaced(cluster, entry), ConditionType.UNHEALTHY
    if not left:
        entry.unset_condition(kind, cluster.now, reason=FOUND_NO_FAILED_PODS)
        return None, 0
    names = some_of([pod.name for pod in left])
    message = f"Failed and not replaced: {names}."
    if not entry.shows(kind):
        entry.set_condition(kind, cluster.now, reason=FOUND_FAILED_PODS, message=message)
    tolerance = entry.workload.tolerance
    due = entry.conditions[kind].changed + tolerance.failure_grace
    if cluster.now < due:
        return None, due
    codes = sorted({str(code) for pod in left for code in pod.exit_codes}, key=int)
    if codes:
        message += f" Exit codes: {some_of(codes)}."
    final = is_final(tolerance, left)
    return Breakdown(TeardownReason.FOUND_FAILED_PODS, message, final=final), 0


def _unreplaced(cluster: Cluster, entry: Entry) -> list[Pod]:
    """Failed pods without a replacement. A controller that retries by itself may do so, unless an
    exit code says that a retry is of no use."""
    pods = cluster.capacity.pods
    if not pods.counts(entry.uid).failed:
        return []
    items = set(entry.creation.created.values())  # a bare Pod has no replacement
    replaced, tolerance = pods.replaced(entry.uid), entry.workload.tolerance
    children = cluster.objects.of(entry)
    retrying = {child.uid for child in children if child.state is ItemState.RETRYING}
    return [
        pod
        for pod in pods.failed(entry.uid)
        if (pod.uid in items or pod.uid not in replaced)
        and (pod.root not in retrying or is_final(tolerance, [pod]))
    ]


def is_final(tolerance: FaultTolerance, failed: list[Pod]) -> bool:
    """Whether an exit code says that a retry is of no use."""
    codes = {code for pod in failed for code in pod.exit_codes}
    if codes.intersection(tolerance.terminal_exit_codes):
        return True
    return bool(tolerance.retryable_exit_codes) and not codes <= {*tolerance.retryable_exit_codes}


def _evicted(cluster: Cluster, entry: Entry) -> _Verdict:
    nodes = cluster.capacity.pods.nodes_to_leave(entry.uid)
    if not nodes:
        return None, 0
    message = f"Its pods have to leave: {some_of(nodes)}."
    return Breakdown(TeardownReason.AUTOPILOT_NO_EXECUTE, message, counted=False), 0


def _too_few(cluster: Cluster, entry: Entry) -> _Verdict:
    """Pods that do not start are tolerated for the warm-up grace, and missing pods for the
    admission grace. Pods that come later by design, and successors of pods that had nodes, have no
    deadline."""
    index, kind = cluster.capacity.pods, ConditionType.PODS_READY
    pods, expected = index.counts(entry.uid), index.expected(entry.uid)
    ready = pods.running + pods.succeeded - pods.leaving
    if ready >= expected:
        if expected or not _is_suspended(cluster, entry):
            entry.set_condition(kind, cluster.now, reason=SUFFICIENT_PODS_READY)
        else:
            entry.unset_condition(kind, cluster.now, reason=SUSPENDED)
        return None, 0
    message = f"Of {expected} pods {ready + pods.pending} exist, and {ready} run or have succeeded."
    entry.unset_condition(kind, cluster.now, reason=INSUFFICIENT_PODS_READY, message=message)
    due = _patience(cluster, entry)
    if not due or cluster.now < due:
        return None, due
    if idle := _idle(cluster, entry):
        stuck = next((one.stuck.message for one in idle if one.stuck is not None), "")
        message += f" Not running: {stage.name_with(idle, stuck or refusal(idle))}."
    message += stage.explain_missing(cluster, entry)
    return Breakdown(TeardownReason.INSUFFICIENT_PODS_READY, message), 0


def _is_suspended(cluster: Cluster, entry: Entry) -> bool:
    return any(child.state is ItemState.SUSPENDED for child in cluster.objects.of(entry))


def _patience(cluster: Cluster, entry: Entry) -> Instant:
    """Until when too few pods are tolerated; 0 is for ever: nothing is missing or late."""
    tolerance, idle = entry.workload.tolerance, _idle(cluster, entry)
    missing = stage.missing_until(cluster, entry, tolerance.admission_grace, known=True)
    if not idle:
        return missing
    shown = entry.conditions.get(ConditionType.PODS_READY)
    since = max(shown.changed if shown is not None else 0, entry.run.stage_since)
    begun = max(max(stage.waits_since(entry, one), one.bound) for one in idle)
    return stage.earliest(missing, max(since, begun) + tolerance.warmup_grace)


def _idle(cluster: Cluster, entry: Entry) -> list[Pod]:
    """The pods that should run by now: pods with a node that do not run, and declared pods that
    never had a node."""
    pods = cluster.capacity.pods
    return pods.idle(entry.uid) + pods.never_placed(entry.uid)
