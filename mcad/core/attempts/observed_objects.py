"""What is observed of wrapped objects and of pods, and whether their kinds can be seen at all."""

from __future__ import annotations

from mcad.core.attempts import attribution, leftovers, remains, teardown
from mcad.core.cluster import World
from mcad.core.events import KindWatched, PodSeen
from mcad.core.running import completion
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Child, Pod
from mcad.core.state.records import replace


def child_seen(world: World, child: Child) -> None:
    """A wrapped object is as it is."""
    entry = world.entries.get(child.workload)
    if entry is None or entry.rebuilt:
        world.put_child(child)
        return
    own = attribution.own_child(entry, child)
    if own is None:
        disown(world, entry, child)
        return
    world.put_child(own)
    apply(world, entry, own)
    for pod in world.unproven.below(child.uid):
        pod_seen(world, PodSeen(pod))


def disown(world: World, entry: Entry, child: Child) -> None:
    """It says that it is the AppWrapper's, and is not: nothing about it counts, nor do its pods."""
    if child.uid not in world.disowned:
        child_gone(world, child.uid)
    world.disowned[child.uid] = child
    for pod in world.capacity.pods.of(entry.uid):
        if pod.root == child.uid:
            _take_pod(world, pod, is_own=False)


def look_at_disowned(world: World, entry: Entry) -> None:
    """Another leader's attempt became known: some of them may be its items."""
    for child in [one for one in world.disowned.values() if one.workload == entry.uid]:
        if attribution.own_child(entry, child) is not None:
            del world.disowned[child.uid]
            child_seen(world, child)


def disown_strangers(world: World, entry: Entry) -> None:
    """The AppWrapper is known now: of what was seen before it, what is not its own is disowned."""
    for child in world.children_for(entry):
        if attribution.own_child(entry, child) is None:
            disown(world, entry, child)
    for pod in world.capacity.pods.of(entry.uid):
        _take_pod(world, pod, is_own=attribution.is_own_pod(world, pod))


def apply(world: World, entry: Entry, child: Child) -> None:
    """What a wrapped object tells of its attempt, if that is the present one."""
    if child.attempt != entry.attempt:
        return
    if child.item not in entry.creation.created:
        entry.found(child.item)
    entry.creation.created[child.item] = child.uid
    entry.creation.absent.discard(child.item)
    completion.hear(entry, child)
    for index, want in enumerate(child.wants):
        world.want(entry, child.item, index, want)
    world.to_judge[entry.uid] = None


def child_gone(world: World, uid: str) -> None:
    """A wrapped object no longer exists: it wants no more pods, and its name is free."""
    world.disowned.pop(uid, None)
    child = world.drop_child(uid)
    if child is None:
        return
    world.look_again(world.names.waiters(child.ref))
    entry = world.entries.get(child.workload)
    if entry is None:
        return
    if child.attempt == entry.attempt:
        _item_gone(world, entry, child)
    world.to_judge[entry.uid] = None
    _something_gone(world, entry)


def _something_gone(world: World, entry: Entry) -> None:
    """A child or pod of the AppWrapper is observed absent: that may have been the last one."""
    if world.children_of.get(entry.uid):
        return
    if entry.phase is Phase.GONE:
        remains.bury(world, entry)
    elif not world.capacity.pods.exist(entry.uid):
        teardown.last_one_gone(world, entry)


def _item_gone(world: World, entry: Entry, child: Child) -> None:
    """An item is deleted, by this dispatcher or not: it is not created again in this attempt
    (P2)."""
    passed = entry.phase is not Phase.CREATING or child.item < entry.creation.cursor
    if passed and entry.creation.created.get(child.item) == child.uid:
        del entry.creation.created[child.item]
        entry.creation.absent.add(child.item)
    wants_nothing(world, entry, child.item)


def wants_nothing(world: World, entry: Entry, item: int) -> None:
    """An item that does not exist makes no pods."""
    for one in entry.workload.sets:
        if one.item == item:
            world.want(entry, item, one.index, 0)


def kind_watched(world: World, event: KindWatched) -> None:
    """A wrapped kind can be seen, or cannot: that concerns only those that contain it (P11)."""
    key = (event.group, event.resource)
    if not event.watched:
        world.unwatched[key] = event.message
        return
    if world.unwatched.pop(key, None) is not None:
        world.look_again(list(world.waiting_for_kind))


def pod_seen(world: World, event: PodSeen) -> None:
    """A pod is as it is. One that was its AppWrapper's stays that when the object above it is gone;
    one with unknown controllers belongs to none."""
    pod = event.pod
    was_own = pod.workload != "" and world.capacity.pods.owner_of(pod.uid) == pod.workload
    _take_pod(world, pod, is_own=was_own or attribution.is_own_pod(world, pod))


def _take_pod(world: World, pod: Pod, *, is_own: bool) -> None:
    before = world.capacity.pods.owner_of(pod.uid)
    if is_own:
        world.unproven.drop(pod.uid)
    else:
        world.unproven.put(pod)
        pod = replace(pod, workload="")
    world.capacity.pod_seen(pod)
    for uid in (before, pod.workload):
        _look_at(world, world.entries.get(uid))


def _look_at(world: World, entry: Entry | None) -> None:
    """Something about its pods is new."""
    if entry is not None:
        world.to_judge[entry.uid] = None
        if entry.rebuilt:
            leftovers.pods_changed(world, entry)


def pod_gone(world: World, uid: str) -> None:
    """A pod no longer exists: it may have been the last one that its AppWrapper waited for."""
    world.unproven.drop(uid)
    entry = world.entries.get(world.capacity.pod_gone(uid))
    _look_at(world, entry)
    if entry is not None:
        _something_gone(world, entry)
