"""Why pods are not created or not started, where only Events say so.

Few controllers name in their status why they create no pod, and a pod whose volumes cannot be
mounted or whose sandbox cannot be made reports nothing but ContainerCreating.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.commands import ReadWarnings
from mcad.core.events import WarningsRead
from mcad.core.state.bounds import START_WARNINGS_AFTER, WARNINGS_AFTER, WARNINGS_INTERVAL
from mcad.core.state.entry import Entry
from mcad.core.state.model import ObjectRef, Pod, PodPhase, Stuck, StuckReason
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND, Instant


def ask(cluster: Cluster, entry: Entry) -> Instant:
    """Have the Events read about items with missing pods, or about a pod that does not start;
    returns when the next read is due, 0 if never."""
    if not entry.run.missing:
        entry.run.refused.clear()
    late = None if entry.run.missing else _not_started(cluster, entry)
    if late is not None:
        due = max(late.created, late.bound) + START_WARNINGS_AFTER
    elif entry.run.missing:
        due = entry.run.missing_since + WARNINGS_AFTER
    else:
        return 0
    due = max(due, entry.run.refused_read + WARNINGS_INTERVAL)
    if cluster.now < due:
        return due
    if not cluster.objects.warning_reads.take(cluster.now):
        return cluster.now + SECOND
    entry.run.refused_read = cluster.now
    _ask(cluster, entry, late)
    return cluster.now + WARNINGS_INTERVAL


def _ask(cluster: Cluster, entry: Entry, late: Pod | None) -> None:
    uid, attempt, since = entry.uid, entry.attempt, entry.record.since
    if late is not None:
        ref = ObjectRef("", "v1", "pods", "Pod", late.namespace, late.name)
        cluster.emit(ReadWarnings(uid, attempt, late.item, ref, since, late.uid))
        return
    for item in filter(entry.creation.created.__contains__, cluster.capacity.pods.lacking(uid)):
        cluster.emit(ReadWarnings(uid, attempt, item, entry.ref(item), since))


def _not_started(cluster: Cluster, entry: Entry) -> Pod | None:
    """The pod that has waited longest for its node to start it, without a reported reason."""
    idle = (pod for pod in cluster.capacity.pods.idle(entry.uid) if pod.stuck is None)
    return min(idle, key=lambda pod: max(pod.created, pod.bound), default=None)


def read(cluster: Cluster, entry: Entry, event: WarningsRead) -> None:
    """Take up the Events of pods that an item lacks, or of a pod that does not start."""
    if event.attempt != entry.attempt:
        return
    cluster.agenda.to_judge[entry.uid] = None
    if event.pod:
        pod = cluster.capacity.pods.get(event.pod)
        if pod is not None and event.words and pod.phase is PodPhase.PENDING:
            # Until the pod changes: then its own status counts again.
            why = Stuck(StuckReason.CONTAINER, event.words)
            cluster.capacity.pod_seen(replace(pod, stuck=pod.stuck or why))
    elif event.words:
        entry.run.refused[event.item] = event.words
    else:
        entry.run.refused.pop(event.item, None)
