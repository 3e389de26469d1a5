"""Items of a running AppWrapper that are missing or report a failure.

A missing item that was not finished was deleted by a client: that is the end, as upstream. Or it is
a bare Pod that the cluster took away: it was preempted, evicted, or lost with its node. That is no
wish of a user, so it is retried, within ``retryLimit``.
"""

from __future__ import annotations

from collections.abc import Container

from mcad.core.cluster import Cluster
from mcad.core.commands import InspectItem, ReadWarnings
from mcad.core.events import ItemInspected, WarningsRead
from mcad.core.running import reset
from mcad.core.running.health import is_final
from mcad.core.running.reset import Breakdown
from mcad.core.state.bounds import LOOK_BASE
from mcad.core.state.entry import Absence, Entry
from mcad.core.state.model import Child, Dialect, PodPhase
from mcad.core.state.reasons import DISRUPTIONS, TeardownReason, some_of
from mcad.core.state.units import SECOND, Instant


def judge(cluster: Cluster, entry: Entry) -> Instant:
    """Retry or fail the AppWrapper for its items; returns when to look for an item again."""
    needed = _needed(entry)
    look = _look_for(cluster, entry, needed)
    broken = _absent(cluster, entry, needed) or _failed(cluster, entry)
    if broken is not None:
        reset.break_down(cluster, entry, broken)
    return look


def _needed(entry: Entry) -> Container[int]:
    """The items without which the AppWrapper cannot go on. In v1beta1 these are the items that
    create pods; with ``minAvailable`` too few pods are noticed by that rule (requeue.py)."""
    work = entry.workload
    if work.dialect is Dialect.V1BETA2:
        return range(len(work.items))
    return () if work.min_available else {one.item for one in work.sets}


def _absent(cluster: Cluster, entry: Entry, needed: Container[int]) -> Breakdown | None:
    """The breakdown by absent items; none of an unwatched kind: its API may be away."""
    gone = {
        number: why
        for number, why in sorted(entry.creation.absent.items())
        if number in needed
        and number not in entry.run.finished
        and cluster.objects.is_watched(entry.ref(number))
    }
    if not gone:
        return None
    total = len(entry.workload.items)
    missing = [f"{entry.workload.items[n].ref} {why.words}" for n, why in gone.items()]
    message = f"Found {total - len(gone)} of {total} items; missing: {some_of(missing)}."
    if any(not why.lost for why in gone.values()):
        return Breakdown(TeardownReason.MISSING_COMPONENT, message, final=True)
    return Breakdown(TeardownReason.LOST_COMPONENT, message)


def _failed(cluster: Cluster, entry: Entry) -> Breakdown | None:
    """The breakdown by failed items; in v1beta1 no item counts as failed (completion.py)."""
    refs = (entry.ref(item) for item in sorted(entry.run.failed))
    failed = [str(ref) for ref in refs if ref.kind != "Pod"]
    if not failed:
        return None
    final = is_final(entry.workload.tolerance, cluster.capacity.pods.failed(entry.uid))
    message = f"Failed: {some_of(failed)}."
    return Breakdown(TeardownReason.FAILED_COMPONENT, message, final=final)


# -- missing items -------------------------------------------------------------------------------

_DELETED = Absence("was deleted")


def _look_for(cluster: Cluster, entry: Entry, needed: Container[int]) -> Instant:
    """Read, if due, items live that no watch has shown: they may exist, because the watch of a new
    leader may lag. Returns when the next read is due."""
    making, due = entry.creation, 0
    for number, item in enumerate(entry.workload.items):
        is_known = (
            number in making.created or number in making.absent or number in entry.run.finished
        )
        if number in needed and not is_known and cluster.objects.is_watched(item.ref):
            again = _read(cluster, entry, number)
            due = min(due or again, again)
    return due


def _read(cluster: Cluster, entry: Entry, number: int) -> Instant:
    due = entry.creation.read_again.get(number, 0)
    if due <= cluster.now and cluster.objects.item_reads.take(cluster.now):
        cluster.emit(InspectItem(entry.uid, entry.attempt, number, entry.ref(number)))
        due = entry.creation.read_again[number] = cluster.now + LOOK_BASE
    return max(due, cluster.now + SECOND)


def item_read(cluster: Cluster, entry: Entry, event: ItemInspected) -> None:
    """Take up a live read of an item of a running attempt; a failed read is repeated."""
    if event.attempt != entry.attempt or event.answer is not None:
        return
    holder, item = event.holder, event.item
    is_other = holder is not None and holder.owner_uid != entry.uid and not holder.terminating
    if (holder is None or is_other) and item not in entry.creation.created:
        ref, since = entry.ref(item), entry.record.since
        if ref.kind == "Pod":  # the cluster may have taken it away: then Events report it
            cluster.emit(ReadWarnings(entry.uid, entry.attempt, item, ref, since))
        else:
            _went_unseen(cluster, entry, item, _DELETED)


def events_read(cluster: Cluster, entry: Entry, event: WarningsRead) -> None:
    """Take up the Events of a bare Pod that went while no dispatcher watched."""
    making = entry.creation
    if event.attempt == entry.attempt and event.item not in (*making.created, *making.absent):
        why = Absence(f"is gone ({event.words})", lost=True) if event.words else _DELETED
        _went_unseen(cluster, entry, event.item, why)


def _went_unseen(cluster: Cluster, entry: Entry, item: int, why: Absence) -> None:
    entry.creation.vanished(item, why)
    cluster.agenda.to_judge[entry.uid] = None


def why_gone(cluster: Cluster, child: Child) -> Absence:
    """Why an item does not exist any more, by its last observation."""
    pod = cluster.capacity.pods.get(child.uid) if child.ref.kind == "Pod" else None
    if pod is None:
        return _DELETED
    if pod.disruption:
        words = DISRUPTIONS.get(pod.disruption, f"was disrupted ({pod.disruption})")
        return Absence(words, lost=True)
    # The cluster gives its reason to delete a pod in DisruptionTarget; else a client deleted it.
    if pod.node and not pod.terminating and not cluster.capacity.is_ready(pod.node):
        return Absence(f"was lost with node {pod.node}", lost=True)
    if pod.phase is PodPhase.FAILED:
        return Absence("failed and was deleted", lost=True)
    return _DELETED
