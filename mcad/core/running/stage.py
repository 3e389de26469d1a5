"""Pods that are waited for: since when, and until when (C4, C6).

One clock counts for all pods. It begins with the confirmation, and anew with every pod of the
attempt that appears, gets its node or becomes ready: more pods may follow. While existing pods are
within their warm-up grace, no other pod is missing.
"""

from __future__ import annotations

from mcad.core.attempts import teardown
from mcad.core.cluster import Cluster
from mcad.core.state.bounds import NOTED_PER_PASS, RECORD_AFTER, SLOW_PLACEMENT
from mcad.core.state.entry import Entry
from mcad.core.state.model import Dialect, Pod
from mcad.core.state.not_checked import not_checked_of
from mcad.core.state.reasons import EventReason, TeardownReason, some_of
from mcad.core.state.settings import Policy
from mcad.core.state.stall import refusal
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration, Instant


def take_changed(cluster: Cluster) -> None:
    """Have AppWrappers judged in this pass whose pods came, went or got nodes."""
    changed = cluster.capacity.gangs.take_changed(NOTED_PER_PASS)
    cluster.agenda.to_judge.update(dict.fromkeys(changed))
    if not cluster.capacity.gangs.is_noted:
        cluster.agenda.carry_over()


def note(cluster: Cluster, entry: Entry) -> None:
    """Note since when pods are missing, and whether all declared pods have had nodes by now."""
    pods = cluster.capacity.pods
    missing = sum(pods.lacking(entry.uid).values())
    if missing > entry.run.missing or not missing:
        entry.run.missing_since = cluster.now if missing else 0
    entry.run.missing = missing
    if not entry.record.placed and pods.is_placed(entry.uid):
        entry.amend(placed=cluster.now)
        cluster.agenda.wake_in(entry, Timer.RECORD, RECORD_AFTER)
        _count_run_time(cluster, entry)


def _count_run_time(cluster: Cluster, entry: Entry) -> None:
    """Let ``dispatchDuration.limit`` count from now on, if the pods had to wait for nodes. With
    backfill it counts from the confirmation: starts promised to others rest on it."""
    record, is_promised = entry.record, cluster.settings.policy is Policy.BACKFILL
    waited = cluster.now - record.confirmed if entry.run.awaits_nodes else 0
    entry.run.awaits_nodes = False
    if entry.workload.run_limit and waited >= SLOW_PLACEMENT and not is_promised:
        entry.run.waited_for_nodes = waited
        entry.amend(limit_since=entry.limit_counts_from(record.confirmed) + waited)
        cluster.settle(entry)


# -- missing pods --------------------------------------------------------------------------------


def missing_until(cluster: Cluster, entry: Entry, grace: Duration, *, known: bool) -> Instant:
    """When pods will have been missing for the grace, 0 if none is missing. ``known``: only pods
    that a live object reports as wanted."""
    if not entry.run.missing or not cluster.capacity.pods.missing(entry.uid, known=known):
        return 0
    run = entry.run
    return max(run.missing_since, run.stage_since, _warming_until(cluster, entry)) + grace


def _warming_until(cluster: Cluster, entry: Entry) -> Instant:
    """When the last of the pods that are not ready has used up its warm-up grace."""
    grace, confirmed = entry.workload.tolerance.warmup_grace, entry.record.confirmed
    begun = (max(p.created, p.bound) for p in cluster.capacity.pods.live(entry.uid) if not p.ready)
    return max((max(at, confirmed) + grace for at in begun), default=0)


def give_up(cluster: Cluster, entry: Entry) -> Instant:
    """C4: stop keeping room for pods that are never created. Returns until when it is kept."""
    timeout = cluster.settings.reservation_timeout
    due = missing_until(cluster, entry, timeout, known=False)
    if not due or cluster.now < due:
        return due
    given_up = cluster.capacity.gangs.give_up(entry.uid)
    pods = "1 pod that is" if given_up == 1 else f"{given_up} pods that are"
    note = (
        f"{pods} wanted did not appear within {timeout // SECOND} s; "
        f"{'its' if given_up == 1 else 'their'} reservation ends. "
        "Is the controller of the wrapped kind running?"
    )
    cluster.announce(entry, EventReason.PODS_NOT_ATTRIBUTED, note, action="Reserve", warning=True)
    return cluster.now + 1  # pods that were given up do not keep it from completing


# -- pods without a node -------------------------------------------------------------------------


def judge_placement(cluster: Cluster, entry: Entry) -> Instant:
    """C6, v1beta1: take the attempt back if declared pods find no node for ``placementTimeout``;
    returns their deadline, 0 if all have had a node. v1beta2 has graces of its own (health.py)."""
    due = placement_until(cluster, entry)
    if due and due <= cluster.now:
        take_back(cluster, entry, cluster.settings.placement_timeout)
    return due


def placement_until(cluster: Cluster, entry: Entry) -> Instant:
    """Until when declared pods of v1beta1 may look for nodes, 0 if all have had a node."""
    timeout = cluster.settings.placement_timeout
    if not timeout or entry.record.placed or entry.workload.dialect is Dialect.V1BETA2:
        return 0
    pods = cluster.capacity.pods.never_placed(entry.uid)
    ends = [waits_since(entry, pod) + timeout for pod in pods]
    return earliest(*ends, missing_until(cluster, entry, timeout, known=True))


def take_back(cluster: Cluster, entry: Entry, waited: Duration) -> bool:
    """Requeue the AppWrapper if declared pods never had nodes; returns whether. The message names
    the pods that have waited for ``waited``."""
    if entry.record.placed:
        return False
    pods, now = cluster.capacity.pods, cluster.now
    late = [p for p in pods.never_placed(entry.uid) if waits_since(entry, p) + waited <= now]
    missing = pods.missing(entry.uid, known=True)
    if late or missing:
        entry.past.requeueings += 1
        message = explain_missing(cluster, entry)
        if late:
            told = f"Without a node for {waited // SECOND} s: {name_with(late, refusal(late))}."
            message = f"{told}{message} {not_checked_of(entry.workload.sets)}"
        teardown.take_back(cluster, entry, TeardownReason.NOT_PLACED, message.strip())
    return bool(late or missing)


def name_with(pods: list[Pod], words: str) -> str:
    """The pods of a message, with the words of another component about them, if any."""
    return some_of([pod.name for pod in pods]) + (f" ({words})" if words else "")


def explain_missing(cluster: Cluster, entry: Entry) -> str:
    """A sentence about pods that do not exist, with a blank before it; "" if all exist."""
    lacking = cluster.capacity.pods.lacking(entry.uid)
    items = some_of([str(entry.ref(item)) for item in lacking])
    return f" Not created: {sum(lacking.values())} pods of {items}." if items else ""


def waits_since(entry: Entry, pod: Pod) -> Instant:
    """Since when a pod is waited for: the latest of its creation, the confirmation, and the time
    when pods of the attempt lost their gates."""
    return max(pod.created, entry.record.confirmed, entry.run.ungated_at)


def earliest(*ends: Instant) -> Instant:
    """The first of these instants; 0 is never."""
    return min(filter(None, ends), default=0)
