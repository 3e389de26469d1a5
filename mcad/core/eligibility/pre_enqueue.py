"""What keeps an AppWrapper from being dispatched though there is room, checked before an intent."""

from __future__ import annotations

from functools import partial

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import ObjectRef
from mcad.core.state.rights import right_key
from mcad.core.state.waiting_reason import Hold, WaitingReason


def obstacle(cluster: Cluster, entry: Entry) -> Hold | None:
    """A kind that cannot be watched or created, or a taken name; changes nothing."""
    refs = [item.ref for item in entry.workload.items]
    for find in (_unwatched, missing_right, partial(_name_taken, but_by=entry)):
        for ref in refs:
            hold = find(cluster, ref)
            if hold is not None:
                return hold
    return None


def missing_right(cluster: Cluster, ref: ObjectRef) -> Hold | None:
    """The hold of every AppWrapper with such an object, None if no right is missing."""
    held = cluster.rights.held.get(right_key(ref))
    return Hold(WaitingReason.MISSING_RIGHT, held.resource.message) if held is not None else None


def _unwatched(cluster: Cluster, ref: ObjectRef) -> Hold | None:
    message = cluster.objects.unwatched.get((ref.group, ref.resource))
    if message is None:
        return None
    text = f"{ref.kind} objects cannot be watched: {message}"
    return Hold(WaitingReason.KIND_NOT_WATCHED, text)


def _name_taken(cluster: Cluster, ref: ObjectRef, *, but_by: Entry) -> Hold | None:
    """P6 ii, before the intent: an object has the name, or an attempt is about to create one with
    it. A reset AppWrapper has taken its own names."""
    child = cluster.objects.by_uid.get(cluster.objects.names.observed(ref) or "")
    uid = child.workload if child is not None else cluster.objects.names.taken_by(ref)
    owner = cluster.entries.get(uid or "")
    if owner is but_by and (child is None or owner.phase is Phase.PAUSING):
        return None
    if child is None and (owner is None or not _uses(owner, ref)):
        return None
    leaving = owner is None or owner.phase is Phase.GONE or owner.phase in TEARING_DOWN
    if owner is None or leaving or (child is not None and child.terminating):
        message = f"{ref} is being deleted; this AppWrapper waits until it is gone."
    else:
        message = f"{ref} belongs to AppWrapper {owner.title}; this one waits until it is gone."
    return Hold(WaitingReason.WAITING_FOR_NAME, message)


def _uses(owner: Entry, ref: ObjectRef) -> bool:
    """Whether the owner uses or will use the name: a running attempt creates nothing more."""
    if owner.phase not in (Phase.RUNNING, Phase.COMPLETED):
        return True
    names = [one.key for one in owner.inventory]
    return names.index(ref.key) in owner.creation.created
