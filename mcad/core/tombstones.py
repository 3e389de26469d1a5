"""Deleted AppWrappers: what they leave is deleted at once and holds its room until it is gone (P9).

The cluster's garbage collector would delete it too, but late: for up to half a minute it does not
know AppWrappers that were installed just now, and in a large cluster it lags.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcad.core import sweep, teardown
from mcad.core.entry import Entry
from mcad.core.lifecycle import Phase, Signal
from mcad.core.model import Cascade, Child, Dialect, DispatchPhase, DispatchRecord, Item, Workload
from mcad.core.pacing import STUCK_AFTER, TOMBSTONE_GRACE, TOMBSTONE_LOOK
from mcad.core.reasons import DELETION_INITIATED, ConditionType, EventReason
from mcad.core.timers import Timer
from mcad.core.units import Instant
from mcad.core.world import World


def deletion_seen(world: World, entry: Entry) -> None:
    """It is being deleted: nothing more is created, and with foreground deletion its objects go."""
    world.freeze(entry)
    world.to_judge[entry.uid] = world.to_settle[entry.uid] = None
    sweep.judge_anew(world, entry)


def linger(world: World, entry: Entry) -> None:
    """It goes after its objects: what keeps them is looked at, and force is used, as in a teardown.
    The clock is that of the condition, which is persisted."""
    if not entry.lingers or Timer.TOMBSTONE in entry.timers:
        return
    if not entry.shows(ConditionType.DELETING_RESOURCES):
        kind, reason = ConditionType.DELETING_RESOURCES, DELETION_INITIATED
        entry.set_condition(kind, world.now, reason=reason)
        world.settle(entry)
    world.wake_in(entry, Timer.TOMBSTONE, teardown.next_look(world, entry))


def object_gone(world: World, entry: Entry) -> None:
    """The AppWrapper was deleted: its remains hold their room until they are gone."""
    is_waiting = entry.phase is Phase.WAITING
    world.leave_line(entry)
    world.freeze(entry)
    entry.move(Signal.OBJECT_GONE, world.now)
    entry.announced = False
    sweep.judge_anew(world, entry)
    if is_waiting and not world.children_of.get(entry.uid):
        world.forget(entry)
    else:
        bury(world, entry)


def bury(world: World, entry: Entry) -> None:
    """End a tombstone if nothing of it is left and nothing can come any more; else look again."""
    left = entry.creation.asked or entry.creation.created or world.children_of.get(entry.uid)
    grace = TOMBSTONE_GRACE + (entry.workload.tolerance.forceful_deletion_grace or 0)
    until = entry.step_since + grace if left else entry.creation.doubt
    _say_what_is_left(world, entry)
    if world.now >= until:
        world.forget(entry)
    else:
        world.wake_in(entry, Timer.TOMBSTONE, min(until - world.now, TOMBSTONE_LOOK))


def _say_what_is_left(world: World, entry: Entry) -> None:
    """Once: there is no status any more that could show it."""
    left = world.children_for(entry)
    if not left or entry.announced or world.now - entry.step_since < STUCK_AFTER:
        return
    entry.announced = True
    note = f"{left[0].ref} outlives its AppWrapper and keeps its room for now; what keeps it?"
    world.announce(entry, EventReason.REMAINS, note, action="Delete", warning=True)


def visit(world: World, entry: Entry) -> None:
    """A tombstone's timer has run out, or that of one that is going to be one."""
    if entry.lingers:
        teardown.look(world, entry)
    if entry.phase is not Phase.GONE:
        return
    is_seen = bool(world.children_of.get(entry.uid))
    if teardown.force_is_due(world, entry, entry.step_since) <= 0 or (
        entry.creation.created and not is_seen
    ):
        teardown.look(world, entry)
    bury(world, entry)


# -- after a restart -----------------------------------------------------------------------------


def rebuild(world: World) -> None:
    """AppWrappers that were deleted while nobody looked: what is left of them tells what it wants.

    Their objects are left to the cluster's garbage collector: that nobody here knows an AppWrapper
    does not prove that there is none, because others may look after other namespaces.
    """
    for uid in world.ownerless:
        entry = world.entries.get(uid)
        if uid and uid not in world.abandoned and (entry is None or entry.rebuilt):
            _rebuild_one(world, uid, entry)
    world.ownerless.clear()


def _rebuild_one(world: World, uid: str, entry: Entry | None) -> None:
    left = [child for child in world.children_of.get(uid, {}).values() if child.labelled]
    known = entry.inventory if entry is not None else ()
    if all(child.ref in known for child in left):
        return
    if entry is None:
        entry = Entry(_stand_in(left), world.now, phase=Phase.GONE, rebuilt=True)
        entry.step_since = world.now
        world.entries[uid] = entry
    else:
        entry.workload = _stand_in(left)
        world.release(entry)
    entry.dispatch = _record(left, world.now)
    world.adopt(entry)
    for child in left:
        entry.creation.created[child.item] = child.uid
    bury(world, entry)


def _stand_in(left: Sequence[Child]) -> Workload:
    """As much of the AppWrapper as its objects tell; it is named after the first of them."""
    first = left[0]
    return Workload(
        uid=first.workload,
        namespace=first.ref.namespace,
        name=f"owner-of-{first.ref.name}",
        generation=0,
        dialect=Dialect.V1BETA1,
        created=0,
        payload="",
        items=tuple(Item(child.ref) for child in left),
        sets=tuple(one for child in left for one in child.sets),
        deleting=True,
        cascade=Cascade.ORPHAN,
    )


def _record(left: Sequence[Child], now: Instant) -> DispatchRecord:
    attempt = max(child.attempt for child in left)
    inventory = tuple(child.ref for child in left)
    return DispatchRecord(attempt, 0, DispatchPhase.DISPATCHED, "", inventory, now, now)


def alive_after_all(world: World, entry: Entry) -> None:
    """The AppWrapper is there: another leader made it, and its objects were told of first."""
    world.forget(entry)
    world.abandoned.pop(entry.uid, None)
