"""The sweep: objects of ours that no recorded attempt accounts for are deleted (protocol P7)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from mcad.core.cluster import Cluster
from mcad.core.commands import DeleteStray
from mcad.core.events import StrayRefused
from mcad.core.state.bounds import REFUSED_WRITE_RETRY, RETRY_MAX, SWEPT_PER_PASS, is_denial
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import LEFT_ALONE, RETAINING, TEARING_DOWN, Phase
from mcad.core.state.model import Cascade, Child, Remnant
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Instant

NEVER: Instant = 1 << 62
"""Later than any instant: the deletion was requested, and the answer is open."""


def sweep(cluster: Cluster) -> None:
    """Delete objects of ours that no recorded attempt accounts for (P7)."""
    later: dict[str, None] = {}
    unswept = iter(cluster.objects.unswept)
    for uid in islice(unswept, SWEPT_PER_PASS):
        child = cluster.objects.by_uid[uid]
        cluster.errors.about = child.workload
        entry = cluster.entries.get(child.workload)
        if entry is None or not _is_stray(entry, child, cluster.now):
            continue
        again = cluster.objects.swept.get(uid, 0)
        if cluster.now >= again:
            cluster.objects.swept[uid] = NEVER
            cluster.emit(DeleteStray(child.workload, child.ref, uid))
        elif again != NEVER:
            later[uid] = None
    rest = dict.fromkeys(unswept)
    if any(cluster.objects.swept.get(uid, 0) <= cluster.now for uid in rest):
        cluster.agenda.carry_over()
    cluster.objects.unswept = rest | later  # objects that were not looked at come first


def found_of_deleted(cluster: Cluster, entry: Entry, found: Sequence[Remnant]) -> None:
    """Sweep objects that a live read found and no watch has shown; all others are gone."""
    if not found:
        entry.creation.created.clear()
    for one in found:
        if one.uid not in cluster.objects.by_uid and not one.terminating and not is_spared(entry):
            cluster.emit(DeleteStray(entry.uid, one.ref, one.uid))


def judge_anew(cluster: Cluster, entry: Entry) -> None:
    """Let the next sweep judge all objects of the AppWrapper again."""
    for child in cluster.objects.of(entry):
        cluster.objects.swept.pop(child.uid, None)
        cluster.objects.unswept[child.uid] = None


def refused(cluster: Cluster, event: StrayRefused) -> None:
    """Retry later the deletion of a stray object that failed."""
    if event.object_uid not in cluster.objects.by_uid:
        return
    slow = is_denial(event.answer)
    pause = max(event.answer.retry_after, REFUSED_WRITE_RETRY if slow else RETRY_MAX)
    cluster.objects.swept[event.object_uid] = cluster.now + pause
    cluster.objects.unswept[event.object_uid] = None
    cluster.agenda.wake_at(cluster.now + pause)


def is_spared(entry: Entry) -> bool:
    """Whether the objects of a deleted AppWrapper stay, because its deletion asked for that."""
    return entry.workload.cascade is Cascade.ORPHAN


def expire(cluster: Cluster, entry: Entry) -> None:
    """Have items deleted whose time to live is over, once their end is stored."""
    due = 0
    for child in cluster.objects.of(entry):
        end = _lives_until(entry, child)
        if end and (entry.writes.flying is not None or entry.writes.dirty):
            end = max(end, cluster.now + SECOND)
        if cluster.now < end:
            due = min(due or end, end)
        elif end:
            cluster.objects.unswept[child.uid] = None
    cluster.agenda.set_timer(entry, Timer.ITEM_TTL, due)


def _lives_until(entry: Entry, child: Child) -> Instant:
    """When the time to live of an item is over whose end is on record, 0 without one. The item's
    controller would not wait for the record, so the dispatcher deletes it instead."""
    if child.attempt != entry.attempt or not 0 <= child.item < len(entry.workload.items):
        return 0
    ttl, ends = entry.workload.items[child.item].ttl, entry.record.finished
    is_on_record = entry.phase is Phase.COMPLETED or (
        entry.phase is Phase.RUNNING and child.item in ends
    )
    return child.ended + ttl if ttl is not None and child.ended and is_on_record else 0


def _is_stray(entry: Entry, child: Child, now: Instant) -> bool:
    if not child.labelled or child.terminating or entry.phase in LEFT_ALONE:
        return False
    if 0 < _lives_until(entry, child) <= now:
        return True
    if entry.phase is Phase.GONE:
        return not is_spared(entry)
    if entry.workload.deleting and entry.workload.cascade is Cascade.FOREGROUND:
        return True
    if entry.phase in TEARING_DOWN and child.attempt == entry.attempt:
        # The inventory is being deleted; an object that is not part of that came later.
        return entry.phase in (Phase.DELETING, Phase.VERIFYING)
    return child.attempt != entry.attempt or entry.phase not in RETAINING
