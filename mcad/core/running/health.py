"""Whether a running AppWrapper is healthy, by the rules of v1beta2's fault tolerance.

In this order: an item is missing; an item says that it failed; pods failed and were not replaced;
pods run on nodes that they have to leave; not enough pods are ready. An unhealthy AppWrapper is
reset, or fails (reset.py). Clocks are those of the conditions ``Unhealthy`` and ``PodsReady``,
which are persisted.
"""

from __future__ import annotations

from collections.abc import Container

from mcad.core.cluster import Cluster
from mcad.core.commands import InspectItem
from mcad.core.events import ItemInspected
from mcad.core.running import reset
from mcad.core.running.reset import Breakdown
from mcad.core.state.bounds import LOOK_BASE
from mcad.core.state.entry import Entry
from mcad.core.state.model import Pod
from mcad.core.state.reasons import (
    FOUND_FAILED_PODS,
    FOUND_NO_FAILED_PODS,
    INSUFFICIENT_PODS_READY,
    SUFFICIENT_PODS_READY,
    ConditionType,
    TeardownReason,
    some_of,
)
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Instant


def judge(cluster: Cluster, entry: Entry) -> None:
    """Leave it running, reset it, or fail it."""
    broken = _missing(cluster, entry) or _failed_item(cluster, entry)
    if broken is None:
        broken, borne = _failed_pods(cluster, entry)
        broken = broken or _evicted(cluster, entry)
    if broken is None:
        broken, warm = _too_few(cluster, entry)
    if broken is not None:
        reset.break_down(cluster, entry, broken)
        return
    cluster.agenda.set_timer(entry, Timer.HEALTH, min(filter(None, (borne, warm)), default=0))


def judge_items(cluster: Cluster, entry: Entry) -> None:
    """v1beta1, which has no other such rule: without an item that creates its pods it can do
    nothing. Where ``minAvailable`` asks for pods, requeue.py notices that they are too few."""
    if entry.workload.min_available:
        return
    broken = _missing(cluster, entry, {one.item for one in entry.workload.sets})
    if broken is not None:
        reset.break_down(cluster, entry, broken)


# -- items ---------------------------------------------------------------------------------------


def _missing(
    cluster: Cluster, entry: Entry, needed: Container[int] | None = None
) -> Breakdown | None:
    """An item (of those ``needed``) was deleted although it was not finished. There is no retry, as
    upstream.

    An item that no watch has shown may exist all the same, because the watch of a new leader may
    lag. So it is read live first.
    """
    there, absent = entry.creation.created, entry.creation.absent
    unseen = [
        number
        for number, item in enumerate(entry.workload.items)
        if number not in there
        and number not in entry.finished
        and (needed is None or number in needed)
        and cluster.objects.is_watched(item.ref)
    ]
    lost = [str(entry.workload.items[number].ref) for number in unseen if number in absent]
    for number in unseen:
        if number not in absent:
            _read(cluster, entry, number)
    if not lost:
        return None
    total = len(entry.workload.items)
    message = f"Found {total - len(lost)} of {total} items; missing: {some_of(lost)}."
    return Breakdown(TeardownReason.MISSING_COMPONENT, message, final=True)


def _read(cluster: Cluster, entry: Entry, number: int) -> None:
    """Read an item live, if that is due."""
    due = entry.creation.read_again.get(number, 0)
    if due <= cluster.now and cluster.objects.item_reads.take(cluster.now):
        cluster.emit(InspectItem(entry.uid, entry.attempt, number, entry.ref(number)))
        due = entry.creation.read_again[number] = cluster.now + LOOK_BASE
    cluster.agenda.wake_in(entry, Timer.ITEMS, max(due - cluster.now, SECOND))


def item_read(cluster: Cluster, entry: Entry, event: ItemInspected) -> None:
    """What a live read of an item of a running attempt found; a failed read is repeated."""
    if event.attempt != entry.attempt or event.answer is not None:
        return
    holder, item = event.holder, event.item
    is_other = holder is not None and holder.owner_uid != entry.uid and not holder.terminating
    if (holder is None or is_other) and item not in entry.creation.created:
        entry.creation.vanished(item)
        cluster.agenda.to_judge[entry.uid] = None


