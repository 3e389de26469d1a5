"""Claims as they live: made, kept, and ended by a dispatch or given up (core R8-R10).

An AppWrapper with a claim is out of the line. What is claimed is reserved for it and charged to its
shares, although others still have it, so no other is let in there. As soon as nothing of it is owed
any more it is dispatched. A claim is on record in its status: the next leader plans it anew, with
those that leave already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from mcad.core.attempts import create
from mcad.core.cluster import World
from mcad.core.cycle import pre_enqueue
from mcad.core.cycle.admit import refused, stand_in_front
from mcad.core.fit.exact import Plan
from mcad.core.quota.records import Designation
from mcad.core.reservations import end_times, release_set
from mcad.core.reservations.precedence import outranked, outranks
from mcad.core.reservations.release_set import Drain
from mcad.core.snapshot.removal import fewest
from mcad.core.state.bounds import (
    CLAIM_TRIES_MAX,
    OUTRANKING_TRIED,
    RESTATE_INTERVAL,
    STUCK_AFTER,
    TEARDOWN_MARGIN,
    Look,
)
from mcad.core.state.entry import Entry, Hold
from mcad.core.state.reasons import EventReason, HoldReason, some_of
from mcad.core.state.records import replace
from mcad.core.state.reservation import EVICTIONS, Claim, ClaimReason
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.units import Duration, Instant

# -- making --------------------------------------------------------------------------------------


def make(world: World, entry: Entry, reason: ClaimReason, drain: Drain) -> None:
    """Claim for an AppWrapper in line the room that comes free when those of the drain are gone."""
    until = _until(world, entry, reason, drain)
    message = _begin(world, entry, Claim(reason, world.now, until, drain.start), drain)
    world.announce(entry, EventReason.ROOM_CLAIMED, message, action="Claim")


def _until(world: World, entry: Entry, reason: ClaimReason, drain: Drain) -> Instant:
    """When it is given up. By then the victims are gone, or some limit was not kept. Without a date
    it lasts for as long as is likely to do, but not longer than any other one might."""
    settings = world.settings
    if reason in EVICTIONS:
        return world.now + settings.preemption_grace + evicted_within(world, drain.leaving)
    if drain.start:
        return drain.start + to_leave(settings)
    tries, after = min(entry.patience.tries, CLAIM_TRIES_MAX), settings.protect_after
    likely = min(drain.likely + to_leave(settings), world.now + (after << CLAIM_TRIES_MAX))
    return max(likely, world.now + (after << tries))


def evicted_within(world: World, victims: Iterable[str]) -> Duration:
    """For how long a reservation waits for victims (uids) once they are told to leave: their pods
    have their grace period, however long that is, and something may delay their end."""
    entries = (world.entries.get(uid) for uid in victims)
    graces = (end_times.grace(world, one) for one in entries if one is not None)
    return max(graces, default=0) + to_leave(world.settings)


def to_leave(settings: Settings) -> Duration:
    """For how much longer than it may take a reservation waits for what has to be gone."""
    return max(settings.reservation_timeout, STUCK_AFTER)


def _begin(world: World, entry: Entry, claim: Claim, drain: Drain) -> str:
    world.queue.remove(entry)
    world.admission.claim(world.next_gang(entry), Designation(entry.workload.quota), drain.plan)
    leaving = (world.entries[uid] for uid in drain.leaving)
    world.claims[entry.uid], entry.waits_for = entry, {one.uid: one.attempt for one in leaving}
    places = world.capacity.places_of(entry.uid)
    claim = replace(claim, nodes=tuple(places), pods=tuple(places.values()))
    entry.claim = replace(claim, waits_for=_waits_for(world, entry))
    stand_in_front(world, entry)
    message = message_of(entry.claim)
    world.hold(entry, Hold(HoldReason.ROOM_CLAIMED, message))
    world.wake_at(claim.until)
    return message


def _waits_for(world: World, entry: Entry) -> tuple[str, ...]:
    """The titles of those that have to leave and have not."""
    return tuple(sorted(world.entries[uid].title for uid in still_there(world, entry)))


def still_there(world: World, entry: Entry) -> list[str]:
    """The uids of those that have to leave and have not. One that has left, and runs elsewhere in
    another attempt, is not waited for."""
    return [
        uid
        for uid, attempt in entry.waits_for.items()
        if world.capacity.holds(uid)
        and (one := world.entries.get(uid)) is not None
        and one.attempt == attempt
        and uid not in world.claims
    ]


def message_of(claim: Claim) -> str:
    """What is told of an AppWrapper that has this claim."""
    count = len(claim.nodes)
    where = f" on {count} node{'' if count == 1 else 's'}" if count else ""
    room = f"Room{where} is kept for it"
    match claim.reason:
        case ClaimReason.STARVED:
            return f"{room}, because it was first in line for long: it starts when that is free."
        case ClaimReason.PLANNED:
            return f"{room}: it starts when that is free, by declared limits in time."
        case ClaimReason.PREEMPTING:
            who = some_of(claim.waits_for)
            return f"{room}, where others have to leave for its priority: {who}."
        case ClaimReason.RECLAIMING:
            return f"{room}, where others borrow what is its share: {some_of(claim.waits_for)}."


# -- keeping -------------------------------------------------------------------------------------


def keep(world: World) -> None:
    """Before anything else is decided: an AppWrapper that has what it claims goes, and one that
    waits in vain gives up."""
    if world.claims_on_record or world.preemptors_on_record:
        resume(world)
    pressed = world.capacity.take_pressed()
    is_due = bool(world.claims) and world.is_time_for(Look.CLAIMS)
    for uid, entry in list(world.claims.items()):
        is_free = world.admission.is_free(uid)
        if world.capacity.homeless(uid):
            _plan_again(world, entry, "A node is gone.")
        elif is_free and _fits(world, entry):
            _redeem(world, entry)
        elif entry.claim is not None and entry.claim.until <= world.now:
            left = _waits_for(world, entry) or _intruders(world, entry)
            end(world, entry, f"It expired while waiting for {some_of(left) or 'its quota'}.")
        elif not (is_free or _may_come_free(world, entry, look=is_due)):
            others = some_of(_intruders(world, entry)) or "others"
            _plan_again(world, entry, f"Its room was taken by {others}.")
        elif _is_crowded(world, entry, pressed.get(uid, ()), look=is_due):
            _move(world, entry)
        elif is_due:
            _look(world, entry)


def _may_come_free(world: World, entry: Entry, *, look: bool) -> bool:
    """Whether those that have to leave are still there, and (on a ``look``) make enough room: what
    is bound to the nodes by now may stay for ever."""
    claim = entry.claim
    if claim is not None and world.now < claim.start:
        return True  # what ends in time was let in there (backfill)
    if claim is not None and claim.start and not _is_crowded(world, entry, (), look=True):
        return True  # and takes its seconds to go
    left = still_there(world, entry)
    if not left and world.settings.fit is not Fit.NODES:
        return False
    if not left:
        if world.capacity.is_left(entry.uid, entry.waits_for):
            return True  # the watch of pods has not told yet that they are gone
        return not (_intruders(world, entry) or _lacks_quota(world, entry))
    if not look:
        return True
    departures = release_set.what_if(world, entry, (entry.uid,))
    vanished = (uid for uid in entry.waits_for if not world.capacity.holds(uid))  # but for its pods
    others = (uid for owner in world.claims.values() for uid in still_there(world, owner))
    for uid in dict.fromkeys((*vanished, *others)):
        departures.leave(uid)
    return departures.plan() is not None


def _is_crowded(world: World, entry: Entry, nodes: Iterable[str], *, look: bool) -> bool:
    """Whether what stays beyond the promised start has more of the nodes (on a ``look``, of any of
    its nodes) than is left to it: kube-scheduler puts pods on nodes that are reserved."""
    claim = entry.claim
    if claim is None or not claim.start:
        return False

    @cache
    def leaves(uid: str) -> bool:
        one = world.entries.get(uid)
        return one is not None and end_times.at_latest(world, one) <= _promised(world, claim)

    nodes = world.capacity.nodes_of(entry.uid) if look else nodes
    return world.capacity.is_crowded(entry.uid, nodes, leaves)


def _promised(world: World, claim: Claim) -> Instant:
    """What is gone by then breaks no promise: ends move by the seconds that a creation takes, and
    what is overdue is about to go."""
    return max(claim.start, world.now + TEARDOWN_MARGIN) + TEARDOWN_MARGIN


def _move(world: World, entry: Entry) -> None:
    """To other nodes, where it starts as promised; if there are none it waits: an AppWrapper may
    end earlier than it has to."""
    claim = entry.claim
    if claim is None:
        return
    present = sorted(
        (end_times.at_latest(world, one), one.uid) for one in release_set.present(world)
    )
    leaving = [uid for end, uid in present if end <= _promised(world, claim)]
    found = fewest(release_set.what_if(world, entry, (entry.uid,)), leaving)
    if found is not None:
        world.unclaim(entry)
        _begin(world, entry, claim, Drain(found.plan, found.leaving, claim.start))


def _lacks_quota(world: World, entry: Entry) -> bool:
    """Whether its shares are overcommitted, and no victim of any reservation is still to leave."""
    if not world.forest.is_in_debt(entry.uid):
        return False
    return not any(still_there(world, owner) for owner in world.claims.values())


def _intruders(world: World, entry: Entry) -> list[str]:
    """What is on its nodes and has not to leave, by name: kube-scheduler binds pods there too."""
    pods, uids = world.capacity.occupants(entry.uid)
    names: dict[str, None] = {}
    for pod in pods:
        if entry.waits_for.get(pod.workload) != pod.attempt:
            names[_owner(world, pod.workload) or f"pod {pod.namespace}/{pod.name}"] = None
    names.update((_owner(world, uid), None) for uid in uids if uid not in entry.waits_for)
    return [name for name in names if name]


def _owner(world: World, uid: str) -> str:
    owner = world.entries.get(uid)
    return owner.title if owner is not None else ""


def _fits(world: World, entry: Entry) -> bool:
    """Whether it goes if its claim is no more. Its nodes may be free and it does not: a holder that
    had a pod there a moment ago may be about to make another one (C2)."""
    return _room(world, entry) is not None


def _room(world: World, entry: Entry) -> Plan | None:
    """Where it goes if its reservation is no more. Where only sums count no room has an owner,
    so younger reservations count for nothing."""
    uids = [entry.uid]
    if world.settings.fit is not Fit.NODES:
        uids = list(world.claims)[list(world.claims).index(entry.uid) :]
    return release_set.what_if(world, entry, uids).plan()


def _redeem(world: World, entry: Entry) -> None:
    """What was claimed is free, or as much elsewhere. What comes free by itself goes to the highest
    priority by now, and if that cannot go, to any; what others were evicted for does not."""
    claim = entry.claim
    hindrance = pre_enqueue.obstacle(world, entry)
    if claim is not None and claim.reason in EVICTIONS:
        if hindrance is not None and world.now < claim.until:
            return  # they may not be evicted again
    elif claim is not None:
        for other in islice(outranking(world, entry), OUTRANKING_TRIED):
            if release_set.what_if(world, other, (entry.uid,)).plan() is not None:
                give_way(world, entry, other)
                return
    plan = None if world.settings.fit is Fit.NODES else _room(world, entry)
    world.unclaim(entry)
    if hindrance is not None:
        world.hold(entry, hindrance)
    elif _reserve(world, entry, plan):
        entry.redeemed = claim
        world.redeemed[entry.uid] = None
        create.begin(world, entry)
    else:
        world.line_up(entry)


def _reserve(world: World, entry: Entry, plan: Plan | None) -> bool:
    """Take its room, where the plan says if there is one; False if it has none after all."""
    gang, designation = world.next_gang(entry), Designation(entry.workload.quota)
    if plan is None:
        return world.admission.reserve(gang, designation) is None
    world.admission.reserve_at(gang, designation, plan)
    return True


def _plan_again(world: World, entry: Entry, why: str) -> None:
    """The nodes will not come free for it: a node is gone or admits its pods no more, or others are
    bound there. It waits for the same, elsewhere; what waits for others to end may wait for any."""
    claim, leaving = entry.claim, still_there(world, entry)
    world.unclaim(entry)
    drain = release_set.without(world, entry, leaving)
    if claim is not None and drain is None and claim.reason not in EVICTIONS:
        drain = release_set.drain(world, entry, outranked(world, entry))
        claim = _with_the_date_of(world, entry, claim, drain)
    if claim is not None and drain is not None:
        _begin(world, entry, claim, drain)
    else:
        world.line_up(entry)
        _say_ended(world, entry, f"{why} There is no room for it elsewhere.")


def _with_the_date_of(
    world: World, entry: Entry, claim: Claim, drain: Drain | None
) -> Claim | None:
    """The same reservation with another start; None if there is none, and one was promised."""
    if drain is None or (claim.start and not drain.start):
        return None
    until = max(claim.until, _until(world, entry, claim.reason, drain))
    return replace(claim, start=drain.start, until=until)


def _look(world: World, entry: Entry) -> None:
    """There may be room elsewhere by now; else it is told what is still there."""
    claim = entry.claim
    if claim is None:
        return
    shape, free = world.capacity.shape(entry.workload.sets), world.capacity.spare()
    if world.capacity.may_fit(shape, free) and _fits(world, entry):
        _redeem(world, entry)
        return
    if world.now - entry.told_at < RESTATE_INTERVAL:
        return
    left = _waits_for(world, entry)
    if left != claim.waits_for:
        entry.told_at, entry.claim = world.now, replace(claim, waits_for=left)
        world.settle(entry)


# -- ending --------------------------------------------------------------------------------------


def end(world: World, entry: Entry, why: str) -> None:
    """The reservation has lasted for too long: its room is free for all, and the AppWrapper is in
    line again. Before the next one of this kind there is a pause, three times as long as it lasted;
    one that waited for others to end costs no right to evict."""
    claim = entry.claim
    if claim is not None:
        patience = entry.eviction_patience if claim.reason in EVICTIONS else entry.patience
        patience.tries += 1
        patience.until = world.now + 3 * (world.now - claim.since)
    world.unclaim(entry)
    world.line_up(entry)
    _say_ended(world, entry, why)


def outranking(world: World, owner: Entry) -> Iterator[Entry]:
    """Those in line that go before the owner of a claim and want the same nodes, in order, if there
    is as much as they want, claims aside."""
    shape, free = world.capacity.shape(owner.workload.sets), world.capacity.spare()
    for bucket in refused(world):
        entry = bucket.first()
        if not (outranks(entry, owner) and world.capacity.compete(shape, bucket.shape)):
            continue
        if world.capacity.may_fit(bucket.shape, free):
            yield entry


def clear(world: World, entry: Entry, plan: Plan) -> None:
    """Claims of others on nodes of the plan end: it goes before them."""
    for uid in {row.claimant: None for _, row, _ in plan if row.claimant}:
        give_way(world, world.entries[uid], entry)


def give_way(world: World, entry: Entry, other: Entry) -> None:
    """Another one with a higher priority goes first."""
    world.unclaim(entry)
    world.line_up(entry)
    _say_ended(world, entry, f"{other.title} has a higher priority and goes first.")


def _say_ended(world: World, entry: Entry, why: str) -> None:
    note = f"Room is not kept for it any more. {why}"
    world.announce(entry, EventReason.CLAIM_ENDED, note, action="Claim", warning=True)


# -- after a restart -----------------------------------------------------------------------------


def resume(world: World) -> None:
    """Claims on record, the oldest first: what leaves already leaves, as far as it does."""
    found = world.preemptors_on_record | world.claims_on_record
    world.preemptors_on_record, world.claims_on_record = {}, {}
    for entry, claim in in_line(world, found):
        if world.settings.fit is Fit.NODES or claim.reason in EVICTIONS:
            _resume_one(world, entry, claim)
        else:
            world.settle(entry)  # where only sums count AppWrappers are not protected


def in_line(world: World, found: dict[str, Claim]) -> Iterator[tuple[Entry, Claim]]:
    """Those of them that still wait, the oldest reservation first."""
    for uid, claim in sorted(found.items(), key=lambda one: (one[1].since, one[0])):
        entry = world.entries.get(uid)
        if entry is not None and entry in world.queue:
            yield entry, claim


def _resume_one(world: World, entry: Entry, claim: Claim) -> None:
    drain = release_set.without(world, entry, release_set.leavers(world))
    if drain is None and claim.reason not in EVICTIONS:
        drain = release_set.drain(world, entry)
    if drain is not None:
        _begin(world, entry, claim, drain)
    else:
        world.settle(entry)  # its status says so no more
