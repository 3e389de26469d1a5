"""When a running attempt of MCAD's dialect ends: too few pods, or too long a time.

``minAvailable`` and ``requeuing`` take it back into the queue, after growing waits, and at last for
good; ``dispatchDuration.limit`` makes it fail (facts: v1beta1, sections 3.5 to 3.7).
"""

from __future__ import annotations

from mcad.core.attempts import teardown
from mcad.core.cluster import Cluster
from mcad.core.running import reset, stage
from mcad.core.state.entry import Entry
from mcad.core.state.model import Dialect, Next
from mcad.core.state.reasons import (
    MIN_PODS_NOT_RUNNING,
    PODS_RUNNING,
    ConditionType,
    TeardownReason,
    some_of,
)
from mcad.core.state.run_policy import Growth, Requeuing
from mcad.core.state.units import SECOND, Duration, Instant


def judge(cluster: Cluster, entry: Entry) -> Instant:
    """Leave the AppWrapper running, take it back, or fail it; returns when that may be due."""
    limit = entry.workload.run_limit
    deadline = entry.limit_counts_from(entry.record.confirmed) + limit if limit else 0
    if deadline and deadline <= cluster.now:
        _time_is_over(cluster, entry)
        return 0
    nodes = cluster.capacity.pods.nodes_to_leave(entry.uid)
    if nodes and entry.workload.dialect is Dialect.V1BETA1:
        message = f"Its pods have to leave: {some_of(nodes)}."
        teardown.take_back(cluster, entry, TeardownReason.AUTOPILOT_NO_EXECUTE, message)
        return 0
    due = _too_few_until(cluster, entry)
    if due and due <= cluster.now:
        _requeue(cluster, entry)
    return stage.earliest(deadline, due)


def _time_is_over(cluster: Cluster, entry: Entry) -> None:
    """Fail the AppWrapper, or requeue it if it never had all of its nodes: that is no run."""
    if stage.take_back(cluster, entry, cluster.now - entry.record.confirmed):
        return
    seconds = entry.workload.run_limit // SECOND
    message = f"Dispatch deadline exceeded. allowed to run for {seconds} seconds"
    reason, kind = TeardownReason.DEADLINE_EXCEEDED, ConditionType.PREEMPT_CANDIDATE
    entry.set_condition(kind, cluster.now, reason=reason, message=message)
    reset.fail(cluster, entry, reason, message)


# -- minAvailable --------------------------------------------------------------------------------


def _too_few_until(cluster: Cluster, entry: Entry) -> Instant:
    """Until when the AppWrapper may have too few pods, 0 if it has enough.

    The wait begins with the confirmation, or when it last had enough pods.
    """
    minimum = entry.workload.min_available
    if not minimum:
        return 0
    pods, kind = cluster.capacity.pods.counts(entry.uid), ConditionType.RUNNING
    if pods.running + pods.succeeded - pods.leaving >= minimum:
        entry.set_condition(kind, cluster.now, reason=PODS_RUNNING)
        candidate = entry.conditions.get(ConditionType.PREEMPT_CANDIDATE)
        if candidate is not None and candidate.reason == MIN_PODS_NOT_RUNNING:
            entry.unset_condition(ConditionType.PREEMPT_CANDIDATE, cluster.now, reason=PODS_RUNNING)
        return 0
    entry.unset_condition(kind, cluster.now, reason=MIN_PODS_NOT_RUNNING)
    shown = entry.conditions.get(ConditionType.RUNNING)
    since = max(entry.record.confirmed, shown.changed if shown is not None else 0)
    return since + (entry.past.requeueing_wait or entry.workload.requeuing.wait)


def _requeue(cluster: Cluster, entry: Entry) -> None:
    pods, rule = cluster.capacity.pods.counts(entry.uid), entry.workload.requeuing
    message = (
        "Insufficient number of Running and Completed pods, "
        f"minimum={entry.workload.min_available}, running={pods.running - pods.leaving}, "
        f"completed={pods.succeeded}."
    )
    reason, kind = TeardownReason.MIN_PODS_NOT_RUNNING, ConditionType.PREEMPT_CANDIDATE
    entry.set_condition(kind, cluster.now, reason=reason, message=message)
    if rule.times_max and entry.past.requeueings >= rule.times_max:
        teardown.take_back(cluster, entry, reason, message, Next.DELETED)
        return
    entry.past.requeueing_wait = next_wait(rule, entry.past.requeueing_wait)
    entry.past.requeueings += 1
    teardown.take_back(cluster, entry, reason, message)


def next_wait(rule: Requeuing, wait: Duration) -> Duration:
    """The wait after a requeue; ``wait`` is the wait before, 0 for the first.

    The first requeue does not change it: T, T, 2T, 4T, ... or T, T, 2T, 3T, ... as MCAD does.
    """
    more = {Growth.EXPONENTIAL: wait, Growth.LINEAR: rule.wait}.get(rule.growth, 0)
    grown = wait + more if wait else rule.wait
    return min(grown, rule.wait_max) if rule.wait_max else grown
