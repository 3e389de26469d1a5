"""Why pods of an item are not created: what the Events say, as their controllers often do not."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.commands import ReadWarnings
from mcad.core.events import WarningsRead
from mcad.core.state.bounds import WARNINGS_AFTER, WARNINGS_INTERVAL
from mcad.core.state.entry import Entry
from mcad.core.state.units import SECOND, Instant


def ask(cluster: Cluster, entry: Entry) -> Instant:
    """Have the Events read about items with missing pods; returns when that is due, 0 if never."""
    if not entry.missing:
        entry.refused.clear()
        return 0
    due = max(entry.missing_since + WARNINGS_AFTER, entry.refused_read + WARNINGS_INTERVAL)
    if cluster.now < due:
        return due
    if not cluster.objects.warning_reads.take(cluster.now):
        return cluster.now + SECOND
    entry.refused_read = cluster.now
    items, since = cluster.capacity.pods.lacking(entry.uid), entry.record.since
    for item in filter(entry.creation.created.__contains__, items):
        cluster.emit(ReadWarnings(entry.uid, entry.attempt, item, entry.ref(item), since))
    return cluster.now + WARNINGS_INTERVAL


def read(cluster: Cluster, entry: Entry, event: WarningsRead) -> None:
    """What the Events say of pods that an item lacks."""
    if event.attempt != entry.attempt:
        return
    if event.words:
        entry.refused[event.item] = event.words
        cluster.agenda.to_judge[entry.uid] = None
    else:
        entry.refused.pop(event.item, None)
