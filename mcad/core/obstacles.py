"""What keeps an AppWrapper from being dispatched though there is room: asked before an intent."""

from __future__ import annotations

from mcad.core import rights
from mcad.core.entry import Entry, Hold
from mcad.core.lifecycle import Phase
from mcad.core.model import ObjectRef
from mcad.core.reasons import HoldReason
from mcad.core.world import World, kind_key, name_key


def obstacle(world: World, entry: Entry) -> Hold | None:
    """A kind that cannot be watched or created, or a name that is still taken; changes nothing."""
    refs = [item.ref for item in entry.workload.items]
    for find in (_unwatched, rights.hold_of, _name_taken):
        for ref in refs:
            hold = find(world, ref)
            if hold is not None:
                return hold
    return None


def _unwatched(world: World, ref: ObjectRef) -> Hold | None:
    message = world.unwatched.get(kind_key(ref))
    if message is None:
        return None
    text = f"{ref.kind} objects cannot be watched: {message}"
    return Hold(HoldReason.KIND_NOT_WATCHED, text)


def _name_taken(world: World, ref: ObjectRef) -> Hold | None:
    """P6 ii, before intent."""
    uid = world.by_name.get(name_key(ref))
    if uid is None:
        return None
    child = world.children[uid]
    owner = world.entries.get(child.workload)
    if owner is None or owner.phase is Phase.GONE or child.terminating:
        message = f"{ref} is being deleted; this AppWrapper waits until it is gone."
    else:
        message = f"{ref} belongs to AppWrapper {owner.title}; this one waits until it is gone."
    return Hold(HoldReason.WAITING_FOR_NAME, message)
