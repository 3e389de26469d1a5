"""Taking an attempt back, the mirror image of dispatching it (protocol P4), and the sweep (P7)."""

from __future__ import annotations

from dataclasses import replace

from mcad.core.commands import DeleteItem, DeleteStray, LookForRemains, Urgency
from mcad.core.entry import Entry, Hold
from mcad.core.events import (
    Answer,
    DeletionRefused,
    ItemDeleted,
    LookFailed,
    Remaining,
    StrayRefused,
)
from mcad.core.lifecycle import RETAINING, TEARING_DOWN, Phase, Signal
from mcad.core.model import Child, DispatchPhase, Instant, Next
from mcad.core.pacing import (
    CREATION_BACKOFF_BASE,
    CREATION_BACKOFF_MAX,
    DENIALS_BORNE,
    LOOK_INTERVAL,
    REFUSED_WRITE_RETRY,
    RETRY_BASE,
    RETRY_MAX,
    TOMBSTONE_GRACE,
    TOMBSTONE_LOOK,
    backoff,
)
from mcad.core.reasons import (
    AWAITING_HEAD_OF_LINE,
    ITEM_CREATION_FAILURE,
    ConditionType,
    EventReason,
    HoldReason,
    TeardownReason,
)
from mcad.core.timers import Timer
from mcad.core.world import World

_PAUSED: dict[str, HoldReason] = {
    TeardownReason.ITEM_CREATION_FAILURE: HoldReason.CREATION_BACKOFF,
    TeardownReason.WAITING_FOR_NAME: HoldReason.WAITING_FOR_NAME,
    TeardownReason.NOT_PLACED: HoldReason.PLACEMENT_BACKOFF,
}
"""After these nothing tells for sure when another attempt is worth while: there is a pause."""

NEVER: Instant = 1 << 62
"""Later than any instant: its deletion was asked for, and the answer is open."""


def take_back(
    world: World,
    entry: Entry,
    reason: TeardownReason,
    message: str,
    then: Next = Next.QUEUED,
) -> None:
    """Record that the attempt is being taken back; its reservation is frozen until it is gone."""
    if entry.dispatch is None:
        return
    world.capacity.freeze(entry.uid)
    entry.dispatch = replace(
        entry.dispatch,
        phase=DispatchPhase.UNDEPLOYING,
        reason=reason,
        message=message,
        next=then,
    )
    entry.unset_condition(ConditionType.DISPATCHED, world.now, reason=reason, message=message)
    entry.unset_condition(ConditionType.RUNNING_HOLD_COMPLETION, world.now, reason=reason)
    entry.move(Signal.TAKE_BACK, world.now)
    world.settle(entry, Urgency.DISPATCH)


def teardown_written(world: World, entry: Entry) -> None:
    """The teardown is persisted: delete everything that was or may have been created."""
    entry.move(Signal.TEARDOWN_WRITTEN, world.now)
    delete_all(world, entry)


def delete_all(world: World, entry: Entry) -> None:
    """Ask for the deletion of every inventoried object up to the one whose create may be open."""
    if entry.dispatch is None:
        return
    entry.undeleted = set(range(min(entry.cursor + 1, len(entry.dispatch.inventory))))
    for item in sorted(entry.undeleted):
        _delete(world, entry, item)
    if not entry.undeleted:
        _all_deleted(world, entry)


def late_item(world: World, entry: Entry, item: int) -> None:
    """A create whose outcome was open when the teardown began did succeed."""
    if entry.phase in (Phase.DELETING, Phase.VERIFYING):
        _delete(world, entry, item)


def _delete(world: World, entry: Entry, item: int) -> None:
    if entry.dispatch is None:
        return
    ref = entry.dispatch.inventory[item]
    known = entry.created.get(item) or _observed_uid(world, entry, item)
    if known:
        world.swept[known] = NEVER
    world.emit(DeleteItem(entry.uid, entry.attempt, item, ref, known))


def _observed_uid(world: World, entry: Entry, item: int) -> str:
    for child in world.children_for(entry):
        if child.item == item and child.attempt == entry.attempt:
            return child.uid
    return ""


