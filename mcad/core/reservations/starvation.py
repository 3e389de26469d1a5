"""An AppWrapper that is first in line for too long gets room kept for it, so that no stream of
small ones starves it (core R8). With the policy Backfill it gets that at once, if its start is
known (R9).

There is one such first for each set of nodes, and for each node of a quota tree. The clock runs
while it is first and would fit if AppWrappers left, and stands still while another one is first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice

from mcad.core.cluster import World
from mcad.core.cycle import pre_enqueue
from mcad.core.cycle.admit import in_order
from mcad.core.fit.shape import Shape
from mcad.core.queue.equivalence import Bucket
from mcad.core.reservations import manage, release_set
from mcad.core.reservations.precedence import outranked, outranks
from mcad.core.state.bounds import FIRSTS_LOOK, FIRSTS_LOOKED_AT, FIRSTS_MAX, STEPS_PER_PASS
from mcad.core.state.entry import Entry
from mcad.core.state.reservation import ClaimReason
from mcad.core.state.settings import Fit, Policy
from mcad.core.state.units import SECOND, Duration

_Kind = tuple[Hashable, int]
"""Which nodes an AppWrapper wants, and its priority."""

_LOOKS = 10
"""How often the first in line is looked for within the time after which it is protected."""


def watch(world: World) -> None:
    """Now and then: which one is first, and for how long."""
    interval = _interval(world)
    if not interval or world.settings.fit is not Fit.NODES or not len(world.queue):
        return
    firsts = world.firsts
    passed = world.now - firsts.looked_at
    if passed >= interval or firsts.claim_ended:
        firsts.looked_at, firsts.claim_ended = world.now, False
        _look(world, passed)
    world.wake_at(firsts.looked_at + interval)


def _interval(world: World) -> Duration:
    """How often the first in line is looked for; 0 is never. One that is never overtaken needs no
    claim."""
    settings = world.settings
    match settings.policy:
        case Policy.STRICT_FIFO:
            return 0
        case Policy.BACKFILL:
            return FIRSTS_LOOK
        case Policy.BEST_EFFORT_FIFO:
            interval = -(-settings.protect_after // _LOOKS)
            return max(interval, SECOND) if interval else 0


def _look(world: World, passed: Duration) -> None:
    before = world.firsts.waited
    waited = world.firsts.waited = {uid: n for uid, n in before.items() if _waits(world, uid)}
    for entry in list(_firsts(world)):
        known = before.get(entry.uid)
        waited[entry.uid] = 0 if known is None else known + passed
        _consider(world, entry)


def _waits(world: World, uid: str) -> bool:
    entry = world.entries.get(uid)
    return entry is not None and (entry in world.queue or uid in world.claims)


def _firsts(world: World) -> Iterator[Entry]:
    """The first of all that were refused and would fit if AppWrappers left, and the first of those
    that want neither the same nodes nor the same share, and so on. To ask what would fit is bounded
    work: what was found is remembered, so the next look gets further."""
    most = world.admission.steps + STEPS_PER_PASS // 2
    taken: list[Shape] = []
    scopes: set[tuple[str, str]] = set()
    behind: set[_Kind] = set()  # those with another first for their nodes
    for bucket in islice(in_order(world, _unclaimed(world)), FIRSTS_LOOKED_AT):
        if len(taken) >= FIRSTS_MAX or world.admission.steps >= most:
            return
        kind = _kind(world, bucket)
        if kind in behind:
            continue
        if any(world.capacity.compete(one, bucket.shape) for one in taken):
            behind.add(kind)
            continue
        limit = bucket.refusal.quota if bucket.refusal is not None else None
        if limit is not None and (limit.tree, limit.node) in scopes:
            continue
        if world.capacity.would_fit_emptied(bucket.shape):
            taken.append(bucket.shape)
            if limit is not None:
                scopes.add((limit.tree, limit.node))
            yield bucket.first()


def _kind(world: World, bucket: Bucket) -> _Kind:
    return world.capacity.pools_of(bucket.shape), bucket.first().workload.priority


def _unclaimed(world: World) -> Iterator[Bucket]:
    """The buckets that want no node of a claim which counts for them. While a claim stands there is
    mostly none, so this is asked before they are put in order."""
    behind: dict[_Kind, bool] = {}
    for bucket in world.queue.buckets():
        kind = _kind(world, bucket)
        is_behind = behind.get(kind)
        if is_behind is None:
            is_behind = behind[kind] = _is_behind_a_claim(world, bucket)
        if not is_behind:
            yield bucket


def _is_behind_a_claim(world: World, bucket: Bucket) -> bool:
    entry, shape_of = bucket.first(), world.capacity.shape
    owners = (one for one in world.claims.values() if not outranks(entry, one))
    claimed = (shape_of(one.workload.sets) for one in owners)
    return any(world.capacity.compete(one, bucket.shape) for one in claimed)


def _consider(world: World, entry: Entry) -> None:
    settings = world.settings
    if world.now < entry.patience.until:
        return
    is_starved = 0 < settings.protect_after <= world.firsts.waited[entry.uid]
    if not is_starved and settings.policy is not Policy.BACKFILL:
        return
    if pre_enqueue.obstacle(world, entry) is not None:
        return  # it could not go if it had the room
    drain = release_set.drain(world, entry, outranked(world, entry))
    if drain is None or not drain.leaving or not (is_starved or drain.start):
        return
    manage.clear(world, entry, drain.plan)
    reason = ClaimReason.STARVED if is_starved else ClaimReason.PLANNED
    manage.make(world, entry, reason, drain)
