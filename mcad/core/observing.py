"""What observations change: first sight, edits, children, pods, completion, recovery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcad.core import attempts, teardown
from mcad.core.ceilings import cut
from mcad.core.commands import Urgency
from mcad.core.entry import Entry
from mcad.core.events import AppWrapperSeen, KindWatched, PodSeen
from mcad.core.lifecycle import Phase, Signal
from mcad.core.model import (
    SECOND,
    Child,
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Duration,
    Instant,
    Next,
    Persisted,
    PodCounts,
    Workload,
)
from mcad.core.reasons import (
    PODS_COMPLETED,
    SOME_ITEMS_COMPLETED,
    ConditionType,
    EventReason,
    State,
    TeardownReason,
)
from mcad.core.world import World, name_key

LATE_ARRIVAL: Duration = SECOND * 9 // 10
"""What arrives after this much of its second or later stands here, each a microsecond behind the
one before: they must not run over into the next second, where their order would end."""

_FINISHED = frozenset({"complete", "completed", "succeeded"})
"""Conditions and pod phases that mean success whatever the kind (v1beta2 completion)."""

_RESTORED = {
    DispatchPhase.CREATING: Phase.CREATING,
    DispatchPhase.DISPATCHED: Phase.RUNNING,
    DispatchPhase.UNDEPLOYING: Phase.DELETING,
    DispatchPhase.RELEASED: Phase.WAITING,
}


# -- AppWrappers -----------------------------------------------------------------------------


def appwrapper_seen(world: World, event: AppWrapperSeen) -> None:
    """First sight, an edit, or somebody else's write."""
    if not event.workload.managed:
        return
    work = cut(event.workload, world.ceilings)
    entry = world.entries.get(work.uid)
    if entry is None:
        _first_sight(world, work, listed=event.listed)
    elif entry.phase is not Phase.GONE:
        _changed(world, entry, work)


def _first_sight(world: World, work: Workload, *, listed: bool) -> None:
    saved = work.persisted
    if saved is not None and saved.first_seen:
        first_seen = saved.first_seen
        if first_seen // SECOND == work.created // SECOND:
            world.last_seen = max(world.last_seen, first_seen)
    else:
        first_seen = _stamp(world, work.created, listed=listed)
    entry = Entry(replace(work, persisted=None), first_seen)
    world.entries[work.uid] = entry
    _warn(world, entry, work.warnings if saved is None else ())
    if saved is not None:
        _restore(world, entry, saved)
    if entry.phase is Phase.WAITING:
        _enter_queue(world, entry)
    elif entry.dispatch is not None and entry.phase not in (Phase.COMPLETED, Phase.FAILED):
        world.to_recover[entry.uid] = None


def _warn(world: World, entry: Entry, warnings: Iterable[str]) -> None:
    for warning in warnings:
        world.announce(entry, EventReason.MANIFEST, warning, action="Parse", warning=True)


def _stamp(world: World, created: Instant, *, listed: bool) -> Instant:
    """First-seen time: creationTimestamp, which has seconds only, refined by arrival.

    The controller sorts an initial list by creationTimestamp and, within a second, puts those first
    that are on record: there a strict succession within the second is all that is needed. What is
    not on record is not new: its first status may have been lost (design section 4, *Order*).
    """
    offset = 0 if listed else min(max(world.now - created, 0), LATE_ARRIVAL)
    stamp = created + offset
    if stamp <= world.last_seen and stamp // SECOND == world.last_seen // SECOND:
        stamp = world.last_seen + 1
    world.last_seen = max(world.last_seen, stamp)
    return stamp


def _enter_queue(world: World, entry: Entry) -> None:
    seen = entry.first_seen
    if ConditionType.INIT not in entry.conditions:
        entry.set_condition(ConditionType.INIT, seen)
        entry.set_condition(ConditionType.QUEUEING, seen, reason="AwaitingHeadOfLine")
    world.line_up(entry)


def _restore(world: World, entry: Entry, saved: Persisted) -> None:
    entry.conditions = {condition.type: condition for condition in saved.conditions}
    entry.first_dispatch, entry.requeueings = saved.first_dispatch, saved.requeueings
    entry.dispatch = saved.dispatch
    entry.restored = True
    if saved.dispatch is not None:
        entry.phase = _restored_phase(saved.dispatch, saved.state)
        return
    if saved.state == State.COMPLETED:
        entry.phase = Phase.COMPLETED
    elif saved.state == State.FAILED:
        entry.phase = Phase.FAILED
    elif saved.foreign or saved.state in (State.RUNNING, State.RUNNING_HOLD_COMPLETION):
        entry.phase = Phase.FOREIGN
        note = "Dispatched by another controller: it is left alone, its pods count."
        world.announce(entry, EventReason.LEFT_ALONE, note, action="Adopt", warning=True)