def item_deleted(world: World, entry: Entry, event: ItemDeleted) -> None:
    """One deletion is accepted."""
    if event.attempt != entry.attempt or entry.phase is not Phase.DELETING:
        return
    entry.undeleted.discard(event.item)
    if not entry.undeleted:
        _all_deleted(world, entry)


def deletion_refused(world: World, entry: Entry, event: DeletionRefused) -> None:
    """A deletion failed: repeat it; without the right to delete, say so and repeat it slowly."""
    if event.attempt != entry.attempt or entry.phase is not Phase.DELETING:
        return
    first = Timer.STEP not in entry.timers  # of those that were asked for at once
    pause = _pause(entry, event.answer, count=first)
    if event.answer.status == 403 and first and entry.tries.denials == DENIALS_BORNE + 1:
        note = f"Item {event.item} cannot be deleted: {event.answer.message}"
        world.announce(entry, EventReason.REFUSED, note, action="Delete", warning=True)
    world.wake_in(entry, Timer.STEP, pause)


def _pause(entry: Entry, answer: Answer, *, count: bool = True) -> int:
    if _is_denial(answer):
        entry.tries.denials += count
        return backoff(entry.tries.denials, RETRY_BASE, REFUSED_WRITE_RETRY)
    entry.tries.failures += count
    return max(answer.retry_after, backoff(entry.tries.failures, RETRY_BASE, RETRY_MAX))


def _is_denial(answer: Answer) -> bool:
    """Whether the server understood and will not, whatever we do."""
    return 400 <= answer.status < 500 and answer.status not in (409, 429)


def _all_deleted(world: World, entry: Entry) -> None:
    entry.move(Signal.ALL_DELETED, world.now)
    look(world, entry)


def look(world: World, entry: Entry) -> None:
    """List live what is left: a cache may lie about absence (P4 c)."""
    if entry.dispatch is None:
        return
    work = entry.workload
    entry.stop(Timer.STEP)
    world.emit(LookForRemains(entry.uid, work.namespace, entry.attempt, entry.dispatch.inventory))


def remaining(world: World, entry: Entry, event: Remaining) -> None:
    """The result of a live list."""
    if event.attempt != entry.attempt:
        return
    match entry.phase:
        case Phase.VERIFYING if event.objects:
            world.wake_in(entry, Timer.STEP, LOOK_INTERVAL)
        case Phase.VERIFYING if world.now < entry.doubt:  # absence may not last (ADR 7)
            world.wake_in(entry, Timer.STEP, entry.doubt - world.now)
        case Phase.VERIFYING:
            _nothing_left(world, entry)
        case Phase.GONE if not event.objects:
            entry.created.clear()
        case _:
            pass


def look_failed(world: World, entry: Entry, event: LookFailed) -> None:
    """The list could not be made: absence is not proven."""
    if entry.phase is Phase.VERIFYING and event.attempt == entry.attempt:
        world.wake_in(entry, Timer.STEP, _pause(entry, event.answer))


def something_gone(world: World, entry: Entry) -> None:
    """A child or pod of the AppWrapper is observed absent: that may have been the last one."""
    if world.children_of.get(entry.uid):
        return
    if entry.phase is Phase.VERIFYING and Timer.STEP in entry.timers:
        if not world.capacity.has_pods(entry.uid):
            look(world, entry)
    elif entry.phase is Phase.GONE:
        bury(world, entry)


def _nothing_left(world: World, entry: Entry) -> None:
    if entry.dispatch is None:
        return
    now, record = world.now, entry.dispatch
    world.capacity.release(entry.uid)
    entry.dispatch = replace(record, phase=DispatchPhase.RELEASED)
    entry.move(Signal.NOTHING_LEFT, now)
    if record.next is Next.FAILED:
        entry.set_condition(
            ConditionType.FAILED, now, reason=ITEM_CREATION_FAILURE, message=record.message
        )
    else:
        entry.unset_condition(ConditionType.HEAD_OF_LINE, now, reason=AWAITING_HEAD_OF_LINE)
        entry.stamp_condition(ConditionType.QUEUEING, now, reason=AWAITING_HEAD_OF_LINE)
    world.settle(entry, Urgency.DISPATCH)


