"""What keeps the pods of a running AppWrapper from running, in the words of other components.

A reader gets the present figures. The condition ``Stalled`` and an Event report a stall when it has
lasted for a while, and a stall of the same kind again at most once per ``STALL_INTERVAL``:
kube-scheduler's words contain figures of the whole cluster, which change all the time. The
condition records the report, so a restart does not repeat it.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.running import stage
from mcad.core.state.bounds import (
    POD_COUNTS_INTERVAL,
    STALL_AFTER,
    STALL_INTERVAL,
    STALL_NEWS,
    STALL_OVER,
    STARTED_AFTER,
)
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import ENDED, Child, Condition, ItemState, Pod
from mcad.core.state.reasons import (
    PODS_MISSING,
    PODS_STARTING,
    RETRYING,
    ConditionType,
    EventReason,
    some_of,
)
from mcad.core.state.stall import Stall, no_node
from mcad.core.state.units import Instant

# -- stalls --------------------------------------------------------------------------------------


def look(cluster: Cluster, entry: Entry) -> Stall | None:
    """The most important stall, None if all pods run that should run."""
    if entry.phase is not Phase.RUNNING or entry.workload.deleting:
        return None
    counts, children = cluster.capacity.pods.counts(entry.uid), cluster.objects.of(entry)
    live = cluster.capacity.pods.live(entry.uid) if counts.pending or counts.stuck else []
    found = _refused(entry, children) or _stuck(entry, live) or unscheduled(cluster, entry)
    found = found or _of_items(cluster, entry, children) or _gated(entry, live)
    if found is None and entry.run.missing:
        what = f"{_pods(entry.run.missing)} not created yet"
        found = Stall(PODS_MISSING, what, since=entry.run.missing_since)
    if found is None and live and counts.running == counts.leaving:
        unseen = sum(not pod.node for pod in live)
        what = f"{_pods(unseen)} not looked at by kube-scheduler" if unseen else ""
        what = what or f"{_pods(len(live))} starting"
        found = Stall(PODS_STARTING, what, since=_oldest(entry, live))
    return found


def _refused(entry: Entry, children: list[Child]) -> Stall | None:
    """Pods that a controller cannot create."""
    if not entry.run.missing:
        return None
    making = (ItemState.PROGRESSING, ItemState.UNKNOWN)
    said = [(str(one.ref), one.words) for one in children if one.words and one.state in making]
    said += [(str(entry.ref(item)), words) for item, words in sorted(entry.run.refused.items())]
    if not said:
        return None
    what = f"Pods of {said[0][0]} cannot be created"
    return Stall(EventReason.PODS_REFUSED, what, said[0][1], entry.run.missing_since, lasts=True)


def _stuck(entry: Entry, live: list[Pod]) -> Stall | None:
    """Containers that kubelet cannot start or keep running."""
    stuck = [(pod, pod.stuck) for pod in live if pod.stuck is not None]
    if not stuck:
        return None
    alike = [pod for pod, why in stuck if why.reason is stuck[0][1].reason]
    what = f"{_pods(len(alike))} unable to run: {some_of([pod.name for pod in alike])}"
    words, since = stuck[0][1].message, _oldest(entry, alike)
    return Stall(EventReason(str(stuck[0][1].reason)), what, words, since, lasts=True)


def unscheduled(cluster: Cluster, entry: Entry) -> Stall | None:
    """Pods that kube-scheduler has refused so far."""
    if entry.phase is not Phase.RUNNING or entry.workload.deleting:
        return None
    pods = cluster.capacity.pods
    live = pods.live(entry.uid) if pods.counts(entry.uid).pending else []
    refused = [pod for pod in live if pod.unscheduled is not None and not pod.node]
    if not refused:
        return None
    what = f"{len(refused)} pod{'s' * (len(refused) != 1)} without a node"
    since = _oldest(entry, refused)
    until = entry.run.ends_at or stage.placement_until(cluster, entry)  # a copy judges nothing
    words = no_node(refused, cluster.capacity.gangs.left_with_room(entry.uid))
    return Stall(EventReason.UNSCHEDULED, what, words, since, until)


def _of_items(cluster: Cluster, entry: Entry, children: list[Child]) -> Stall | None:
    """Items that are suspended, failed or begun again, or over while their pods run."""
    for one in sorted(children, key=lambda child: child.item):
        if one.state is ItemState.SUSPENDED or _has_suspended_pods(entry, one):
            what = f"{one.ref} is suspended"
            return Stall(EventReason.ITEM_SUSPENDED, what, one.suspended, lasts=True)
        if one.state is ItemState.RETRYING:
            return Stall(RETRYING, f"{one.ref} failed and is begun again", one.words)
        if one.state is ItemState.FAILED and one.item not in entry.run.finished:
            what = f"{one.ref} has failed"
            return Stall(EventReason.ITEM_FAILED, what, one.words, one.ended, lasts=True)
        if one.state in ENDED and any(wanted is not None and wanted.now for wanted in one.wants):
            live = cluster.capacity.pods.live(entry.uid)
            names = [pod.name for pod in live if pod.root == one.uid]
            if names:
                what = f"{one.ref} is over and its controller lets pods run on: {some_of(names)}"
                return Stall(EventReason.PODS_REMAIN, what, since=one.ended, lasts=True)
    return None


def _has_suspended_pods(entry: Entry, child: Child) -> bool:
    """Whether a suspended part of the object has pods by the manifest."""
    sets = (entry.workload.sets[position] for position in entry.record.resumed)
    return bool(child.suspended) and any(one.item == child.item and one.replicas for one in sets)


def _gated(entry: Entry, live: list[Pod]) -> Stall | None:
    gated = [pod for pod in live if pod.gated]
    if not gated:
        return None
    what = f"{_pods(len(gated))} held by scheduling gates: {some_of([pod.name for pod in gated])}"
    return Stall(EventReason.SCHEDULING_GATED, what, since=_oldest(entry, gated))


def _pods(count: int) -> str:
    return "1 pod is" if count == 1 else f"{count} pods are"


def _oldest(entry: Entry, pods: list[Pod]) -> Instant:
    return min(stage.waits_since(entry, pod) for pod in pods)


# -- reports -------------------------------------------------------------------------------------


def report(cluster: Cluster, entry: Entry) -> Instant:
    """Report in the condition and by an Event, unless the last report is recent or the same;
    returns when a report is due."""
    shown, found = entry.conditions.get(ConditionType.STALLED), look(cluster, entry)
    if found is None:
        return _clear(cluster, entry, shown)
    entry.run.calm_since = 0
    is_told = shown is not None and shown.reason == found.reason and found.says(shown.message)
    due = 0 if is_told else _due(entry, shown, found)
    if not 0 < due <= cluster.now:
        return due
    _report(cluster, entry, shown, found)
    return 0


def _clear(cluster: Cluster, entry: Entry, shown: Condition | None) -> Instant:
    """Report, along with the pod counts, that all pods run."""
    if shown is None:
        return 0
    entry.run.calm_since = entry.run.calm_since or cluster.now
    due = max(entry.run.calm_since + STALL_OVER, entry.counted_at + POD_COUNTS_INTERVAL)
    if cluster.now < due:
        return due
    entry.drop_condition(ConditionType.STALLED)
    return 0


def _due(entry: Entry, shown: Condition | None, found: Stall) -> Instant:
    patience = STARTED_AFTER if found.reason in (PODS_MISSING, PODS_STARTING) else STALL_AFTER
    begun = found.since or entry.run.stage_since
    due = entry.record.confirmed if found.lasts else begun + patience
    if shown is None:
        return due
    is_same = shown.reason == found.reason
    return max(due, shown.updated + (STALL_INTERVAL if is_same else STALL_NEWS))


def _report(cluster: Cluster, entry: Entry, shown: Condition | None, found: Stall) -> None:
    kind, reason = ConditionType.STALLED, str(found.reason)
    is_known = shown is not None and shown.reason == reason and found.has_words_of(shown.message)
    entry.set_condition(kind, cluster.now, reason=reason, message=found.explain())
    if not is_known and isinstance(found.reason, EventReason):
        cluster.announce(
            entry, found.reason, found.explain(cluster.now), action="Run", warning=True
        )
