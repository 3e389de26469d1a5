"""Deleted AppWrappers: what they leave is deleted at once and holds its room until it is gone (P9).

The cluster's garbage collector would delete it too, but late: for up to half a minute it does not
know AppWrappers that were installed just now, and in a large cluster it lags.
"""

from __future__ import annotations

from mcad.core.attempts import orphans, teardown
from mcad.core.cluster import World
from mcad.core.state.bounds import STUCK_AFTER, TOMBSTONE_GRACE, TOMBSTONE_LOOK
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase, Signal
from mcad.core.state.reasons import DELETION_INITIATED, ConditionType, EventReason
from mcad.core.state.timers import Timer


def deletion_seen(world: World, entry: Entry) -> None:
    """It is being deleted: nothing more is created, and with foreground deletion its objects go."""
    world.freeze(entry)
    world.to_judge[entry.uid] = world.to_settle[entry.uid] = None
    orphans.judge_anew(world, entry)


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
    orphans.judge_anew(world, entry)
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
    world.announce_remnant(entry, left[0], EventReason.REMAINS, note, action="Delete")


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


def alive_after_all(world: World, entry: Entry) -> None:
    """The AppWrapper is there: another leader made it, and its objects were told of first."""
    world.forget(entry)
