"""When a running AppWrapper is finished, by the rules of either dialect."""

from __future__ import annotations

from mcad.core.attempts import orphans, teardown
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Signal
from mcad.core.state.model import ENDED, Child, Dialect, DispatchPhase, ItemState, Next
from mcad.core.state.reasons import (
    PODS_COMPLETED,
    SOME_ITEMS_COMPLETED,
    ConditionType,
    EventReason,
    TeardownReason,
)
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND
from mcad.core.status import pod_counts

_FINISHED = frozenset({"complete", "completed", "succeeded", "failed"})
"""Conditions and pod phases that mean an end for any kind."""


def hear(entry: Entry, child: Child) -> None:
    """Note whether an object of the attempt reports its end; the note outlives the object."""
    if not 0 <= child.item < len(entry.workload.items):
        return
    is_v1beta2 = _is_v1beta2(entry)
    if child.state is ItemState.SUCCEEDED if is_v1beta2 else _has_ended(entry, child):
        entry.run.finished.add(child.item)
    if is_v1beta2 and child.state is ItemState.FAILED:
        entry.run.failed.add(child.item)
    else:
        entry.run.failed.discard(child.item)


def _has_ended(entry: Entry, child: Child) -> bool:
    """v1beta1: the item shows a word of its ``completionstatus``. An item without this field is
    over, successful or not, and completes nothing."""
    words = entry.workload.items[child.item].completion
    if words:
        return not child.met.isdisjoint(words)
    return child.state in ENDED or not child.met.isdisjoint(_FINISHED)


def judge(cluster: Cluster, entry: Entry) -> bool:
    """Complete the AppWrapper if it reports its end and wants no more pods; a count of pods is not
    enough.

    An object may report its end before any pod exists (a Deployment's Progressing), and between two
    waves of a Job there is no pod.
    """
    if is_complete(cluster, entry):
        _complete(cluster, entry)
        return True
    kind, is_v1beta1 = ConditionType.RUNNING_HOLD_COMPLETION, not _is_v1beta2(entry)
    if is_v1beta1 and _has_said_so(entry) and not entry.shows(kind):
        entry.set_condition(kind, cluster.now, reason=SOME_ITEMS_COMPLETED)
    _record(entry)
    return False


def is_complete(cluster: Cluster, entry: Entry) -> bool:
    """Whether it has reported its end, and no pod runs or is yet to come."""
    is_over = _has_succeeded(cluster, entry) if _is_v1beta2(entry) else _has_said_so(entry)
    pods = cluster.capacity.pods
    counts = pods.counts(entry.uid)
    return is_over and not (counts.running or counts.pending or pods.wanted(entry.uid))


def _is_v1beta2(entry: Entry) -> bool:
    return entry.workload.dialect is Dialect.V1BETA2


def _record(entry: Entry) -> None:
    """Record finished items: they may be deleted, and count as finished for the next leader too."""
    finished = tuple(sorted(entry.run.finished))
    if finished != entry.record.finished:
        entry.amend(finished=finished)


def _has_said_so(entry: Entry) -> bool:
    """v1beta1: every item with ``completionstatus`` was seen with one of its words."""
    flagged = [number for number, item in enumerate(entry.workload.items) if item.completion]
    return bool(flagged) and entry.run.finished.issuperset(flagged)


def _has_succeeded(cluster: Cluster, entry: Entry) -> bool:
    """v1beta2: every item with pods reports success; for kinds that cannot report it, all pods
    succeeded.

    Without declared pods nothing can succeed; upstream calls that an instant success.
    """
    declared: dict[int, int] = {}
    for one in entry.workload.sets:
        if one.replicas or one.per_node:
            declared[one.item] = declared.get(one.item, 0) + max(1, one.replicas)
    items, pods = entry.workload.items, cluster.capacity.pods
    return bool(declared) and all(
        item in entry.run.finished
        or (not items[item].tells_end and pods.succeeded(entry.uid, item) >= count)
        for item, count in declared.items()
    )


def keep(cluster: Cluster, entry: Entry) -> None:
    """Delete the objects of a succeeded AppWrapper when its time to live is over."""
    orphans.expire(cluster, entry)
    ttl, record = entry.workload.tolerance.success_ttl, entry.dispatch
    said = entry.conditions.get(ConditionType.COMPLETED)
    is_there = record is not None and record.phase is DispatchPhase.DISPATCHED
    if ttl is None or said is None or not is_there:
        entry.stop(Timer.TTL)
        return
    until = said.changed + ttl
    if cluster.now < until:
        cluster.agenda.set_timer(entry, Timer.TTL, until)
        return
    message = f"It was finished {ttl // SECOND} s ago."
    teardown.take_back(cluster, entry, TeardownReason.SUCCESS_TTL, message, Next.COMPLETED)


def _complete(cluster: Cluster, entry: Entry) -> None:
    now = cluster.now
    pod_counts.count(entry, cluster.capacity, now)
    entry.unset_condition(ConditionType.RUNNING_HOLD_COMPLETION, now, reason=PODS_COMPLETED)
    entry.set_condition(ConditionType.COMPLETED, now, reason=PODS_COMPLETED)
    entry.drop_condition(ConditionType.STALLED)
    cluster.remember_run(entry)
    cluster.admission.release(entry.uid)
    cluster.move(entry, Signal.COMPLETE)
    cluster.settle(entry, Urgency.DISPATCH)
    cluster.announce(entry, EventReason.COMPLETED, "All items are finished.", action="Complete")
    keep(cluster, entry)
