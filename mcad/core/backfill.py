"""Who goes ahead of a claim: whoever is gone before its room is wanted, by what both declared (core
R9), and whoever has a higher priority (R8)."""

from __future__ import annotations

from mcad.core import attempts, claims, drains, ends, obstacles
from mcad.core.bucket import Bucket
from mcad.core.capacity.mixed import Plan
from mcad.core.claim import Claim
from mcad.core.dispatching import refused, stand_in_front
from mcad.core.entry import Entry
from mcad.core.pacing import BACKFILL_LOOK, BACKFILL_TRIES
from mcad.core.quota import Designation
from mcad.core.world import World


def walk(world: World) -> None:
    """After all others: those who were refused, in their order, a few at a time."""
    if not world.claims:
        return
    if world.now >= world.backfilled_at + BACKFILL_LOOK:
        world.backfilled_at = world.now
        tries = BACKFILL_TRIES
        for bucket in refused(world):
            tries -= _try(world, bucket)
            if tries <= 0 or not world.claims:
                return
    world.wake_at(world.backfilled_at + BACKFILL_LOOK)


def _try(world: World, bucket: Bucket) -> int:
    """As many of the bucket as may go; returns how often that was looked at."""
    tries = 0
    while bucket.members:
        entry = bucket.first()
        lifted = [uid for uid in world.claims if _is_open(world, entry, world.entries[uid])]
        if not any(world.capacity.has_spare(uid, bucket.shape) for uid in lifted):
            break
        tries += 1
        plan = drains.what_if(world, entry, lifted).plan()
        if plan is None:
            break
        _go(world, entry, plan)
    return tries


def _is_open(world: World, entry: Entry, owner: Entry) -> bool:
    claim = owner.claim
    return claim is not None and (
        _ends_before(world, entry, claim) or claims.outranks(entry, owner)
    )


def _ends_before(world: World, entry: Entry, claim: Claim) -> bool:
    return ends.if_begun(entry, world.now) <= claim.start


def _go(world: World, entry: Entry, plan: Plan) -> None:
    hindrance = obstacles.obstacle(world, entry)
    if hindrance is not None:
        world.hold(entry, hindrance)
        return
    for uid in {row.claimant: None for _, row, _ in plan if row.claimant}:
        owner = world.entries[uid]
        if owner.claim is not None and not _ends_before(world, entry, owner.claim):
            claims.give_way(world, owner, entry)
    gang = world.next_gang(entry)
    world.admission.reserve_at(gang, Designation(entry.workload.quota), plan)
    stand_in_front(world, entry)
    attempts.begin(world, entry)