def _restored_phase(record: DispatchRecord, state: str) -> Phase:
    if record.phase is DispatchPhase.DISPATCHED and state == State.COMPLETED:
        return Phase.COMPLETED
    if record.phase is DispatchPhase.RELEASED and record.next is Next.FAILED:
        return Phase.FAILED
    return _RESTORED[record.phase]


def _changed(world: World, entry: Entry, work: Workload) -> None:
    saved, work, old = work.persisted, replace(work, persisted=None), entry.workload
    _warn(world, entry, (one for one in work.warnings if one not in old.warnings))
    if saved is not None and _is_news(entry, saved):
        entry.written = None
        world.to_settle[entry.uid] = None
    if entry.phase is not Phase.WAITING:
        entry.workload = work
        _changed_after_intent(world, entry, old)
    elif work != old:
        world.leave_line(entry)  # under the record that it was added with
        entry.workload, entry.told, entry.told_at = work, None, 0
        world.line_up(entry)
    if saved is not None and saved.dispatch is not None:
        _intent_found(world, entry, saved.dispatch)


def _is_news(entry: Entry, saved: Persisted) -> bool:
    return entry.flying is None and saved.dispatch != entry.dispatch


def _changed_after_intent(world: World, entry: Entry, old: Workload) -> None:
    work = entry.workload
    if work.deleting and not old.deleting:
        world.capacity.freeze(entry.uid)
        world.to_settle[entry.uid] = None
    elif work.suspended and not old.suspended and entry.phase is Phase.RUNNING:
        teardown.take_back(world, entry, TeardownReason.SUSPENDED, "spec.suspend is true.")
    elif work.generation != old.generation:
        world.to_settle[entry.uid] = None


def _intent_found(world: World, entry: Entry, record: DispatchRecord) -> None:
    """Another leader's intent appeared after our barrier: honour it if it fits (P12)."""
    live = record.phase in (DispatchPhase.CREATING, DispatchPhase.DISPATCHED)
    if entry.phase not in (Phase.WAITING, Phase.INTENDING) or not live:
        return
    known = entry.superseded if entry.phase is Phase.INTENDING else entry.dispatch
    if record == entry.dispatch or (known is not None and record.attempt <= known.attempt):
        return
    world.capacity.release(entry.uid)
    world.leave_line(entry)
    entry.flying = None
    entry.dispatch = record
    shape = world.capacity.shape(entry.workload.sets)
    fits = world.capacity.reserve(entry.uid, record.attempt, shape, entry.workload.sets) is None
    if not fits:
        world.capacity.adopt(entry.uid, record.attempt, shape, entry.workload.sets)
    entry.move(Signal.INTENT_FOUND, world.now)
    if fits:
        world.to_recover[entry.uid] = None
    else:
        entry.cursor = len(record.inventory)  # whatever was created is deleted
        note = f"Attempt {record.attempt} of epoch {record.epoch} does not fit any more."
        teardown.take_back(world, entry, TeardownReason.SUPERSEDED, note)


def appwrapper_gone(world: World, uid: str) -> None:
    """The object is deleted."""
    entry = world.entries.get(uid)
    if entry is not None and entry.phase is not Phase.GONE:
        teardown.object_gone(world, entry)


# -- recovery --------------------------------------------------------------------------------


def recover(world: World) -> None:
    """Take up what a predecessor began: reservations first, oldest dispatch first (P1, P11)."""
    begun = [world.entries[uid] for uid in world.to_recover if uid in world.entries]
    world.to_recover.clear()
    begun.sort(key=lambda e: (e.dispatch.since if e.dispatch else 0, e.uid))
    for entry in begun:
        _reserve_again(world, entry)
    for entry in begun:
        _resume(world, entry)


def _reserve_again(world: World, entry: Entry) -> None:
    if not world.capacity.holds(entry.uid):
        shape = world.capacity.shape(entry.workload.sets)
        world.capacity.adopt(entry.uid, entry.attempt, shape, entry.workload.sets)
    for child in world.children_for(entry):
        _apply_child(world, entry, child)
    if entry.phase is Phase.DELETING or entry.workload.deleting:
        world.capacity.freeze(entry.uid)


def _resume(world: World, entry: Entry) -> None:
    entry.step_since = world.now
    if entry.phase is Phase.CREATING:
        # An item before the last one found was deleted by somebody: not created again (P2).
        entry.cursor = max(entry.created, default=-1) + 1
        attempts.proceed(world, entry)
    elif entry.phase is Phase.DELETING and entry.dispatch is not None:
        entry.cursor = len(entry.dispatch.inventory)
        teardown.delete_all(world, entry)
    elif entry.phase is Phase.RUNNING and entry.dispatch is not None:
        entry.cursor = len(entry.dispatch.inventory)  # all exist, for a teardown to come
        elapsed = world.now - entry.dispatch.confirmed
        world.wake_in(entry, max(0, world.settings.reservation_timeout - elapsed))
        world.to_judge[entry.uid] = None


# -- children and pods -----------------------------------------------------------------------


