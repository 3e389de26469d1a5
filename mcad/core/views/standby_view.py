"""What an onlooker knows: a process that decides nothing and takes all records as they are.

The dispatcher remembers more than it writes. Where the stored objects leave open what it would say,
an onlooker tells less (``verdicts.Doubts``).
"""

from __future__ import annotations

from mcad.core.attempts import leftovers, recovery
from mcad.core.cluster import World
from mcad.core.quota.records import Designation
from mcad.core.reservations import manage
from mcad.core.state.entry import Entry, Hold
from mcad.core.state.lifecycle import ENDED, Phase
from mcad.core.state.model import DispatchPhase
from mcad.core.state.reasons import ConditionType, HoldReason
from mcad.core.state.refusal import Doubts
from mcad.core.state.reservation import Claim

_ON_RECORD = frozenset(HoldReason) - {
    HoldReason.SUSPENDED,
    HoldReason.DELETED,
    HoldReason.ROOM_CLAIMED,
}
"""Holds that are the dispatcher's findings. The first two follow from the AppWrapper itself, the
last one from ``status.claim``."""


def look_on(world: World, *, is_led: bool) -> None:
    """Everything is listed: attempts and claims hold their room, and holds stand as written. Where
    it ``is_led``, another process knows more."""
    if world.forest.refresh(world.now):
        for entry in world.queue.entries():
            world.rank_anew(entry)
    recovery.take_as_recorded(world)
    leftovers.take_up(world)
    world.capacity.rehome()
    found, world.claims_on_record = world.claims_on_record, {}
    for entry, claim in manage.in_line(world, found):
        if entry.uid not in world.to_settle:
            _claim_as_recorded(world, entry, claim)
    for entry in world.queue.entries():
        _hold_as_recorded(world, entry)
    world.doubts = _doubts(world) if is_led else None


def _claim_as_recorded(world: World, entry: Entry, claim: Claim) -> None:
    """The claim is where its record says, and nothing is planned anew."""
    shape = world.capacity.shape(entry.workload.sets)
    if claim.is_placed:
        places = dict(zip(claim.nodes, claim.pods, strict=True))
        plan = world.capacity.plan_at(shape, places)
    else:
        plan = world.capacity.plan_on(shape, claim.nodes)
    shown = entry.conditions.get(ConditionType.BACKOFF)
    is_told = shown is not None and shown.status and shown.reason == HoldReason.ROOM_CLAIMED
    message = shown.message if shown is not None and is_told else manage.message_of(claim)
    world.queue.remove(entry)
    world.admission.claim(world.next_gang(entry), Designation(entry.workload.quota), plan)
    world.claims[entry.uid], entry.claim = entry, claim
    world.hold(entry, Hold(HoldReason.ROOM_CLAIMED, message))


def _hold_as_recorded(world: World, entry: Entry) -> None:
    """What is written counts as long as the spec is the one that it was written about."""
    shown = entry.conditions.get(ConditionType.BACKOFF)
    if shown is None or not shown.status or entry.uid in world.to_settle:
        return
    if shown.reason in _ON_RECORD:
        world.hold(entry, Hold(shown.reason, shown.message))


def _doubts(world: World) -> Doubts:
    """Open is on which nodes pods without one are assumed, what an attempt declared whose spec was
    edited since, what deleted AppWrappers hold, and where a claim is that does not say it all."""
    holders = [one for one in world.entries.values() if world.capacity.holds(one.uid)]
    attempts = [one for one in holders if one.claim is None]
    is_gone = any(one.phase is Phase.GONE for one in attempts)
    is_unbound = any(sum(world.capacity.outstanding(one.uid)) for one in attempts)
    is_unplaced = any(one.claim is not None and not one.claim.is_placed for one in holders)
    return Doubts(
        room=is_unbound or is_gone or is_unplaced,
        shares=world.forest.has_trees and (is_gone or any(map(is_edited, attempts))),
    )


def is_edited(entry: Entry) -> bool:
    """Whether its attempt stands and declared something else than its spec does by now."""
    record = entry.dispatch
    if record is None or entry.phase in ENDED or record.phase is DispatchPhase.RELEASED:
        return False
    return bool(record.payload) and record.payload != entry.workload.payload


def last_word(entry: Entry) -> str:
    """What the dispatcher has written about one that it refused, "" if there is nothing."""
    shown = entry.conditions.get(ConditionType.BACKOFF)
    return shown.message if shown is not None and shown.status else ""
