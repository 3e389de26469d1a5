"""Observed wrapped objects and pods, and whether their kinds can be watched."""

from __future__ import annotations

from mcad.core.attempts import attribution, leftovers, remains, teardown
from mcad.core.cluster import Cluster
from mcad.core.events import KindWatched
from mcad.core.running import completion, items
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import ENDED, Child, ItemState, Pod, Wanted
from mcad.core.state.records import replace

_MAY_SHOW = frozenset({Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING})
"""Phases in which pods of the present attempt come."""


def child_seen(cluster: Cluster, child: Child) -> None:
    """Take up a wrapped object that appeared or changed."""
    entry = cluster.entries.get(child.workload)
    if entry is None or entry.rebuilt:
        cluster.objects.put(child)
        return
    own = attribution.own_child(entry, child)
    if own is None:
        disown(cluster, entry, child)
        return
    cluster.objects.put(own)
    apply(cluster, entry, own)
    for pod in cluster.objects.unproven.below(child.uid):
        pod_seen(cluster, pod)


def disown(cluster: Cluster, entry: Entry, child: Child) -> None:
    """Disown an object that does not belong to its named AppWrapper, with its pods."""
    if child.uid not in cluster.objects.disowned:
        child_gone(cluster, child.uid)
    cluster.objects.disowned[child.uid] = child
    for pod in cluster.capacity.pods.of(entry.uid):
        if pod.root == child.uid:
            _take_pod(cluster, pod, is_own=False)


def look_at_disowned(cluster: Cluster, entry: Entry) -> None:
    """Look at disowned objects again: an attempt became known, and some may be its items."""
    for child in [one for one in cluster.objects.disowned.values() if one.workload == entry.uid]:
        if attribution.own_child(entry, child) is not None:
            del cluster.objects.disowned[child.uid]
            child_seen(cluster, child)


def disown_strangers(cluster: Cluster, entry: Entry) -> None:
    """Disown objects that were seen before their AppWrapper and are not its own."""
    for child in cluster.objects.of(entry):
        if attribution.own_child(entry, child) is None:
            disown(cluster, entry, child)
    for pod in cluster.capacity.pods.of(entry.uid):
        is_own = attribution.is_own_pod(cluster, pod)
        _take_pod(cluster, pod, is_own=is_own)
        if is_own:
            _learn(cluster, entry, pod)


def apply(cluster: Cluster, entry: Entry, child: Child) -> None:
    """Apply what an object says about its attempt, if that is the present one."""
    if child.attempt != entry.attempt or entry.phase is Phase.HELD:
        return
    if child.item not in entry.creation.created:
        entry.found(child.item)
    entry.creation.exists(child.item, child.uid)
    completion.hear(entry, child)
    _note_suspended(cluster, entry, child)
    for index, wanted in enumerate(child.wants):
        cluster.want(entry, child.item, index, _expected(child, wanted))
    cluster.agenda.to_judge[entry.uid] = None


def _note_suspended(cluster: Cluster, entry: Entry, child: Child) -> None:
    """Free the room of an item that a client suspended, or of a part of it, for the rest of the
    attempt. Pods that come after a resumption are surplus: they use whatever room is free."""
    if not child.suspended or entry.phase is not Phase.RUNNING:
        return
    suspended = {
        position
        for position, one in enumerate(entry.workload.sets)
        if one.item == child.item and child.wants[one.index : one.index + 1] == (Wanted(0),)
    }
    if not suspended <= set(entry.record.resumed):
        entry.amend(resumed=tuple(sorted(suspended.union(entry.record.resumed))))
        cluster.capacity.gangs.give_up_sets(entry.uid, suspended)


def _expected(child: Child, wanted: Wanted | None) -> Wanted | None:
    """The expected pods. Pods of an object that begins again come when its controller decides: none
    is missing now. An ended object expects none, though its controller may let some run on."""
    if wanted is None or child.state not in (ItemState.RETRYING, *ENDED):
        return wanted
    return Wanted(0, wanted.now + wanted.later if child.state is ItemState.RETRYING else 0)


def child_gone(cluster: Cluster, uid: str) -> None:
    """Forget a wrapped object that is gone: it wants no more pods, and its name is free."""
    cluster.objects.disowned.pop(uid, None)
    child = cluster.objects.drop(uid)
    if child is None:
        return
    cluster.look_again(cluster.waiting.for_name(child.ref))
    entry = cluster.entries.get(child.workload)
    if entry is None:
        return
    if child.attempt == entry.attempt:
        _item_gone(cluster, entry, child)
    cluster.agenda.to_judge[entry.uid] = None
    _something_gone(cluster, entry)


