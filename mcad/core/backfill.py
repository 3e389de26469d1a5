"""Who goes ahead of a claim: whoever is gone before its room is wanted, by what both declared (core
R9), and whoever has a higher priority (R8)."""

from __future__ import annotations

from collections.abc import Iterable

from mcad.core import attempts, claims, drains, obstacles
from mcad.core.bucket import Bucket
from mcad.core.capacity.mixed import Plan
from mcad.core.capacity.pools import Spare
from mcad.core.dispatching import refused, stand_in_front
from mcad.core.entry import Entry
from mcad.core.pacing import BACKFILL_MEMBERS, BACKFILL_TRIES, Look
from mcad.core.passing import ends_before, may_pass
from mcad.core.quota import Designation
from mcad.core.world import World


def walk(world: World) -> None:
    """After all others: those who were refused are offered, in their order, what others have left
    since, or all that is free, if nothing was offered to them before."""
    if not world.claims or not world.is_time_for(Look.BACKFILL):
        return
    relieved, new = world.capacity.take_relieved(), world.queue.new
    free = world.capacity.spare() if relieved or new else Spare()
    tries, amounts = BACKFILL_TRIES, free.total()
    line = refused(world) if free else iter(())
    for bucket in line:
        places = free if bucket in new else relieved
        new.pop(bucket, None)
        if world.capacity.may_fit(bucket.shape, amounts):
            tries -= _try(world, bucket, places, free, tries)
        if not tries:
            _offer_later(world, (bucket, *line))
        if not tries or not world.claims:
            return


def _offer_later(world: World, buckets: Iterable[Bucket]) -> None:
    """These were not reached: at the next look they are offered all that is free."""
    world.queue.new.update((bucket, None) for bucket in buckets if bucket.members)
    world.is_time_for(Look.BACKFILL)


def _try(world: World, bucket: Bucket, places: Spare, free: Spare, most: int) -> int:
    """As many of the bucket as may go; returns how often that was looked at, ``most`` times."""
    for tries in range(most):
        if not bucket.members or not _may_fit(world, bucket, places, free):
            return tries
        found = _next(world, bucket, places)
        if found is None:
            return tries
        entry, lifted = found
        plan = drains.what_if(world, entry, lifted).plan()
        if plan is None:
            return tries + 1
        _go(world, entry, plan)
    return most


def _may_fit(world: World, bucket: Bucket, places: Spare, free: Spare) -> bool:
    """Whether some of its pods fit there, and with all that is claimed and free enough of them. It
    is cheaper to ask that first."""
    missing = bucket.refusal.missing if bucket.refusal is not None else 0
    there = world.capacity.places
    return there(bucket.shape, places) > 0 and there(bucket.shape, free) >= missing


def _next(world: World, bucket: Bucket, places: Spare) -> tuple[Entry, list[str]] | None:
    """The first of the bucket that may go on one of the nodes, and whose claims he may pass."""
    for entry in bucket.front(BACKFILL_MEMBERS):
        claims = world.claims.items()
        lifted = [uid for uid, owner in claims if may_pass(entry, owner, world.now)]
        if any(row.claimant in lifted for row, _ in places):
            return entry, lifted
    return None


def _go(world: World, entry: Entry, plan: Plan) -> None:
    hindrance = obstacles.obstacle(world, entry)
    if hindrance is not None:
        world.hold(entry, hindrance)
        return
    for uid in {row.claimant: None for _, row, _ in plan if row.claimant}:
        owner = world.entries[uid]
        if owner.claim is not None and not ends_before(entry, owner.claim, world.now):
            claims.give_way(world, owner, entry)
    gang = world.next_gang(entry)
    world.admission.reserve_at(gang, Designation(entry.workload.quota), plan)
    stand_in_front(world, entry)
    attempts.begin(world, entry)
