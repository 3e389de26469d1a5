"""The sweep: objects of ours that no recorded attempt accounts for are deleted (protocol P7)."""

from __future__ import annotations

from collections.abc import Sequence

from mcad.core.cluster import World
from mcad.core.commands import DeleteStray
from mcad.core.events import StrayRefused
from mcad.core.state.bounds import REFUSED_WRITE_RETRY, RETRY_MAX, is_denial
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import RETAINING, TEARING_DOWN, Phase
from mcad.core.state.model import Cascade, Child, Remnant
from mcad.core.state.units import Instant

NEVER: Instant = 1 << 62
"""Later than any instant: its deletion was asked for, and the answer is open."""


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


def found_of_deleted(world: World, entry: Entry, found: Sequence[Remnant]) -> None:
    """What no watch has told of is there after all and is swept, or it is not."""
    if not found:
        entry.creation.created.clear()
    for one in found:
        if one.uid not in world.children and not one.terminating and not is_spared(entry):
            world.emit(DeleteStray(entry.uid, one.ref, one.uid))


def judge_anew(world: World, entry: Entry) -> None:
    """Let the next sweep judge all objects of an AppWrapper anew."""
    for child in world.children_for(entry):
        world.swept.pop(child.uid, None)
        world.unswept[child.uid] = None


def refused(world: World, event: StrayRefused) -> None:
    """A stray could not be deleted: again, after a while."""
    if event.object_uid not in world.children:
        return
    slow = is_denial(event.answer)
    pause = max(event.answer.retry_after, REFUSED_WRITE_RETRY if slow else RETRY_MAX)
    world.swept[event.object_uid] = world.now + pause
    world.unswept[event.object_uid] = None
    world.wake_at(world.now + pause)


def is_spared(entry: Entry) -> bool:
    """Whether the objects of a deleted AppWrapper stay, as its deletion asked for."""
    return entry.workload.cascade is Cascade.ORPHAN


def _is_stray(entry: Entry, child: Child) -> bool:
    if not child.labelled or child.terminating or entry.phase is Phase.FOREIGN:
        return False
    if entry.phase is Phase.GONE:
        return not is_spared(entry)
    if entry.workload.deleting and entry.workload.cascade is Cascade.FOREGROUND:
        return True
    if entry.phase in TEARING_DOWN and child.attempt == entry.attempt:
        # The inventory is asked to go; what is not among those that were asked came later.
        return entry.phase in (Phase.DELETING, Phase.VERIFYING)
    return child.attempt != entry.attempt or entry.phase not in RETAINING