def _something_gone(cluster: Cluster, entry: Entry) -> None:
    """Check what is left after an object or pod of the AppWrapper is gone, or a pod has ended."""
    if cluster.objects.by_workload.get(entry.uid):
        return
    if entry.phase is Phase.GONE:
        if not remains.waits_for_pods(cluster, entry):
            remains.bury(cluster, entry)
    elif not cluster.capacity.pods.exist(entry.uid):
        teardown.last_one_gone(cluster, entry)


def _item_gone(cluster: Cluster, entry: Entry, child: Child) -> None:
    """Note a deleted item: this attempt does not create it again (P2)."""
    passed = entry.phase is not Phase.CREATING or child.item < entry.creation.cursor
    if passed and entry.creation.created.get(child.item) == child.uid:
        entry.creation.vanished(child.item, items.why_gone(cluster, child))
    wants_nothing(cluster, entry, child.item)


def wants_nothing(cluster: Cluster, entry: Entry, item: int) -> None:
    """Expect no pods of a missing item."""
    for one in entry.workload.sets:
        if one.item == item:
            cluster.want(entry, item, one.index, Wanted(0))


def kind_watched(cluster: Cluster, event: KindWatched) -> None:
    """Note whether a wrapped kind can be watched: it concerns AppWrappers that contain it (P11)."""
    key, unwatched = (event.group, event.resource), cluster.objects.unwatched
    if not event.watched:
        unwatched[key] = event.message
    elif unwatched.pop(key, None) is not None:
        cluster.look_again(list(cluster.waiting.for_kind))


def pod_seen(cluster: Cluster, pod: Pod) -> None:
    """Take up a pod that appeared or changed. It stays with its AppWrapper when its controller is
    gone; a pod with unknown controllers belongs to no AppWrapper."""
    was_own = pod.workload != "" and cluster.capacity.pods.owner_of(pod.uid) == pod.workload
    _take_pod(cluster, pod, is_own=was_own or attribution.is_own_pod(cluster, pod))


def _take_pod(cluster: Cluster, pod: Pod, *, is_own: bool) -> None:
    known = cluster.capacity.pods.get(pod.uid)
    before = known.workload if known is not None else ""
    if is_own:
        cluster.objects.unproven.drop(pod.uid)
    else:
        cluster.objects.unproven.put(pod)
        pod = replace(pod, workload="")
    cluster.capacity.pod_seen(pod)
    for entry in cluster.known((before, pod.workload)):
        _look_at(cluster, entry)
        if pod.workload != before:
            _learn(cluster, entry, pod)
        if entry.run.stage_since and _goes_on(known, pod):
            entry.begin_stage(cluster.now)
        if _lost_gates(known, pod):
            entry.run.ungated_at = cluster.now
        if entry.phase is Phase.GONE:
            _something_gone(cluster, entry)


def _learn(cluster: Cluster, entry: Entry, pod: Pod) -> None:
    """Learn from a pod at first sight what admission adds: later, the defaults of its namespace may
    differ. A pod shows nothing if it was resized, or if the spec was edited after the dispatch: its
    template may differ."""
    is_present = pod.workload == entry.uid and pod.attempt == entry.attempt and not pod.edited
    if is_present and entry.edited is None and not entry.rebuilt and entry.phase in _MAY_SHOW:
        cluster.injections.pod_seen(entry.workload, pod)


def _goes_on(known: Pod | None, pod: Pod) -> bool:
    """Whether a pod appeared, lost its gates, got its node, or became ready. A pod that was seen
    before its owners were known appears when they are known."""
    if known is None or known.workload != pod.workload or _lost_gates(known, pod):
        return True
    return bool(pod.node and not known.node) or (pod.ready and not known.ready)


def _lost_gates(known: Pod | None, pod: Pod) -> bool:
    """Whether the pod waits for its node only from now on: its gates may have gone while no
    dispatcher looked."""
    if known is None or known.workload != pod.workload:
        return pod.amended and not pod.gated
    return known.gated and not pod.gated


def _look_at(cluster: Cluster, entry: Entry) -> None:
    """Judge the AppWrapper after a change of its pods."""
    cluster.agenda.to_judge[entry.uid] = None
    if entry.rebuilt:
        leftovers.pods_changed(cluster, entry)


def pod_gone(cluster: Cluster, uid: str) -> None:
    """Forget a pod: it may have been the last one for which its AppWrapper waited."""
    cluster.objects.unproven.drop(uid)
    for entry in cluster.known((cluster.capacity.pod_gone(uid),)):
        _look_at(cluster, entry)
        _something_gone(cluster, entry)
