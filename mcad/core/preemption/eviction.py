"""How an AppWrapper is evicted for another one: told, left a while if there is a grace, and taken
back to queue again where it stood (core R10).

Until it is taken back it may be called off: the other one has found room, or is gone. After a
restart none is told any more; the other one asks anew, with those gone that are taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcad.core.attempts import teardown
from mcad.core.cluster import World
from mcad.core.reservations import manage, release_set
from mcad.core.snapshot.removal import fewest
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import EVICTION_CALLED_OFF, ConditionType, EventReason, TeardownReason
from mcad.core.state.records import replace
from mcad.core.state.reservation import ClaimReason, Eviction, PendingEviction
from mcad.core.state.units import SECOND

_STANDING = frozenset({Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING})

_WORDS = {
    ClaimReason.PREEMPTING: (TeardownReason.PREEMPTED, "which has a higher priority"),
    ClaimReason.RECLAIMING: (TeardownReason.RECLAIMED, "whose share it borrows"),
}


def may_be_evicted(entry: Entry) -> bool:
    """Whether its attempt may be taken back now, as far as it is concerned."""
    phase = entry.phase
    if phase is not Phase.RUNNING and (phase is not Phase.CREATING or entry.creation.asked):
        return False
    return not (entry.workload.never_preempted or entry.workload.deleting or entry.untested)


def begin(world: World, winner: Entry, victims: Iterable[tuple[str, ClaimReason]]) -> None:
    """They are told for which one they have to leave; without a grace they leave at once."""
    at = world.now + world.settings.preemption_grace
    for uid, reason in victims:
        entry = world.entries[uid]
        cause, why = _WORDS[reason]
        message = f"It makes room for {winner.title}, {why}; it queues again where it stood."
        world.evictions[uid] = PendingEviction(winner.uid, reason, message, at)
        kind = ConditionType.PREEMPT_CANDIDATE
        entry.set_condition(kind, world.now, reason=cause, message=message)
        announce = EventReason.PREEMPT_CANDIDATE
        world.announce(entry, announce, message, action="Preempt", warning=True)
        if world.settings.preemption_grace:
            world.settle(entry)
        else:
            _take_back(world, entry, world.evictions[uid])
    world.wake_at(at)


def proceed(world: World) -> None:
    """Those with a grace that is over leave, if they still have to."""
    told: dict[str, list[str]] = {}
    for uid, pending in world.evictions.items():
        told.setdefault(pending.by, []).append(uid)
    for winner, uids in told.items():
        _proceed(world, winner, uids)


def _proceed(world: World, winner: str, uids: Sequence[str]) -> None:
    owner = world.claims.get(winner)
    claimed = owner.waits_for if owner is not None else {}
    standing = dict.fromkeys(uid for uid in uids if uid in claimed and _stands(world, uid))
    for uid in uids:
        if uid not in standing:
            _call_off(world, uid)
    pending = [world.evictions[uid] for uid in standing]
    if owner is None or not pending:
        return
    if any(world.now < one.at for one in pending):
        world.wake_at(min(one.at for one in pending))
        return
    needed = _still_needed(world, owner, standing)
    if needed is None:
        for uid in standing:
            _call_off(world, uid)
        manage.end(world, owner, "No set of evictions makes enough room.")
        return
    for uid in standing:
        entry = world.entries[uid]
        if uid not in needed:
            _call_off(world, uid)
            del claimed[uid]
        elif may_be_evicted(entry):
            _take_back(world, entry, world.evictions[uid])
        else:
            world.wake_at((world.now // SECOND + 1) * SECOND)  # the same for all passes of a second


def _stands(world: World, uid: str) -> bool:
    entry = world.entries.get(uid)
    return entry is not None and entry.phase in _STANDING and not entry.workload.deleting


def _still_needed(world: World, owner: Entry, uids: Collection[str]) -> set[str] | None:
    """Which of them have to leave, now that the grace is over; None: it would be in vain."""
    departures = release_set.what_if(world, owner, (owner.uid,))
    for uid in manage.still_there(world, owner):
        if uid not in uids:
            departures.leave(uid)
    found = fewest(departures, uids)
    return None if found is None else set(found.leaving)


def _take_back(world: World, entry: Entry, pending: PendingEviction) -> None:
    del world.evictions[entry.uid]
    winner, before = world.entries[pending.by], entry.eviction
    count = 1 + (before.count if before is not None else 0)
    entry.eviction = Eviction(count, pending.reason, winner.uid, winner.title, world.now)
    entry.opponents[winner.uid] = world.now
    entry.dispatch = replace(entry.record, preemptor=winner.uid)
    teardown.take_back(world, entry, _WORDS[pending.reason][0], pending.message)


def in_vain(world: World, winner: Entry) -> None:
    """A user holds it back before it got the room: it may ask the same ones again."""
    for uid in winner.waits_for:
        victim = world.entries.get(uid)
        if victim is not None:
            victim.opponents.pop(winner.uid, None)


def _call_off(world: World, uid: str) -> None:
    del world.evictions[uid]
    entry = world.entries.get(uid)
    if entry is not None:
        forget(world, entry)


def forget(world: World, entry: Entry) -> None:
    """Its status says that it is evicted: say that this was called off."""
    shown = entry.conditions.get(ConditionType.PREEMPT_CANDIDATE)
    told = {cause for cause, _ in _WORDS.values()}
    if shown is None or not shown.status or shown.reason not in told:
        return
    entry.unset_condition(ConditionType.PREEMPT_CANDIDATE, world.now, reason=EVICTION_CALLED_OFF)
    world.settle(entry)