def settled(world: World, entry: Entry) -> None:
    """The end of the teardown is persisted: back in line, or failed for good."""
    if entry.dispatch is None:
        return
    record = entry.dispatch
    failed = record.next is Next.FAILED
    entry.created, entry.told, entry.announced = {}, None, False
    world.free_names(entry)
    entry.end_attempt()
    entry.move(Signal.SETTLED_FAILED if failed else Signal.SETTLED_QUEUED, world.now)
    for child in world.children_for(entry):
        world.unswept[child.uid] = None
    reason = EventReason.FAILED if failed else EventReason.TAKEN_BACK
    note = record.message or str(record.reason)
    warning = record.reason != TeardownReason.MISSING_RIGHT  # told once for all (rights.py)
    world.announce(entry, reason, note, action="TakeBack", warning=warning)
    if failed:
        return
    world.line_up(entry)
    why = _PAUSED.get(record.reason)
    if entry.hold is None and why is not None:
        times = entry.requeueings if why == HoldReason.PLACEMENT_BACKOFF else entry.rollbacks
        pause = backoff(times, CREATION_BACKOFF_BASE, CREATION_BACKOFF_MAX)
        world.hold(entry, Hold(why, record.message, world.now + pause))


# -- deletion of the AppWrapper itself -----------------------------------------------------------


def object_gone(world: World, entry: Entry) -> None:
    """The AppWrapper was deleted: its remains hold their room until they are gone (P9)."""
    waiting = entry.phase is Phase.WAITING
    world.leave_line(entry)
    world.capacity.freeze(entry.uid)
    entry.move(Signal.OBJECT_GONE, world.now)
    if waiting:
        world.forget(entry)
    else:
        bury(world, entry)


def bury(world: World, entry: Entry) -> None:
    """End a tombstone if nothing of it is left and nothing can come any more; else look again."""
    left = entry.asked or entry.created or world.children_of.get(entry.uid)
    until = entry.step_since + TOMBSTONE_GRACE if left else entry.doubt
    if world.now >= until:
        world.forget(entry)
    else:
        world.wake_in(entry, Timer.TOMBSTONE, min(until - world.now, TOMBSTONE_LOOK))


def visit(world: World, entry: Entry) -> None:
    """A tombstone's timer has run out."""
    if entry.created and not world.children_of.get(entry.uid):
        look(world, entry)
    bury(world, entry)


# -- the sweep -----------------------------------------------------------------------------------


def sweep(world: World) -> None:
    """Delete objects of ours that no recorded attempt accounts for (P7)."""
    later: dict[str, None] = {}
    for uid in world.unswept:
        child = world.children[uid]
        entry = world.entries.get(child.workload)
        if entry is None or not _is_stray(entry, child):
            continue
        again = world.swept.get(uid, 0)
        if world.now >= again:
            world.swept[uid] = NEVER
            world.emit(DeleteStray(child.workload, child.ref, uid))
        elif again != NEVER:
            later[uid] = None
    world.unswept = later


def stray_refused(world: World, event: StrayRefused) -> None:
    """A stray could not be deleted: again, after a while."""
    if event.object_uid not in world.children:
        return
    slow = _is_denial(event.answer)
    pause = max(event.answer.retry_after, REFUSED_WRITE_RETRY if slow else RETRY_MAX)
    world.swept[event.object_uid] = world.now + pause
    world.unswept[event.object_uid] = None
    world.wake_at(world.now + pause)


def _is_stray(entry: Entry, child: Child) -> bool:
    if not child.labelled or child.terminating or entry.phase is Phase.GONE:
        return False
    if entry.phase in TEARING_DOWN and child.attempt == entry.attempt:
        # The inventory is asked to go; what is not among those that were asked came later.
        return entry.phase in (Phase.DELETING, Phase.VERIFYING)
    return child.attempt != entry.attempt or entry.phase not in RETAINING
