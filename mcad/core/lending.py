"""Who would borrow waits for whoever asks within its share, if both want the same nodes.

Without this a borrower took what came free before those whose share it is had room for a whole
gang, and was evicted for them minutes later: work for nothing. As reclaim evicts nobody within
``minRunTime`` of its dispatch, whoever asks within its share gets it back within that time, if
evicting borrowers can give it; so nobody keeps others waiting for longer.
"""

from __future__ import annotations

from mcad.core.bucket import Bucket
from mcad.core.entry import Entry
from mcad.core.gate import IMPOSSIBLE
from mcad.core.units import Duration
from mcad.core.world import World


class Lending:
    """Who keeps borrowers waiting in one pass; asked for when the first of them would go."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._owners: list[Bucket] | None = None

    def waits(self, bucket: Bucket) -> bool:
        """Whether the first of the bucket, which fits, lets somebody else go first."""
        world = self._world
        if not (world.turns.has_owners and bucket.path) or _is_within(world, bucket):
            return False
        if self._owners is None:
            self._owners = _owners(world)
        leaves = dict(bucket.path)
        return any(
            any(leaf != leaves.get(tree, leaf) for tree, leaf in owner.path)
            and world.capacity.compete(owner.shape, bucket.shape)
            for owner in self._owners
            if owner.members
        )


def _owners(world: World) -> list[Bucket]:
    """The buckets whose first asks within its share and has kept borrowers waiting for less than
    ``minRunTime``, in which those who run now may not be evicted, and until it is asked again."""
    longest: Duration = world.settings.min_run_time + world.settings.backoff
    before, found = world.asks_back, list[Bucket]()
    world.asks_back = {}
    for bucket in world.queue.buckets():
        entry = bucket.first()
        if _may_ask_back(world, bucket, entry):
            since = world.asks_back[entry.uid] = before.get(entry.uid, world.now)
            if world.now < since + longest:
                world.wake_at(since + longest)
                found.append(bucket)
    return found


def _may_ask_back(world: World, bucket: Bucket, entry: Entry) -> bool:
    if bucket.refusal is None or bucket.refusal.kind in IMPOSSIBLE:
        return False
    if entry.workload.never_preempts or world.now < entry.patience.until:
        return False
    return _is_within(world, bucket)


def _is_within(world: World, bucket: Bucket) -> bool:
    return world.forest.is_nominal(bucket.path, world.admission.demand(bucket.shape))