def _failed_item(cluster: Cluster, entry: Entry) -> Breakdown | None:
    refs = (entry.ref(item) for item in sorted(entry.failed))
    failed = [str(ref) for ref in refs if ref.kind != "Pod"]
    if not failed:
        return None
    final = _is_final(entry.workload.tolerance, cluster.capacity.pods.failed(entry.uid))
    message = f"Failed: {some_of(failed)}."
    return Breakdown(TeardownReason.FAILED_COMPONENT, message, final=final)


# -- pods ----------------------------------------------------------------------------------------


def _failed_pods(cluster: Cluster, entry: Entry) -> tuple[Breakdown | None, Instant]:
    """Failed pods are tolerated for a grace period, and for ever if others have replaced them."""
    left = _unreplaced(cluster, entry)
    if not left:
        entry.unset_condition(ConditionType.UNHEALTHY, cluster.now, reason=FOUND_NO_FAILED_PODS)
        return None, 0
    names = some_of([pod.name for pod in left])
    if not entry.shows(ConditionType.UNHEALTHY):
        message = f"Failed and not replaced: {names}."
        entry.set_condition(
            ConditionType.UNHEALTHY, cluster.now, reason=FOUND_FAILED_PODS, message=message
        )
    tolerance = entry.workload.tolerance
    due = entry.conditions[ConditionType.UNHEALTHY].changed + tolerance.failure_grace
    if cluster.now < due:
        return None, due
    codes = sorted({str(code) for pod in left for code in pod.exit_codes}, key=int)
    message = f"Failed and not replaced: {names}."
    if codes:
        message += f" Exit codes: {some_of(codes)}."
    final = _is_final(tolerance, left)
    return Breakdown(TeardownReason.FOUND_FAILED_PODS, message, final=final), 0


def _unreplaced(cluster: Cluster, entry: Entry) -> list[Pod]:
    if not cluster.capacity.pods.counts(entry.uid).failed:
        return []
    items = set(entry.creation.created.values())  # a bare Pod is replaced by nothing
    replaced = cluster.capacity.pods.replaced(entry.uid)
    failed = cluster.capacity.pods.failed(entry.uid)
    return [pod for pod in failed if pod.uid in items or pod.uid not in replaced]


def _is_final(tolerance: FaultTolerance, failed: list[Pod]) -> bool:
    """Whether an exit code says that a retry is of no use."""
    codes = {code for pod in failed for code in pod.exit_codes}
    if codes.intersection(tolerance.terminal_exit_codes):
        return True
    return bool(tolerance.retryable_exit_codes) and not codes <= {*tolerance.retryable_exit_codes}


def _evicted(cluster: Cluster, entry: Entry) -> Breakdown | None:
    nodes = cluster.capacity.pods.nodes_to_leave(entry.uid)
    if not nodes:
        return None
    message = f"Its pods have to leave: {some_of(nodes)}."
    return Breakdown(TeardownReason.AUTOPILOT_NO_EXECUTE, message, counted=False)


def _too_few(cluster: Cluster, entry: Entry) -> tuple[Breakdown | None, Instant]:
    """Missing pods are tolerated for the admission grace, and pods that do not run for the warm-up
    grace, from the dispatch or from when there were last enough of them.

    Since when pods are missing is not on record: after a restart that clock starts anew.
    """
    index, kind = cluster.capacity.pods, ConditionType.PODS_READY
    pods, expected = index.counts(entry.uid), index.expected(entry.uid)
    ready = pods.running + pods.succeeded - pods.leaving
    if ready >= expected:
        entry.missing_since = 0
        entry.set_condition(kind, cluster.now, reason=SUFFICIENT_PODS_READY)
        return None, 0
    exist = ready + pods.pending
    entry.missing_since = (entry.missing_since or cluster.now) if exist < expected else 0
    message = f"Of {expected} pods {exist} exist, and {ready} run or have succeeded."
    entry.unset_condition(kind, cluster.now, reason=INSUFFICIENT_PODS_READY, message=message)
    due = patience(entry)
    if cluster.now < due:
        return None, due
    return Breakdown(TeardownReason.INSUFFICIENT_PODS_READY, message), 0


def patience(entry: Entry) -> Instant:
    """Until when too few pods are tolerated."""
    tolerance, shown = entry.workload.tolerance, entry.conditions.get(ConditionType.PODS_READY)
    since = max(shown.changed if shown is not None else 0, entry.record.confirmed)
    warm = since + tolerance.warmup_grace
    if not entry.missing_since:
        return warm
    return min(warm, entry.missing_since + tolerance.admission_grace)