def child_seen(world: World, child: Child) -> None:
    """A wrapped object is as it is."""
    world.put_child(child)
    entry = world.entries.get(child.workload)
    if entry is not None:
        _apply_child(world, entry, child)


def _apply_child(world: World, entry: Entry, child: Child) -> None:
    if child.attempt != entry.attempt:
        return
    entry.created[child.item] = child.uid
    for index, want in enumerate(child.wants):
        world.capacity.want(entry.uid, child.item, index, want)
    if 0 <= child.item < len(entry.workload.items):
        if child.met.intersection(entry.workload.items[child.item].completion):
            entry.finished.add(child.item)
        world.to_judge[entry.uid] = None


def child_gone(world: World, uid: str) -> None:
    """A wrapped object no longer exists: it wants no more pods, and its name is free."""
    child = world.drop_child(uid)
    if child is None:
        return
    for waiter in world.waiting_for_name.pop(name_key(child.ref), {}):
        _look_again(world, waiter)
    entry = world.entries.get(child.workload)
    if entry is None:
        return
    if child.attempt == entry.attempt:
        _item_gone(world, entry, child)
    world.to_judge[entry.uid] = None
    teardown.something_gone(world, entry)


def _item_gone(world: World, entry: Entry, child: Child) -> None:
    """An item is deleted by somebody, or by us: it is not created again in this attempt (P2)."""
    passed = entry.phase is not Phase.CREATING or child.item < entry.cursor
    if passed and entry.created.get(child.item) == child.uid:
        del entry.created[child.item]
    for index in range(len(child.wants)):
        world.capacity.want(entry.uid, child.item, index, 0)


def _look_again(world: World, uid: str) -> None:
    entry = world.entries.get(uid)
    if entry is not None and entry.phase is Phase.WAITING and entry.hold is not None:
        world.line_up(entry)


def kind_watched(world: World, event: KindWatched) -> None:
    """A wrapped kind can be seen, or cannot: that concerns only those who contain it (P11)."""
    key = (event.group, event.resource)
    if not event.watched:
        world.unwatched[key] = event.message
        return
    if world.unwatched.pop(key, None) is not None:
        for uid in list(world.waiting_for_kind):
            _look_again(world, uid)


def pod_seen(world: World, event: PodSeen) -> None:
    """A pod is as it is."""
    world.capacity.pod_seen(event.pod)
    if event.pod.workload in world.entries:
        world.to_judge[event.pod.workload] = None


# -- completion ------------------------------------------------------------------------------


def judge(world: World) -> None:
    """Complete what is finished, and take back what runs although it is suspended.

    The spec counts, not its change: that may have come during the creation, or before a restart.
    """
    for uid in world.to_judge:
        entry = world.entries.get(uid)
        if entry is None or entry.phase is not Phase.RUNNING or entry.workload.deleting:
            continue
        _judge_one(world, entry)
        if entry.phase is Phase.RUNNING and entry.workload.suspended:
            teardown.take_back(world, entry, TeardownReason.SUSPENDED, "spec.suspend is true.")
    world.to_judge.clear()


def _judge_one(world: World, entry: Entry) -> None:
    pods = world.capacity.pod_counts(entry.uid)
    busy = bool(pods.running or pods.pending)
    if entry.workload.dialect is Dialect.V1BETA2:
        if not busy and _succeeded(world, entry, pods):
            _complete(world, entry)
        return
    flagged = [i for i, item in enumerate(entry.workload.items) if item.completion]
    if not flagged or not entry.finished.issuperset(flagged):
        return
    if not busy:
        _complete(world, entry)
    elif ConditionType.RUNNING_HOLD_COMPLETION not in entry.conditions:
        entry.set_condition(
            ConditionType.RUNNING_HOLD_COMPLETION, world.now, reason=SOME_ITEMS_COMPLETED
        )
        world.settle(entry)


def _succeeded(world: World, entry: Entry, pods: PodCounts) -> bool:
    """v1beta2: every item with pods says that it succeeded, or all declared pods did.

    Without declared pods nothing can succeed; upstream calls that an instant success.
    """
    with_pods = {s.item for s in entry.workload.sets if s.replicas or s.per_node}
    said = {c.item for c in world.children_for(entry) if c.met & _FINISHED}
    if not with_pods or with_pods <= said:
        return bool(with_pods)
    declared = sum(s.replicas for s in entry.workload.sets)
    return not pods.failed and pods.succeeded >= declared


def _complete(world: World, entry: Entry) -> None:
    now = world.now
    entry.unset_condition(ConditionType.RUNNING_HOLD_COMPLETION, now, reason=PODS_COMPLETED)
    entry.set_condition(ConditionType.COMPLETED, now, reason=PODS_COMPLETED)
    world.capacity.release(entry.uid)
    entry.move(Signal.COMPLETE, now)
    world.settle(entry, Urgency.DISPATCH)
    world.announce(entry, EventReason.COMPLETED, "All items are finished.", action="Complete")
