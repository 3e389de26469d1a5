"""What goes ahead of a claim: an AppWrapper that is gone before its room is wanted, by what both
declared (core R9), and one with a higher priority (R8)."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mcad.core.attempts import create
from mcad.core.cluster import World
from mcad.core.cycle import pre_enqueue
from mcad.core.cycle.admit import in_order, stand_in_front
from mcad.core.fit.exact import Plan
from mcad.core.queue.equivalence import Bucket
from mcad.core.quota.records import Designation
from mcad.core.reservations import manage, release_set
from mcad.core.reservations.precedence import ends_before, may_pass
from mcad.core.snapshot.reserved_free import Spare
from mcad.core.state.bounds import BACKFILL_MEMBERS, BACKFILL_TRIES, Look
from mcad.core.state.entry import Entry


def walk(world: World) -> None:
    """After all others: the refused are offered, in their order, what others have left since, or
    all that is free, if nothing was offered to them before."""
    is_new = world.capacity.is_relieved or world.queue.new
    if not (world.claims and is_new and world.is_time_for(Look.BACKFILL)):
        return
    new, world.queue.new = world.queue.new, {}
    offer = _Offer(world, new)
    if not offer.free:
        return
    tries = BACKFILL_TRIES
    line = in_order(world, filter(offer.may_fit, world.queue.buckets()))
    for bucket in line:
        if tries <= 0 or not world.claims:
            break
        tries -= _try(world, bucket, offer, tries)
    else:
        return
    _offer_later(world, (bucket, *line))


class _Offer:
    """What is free in claims, and what of it is offered: what others have left, or to ``new``
    buckets all of it."""

    def __init__(self, world: World, new: Container[Bucket]) -> None:
        self.relieved = world.capacity.take_relieved()
        self.free = world.capacity.spare()
        self._capacity = world.capacity
        self._new = new

    def places(self, bucket: Bucket) -> Spare:
        """What is offered to it."""
        return self.free if bucket in self._new else self.relieved

    def may_fit(self, bucket: Bucket) -> bool:
        """Whether a pod of it fits on what is offered, and all others may on all that is free."""
        has_place = self._capacity.has_place(bucket.shape, self.places(bucket))
        return has_place and self._capacity.may_fit(bucket.shape, self.free)

    def taken(self) -> None:
        """Some of it was taken."""
        self.relieved, self.free = self.relieved.again(), self.free.again()


def _offer_later(world: World, buckets: Iterable[Bucket]) -> None:
    """These were not reached: at the next look they are offered all that is free."""
    world.queue.new.update((bucket, None) for bucket in buckets if bucket.members)
    world.is_time_for(Look.BACKFILL)


def _try(world: World, bucket: Bucket, offer: _Offer, most: int) -> int:
    """As many of the bucket as may go; returns how often that was looked at, ``most`` times."""
    for tries in range(most):
        if not bucket.members or not offer.may_fit(bucket):
            return tries
        found = _next(world, bucket, offer.places(bucket))
        if found is None:
            return tries
        entry, lifted = found
        plan = release_set.what_if(world, entry, lifted).plan()
        if plan is None:
            return tries + 1
        _go(world, entry, plan)
        offer.taken()
    return most


def _next(world: World, bucket: Bucket, places: Spare) -> tuple[Entry, list[str]] | None:
    """The first of the bucket that may go on one of the nodes, and the claims that it may pass."""
    for entry in bucket.front(BACKFILL_MEMBERS):
        claimed = world.claims.items()
        lifted = [uid for uid, owner in claimed if may_pass(world, entry, owner)]
        if places.is_of(lifted):
            return entry, lifted
    return None


def _go(world: World, entry: Entry, plan: Plan) -> None:
    hindrance = pre_enqueue.obstacle(world, entry)
    if hindrance is not None:
        world.hold(entry, hindrance)
        return
    for uid in {row.claimant: None for _, row, _ in plan if row.claimant}:
        owner = world.entries[uid]
        if owner.claim is not None and not ends_before(world, entry, owner.claim):
            manage.give_way(world, owner, entry)
    gang = world.next_gang(entry)
    world.admission.reserve_at(gang, Designation(entry.workload.quota), plan)
    stand_in_front(world, entry)
    create.begin(world, entry)
