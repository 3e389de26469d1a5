"""A borrower waits for those that ask within their share, if both want the same nodes.

Without this a borrower took what came free before the owner of the share had room for a whole gang,
and was evicted for it minutes later: work for nothing. As reclaim evicts nothing within
``minRunTime`` of its dispatch, an AppWrapper that asks within its share gets it back within that
time, if evicting borrowers can give it; so none keeps others waiting for longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from mcad.core.cluster import World
from mcad.core.cycle.head_of_line import IMPOSSIBLE
from mcad.core.queue.equivalence import NOBODY, Bucket
from mcad.core.state.bounds import OWNERS_MAX
from mcad.core.state.units import Instant


def ask_back(world: World, bucket: Bucket) -> None:
    """It was refused: if its first asks within its share, borrowers wait for it from now on."""
    if not (world.turns.has_owners and bucket.path):
        return
    if world.turns.has_its_share(bucket) or not _may_ask_back(world, bucket):
        bucket.asks_back = NOBODY
        return
    first = bucket.first().uid
    if bucket.asks_back[0] != first:
        bucket.asks_back = (first, world.now)
    if world.now < _until(world, bucket):
        world.ask_back[bucket] = None


class Lending:
    """The AppWrappers that keep borrowers waiting in one pass; looked for when the first borrower
    would go, and no further than until one is found that it waits for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._owners: list[Bucket] = []
        self._others = iter(list(islice(world.ask_back, OWNERS_MAX)))

    def waits(self, bucket: Bucket) -> bool:
        """Whether the first of the bucket lets another go first, if it fits."""
        world = self._world
        if not (world.ask_back and bucket.path) or _is_within(world, bucket):
            return False
        leaves = dict(bucket.path)
        return any(
            any(leaf != leaves.get(tree, leaf) for tree, leaf in owner.path)
            and world.capacity.compete(owner.shape, bucket.shape)
            for owner in chain(self._owners, self._more())
            if owner.members
        )

    def _more(self) -> Iterator[Bucket]:
        """The buckets with a first that asks within its share and has kept borrowers waiting for
        less than ``minRunTime``, in which what runs now may not be evicted, and until it is asked
        again."""
        world = self._world
        for bucket in self._others:
            ask_back(world, bucket)
            until = _until(world, bucket)
            if world.now < until:
                world.wake_at(until)
                self._owners.append(bucket)
                yield bucket
            else:
                del world.ask_back[bucket]


def _until(world: World, bucket: Bucket) -> Instant:
    return bucket.asks_back[1] + world.settings.min_run_time + world.settings.backoff


def _may_ask_back(world: World, bucket: Bucket) -> bool:
    if not bucket.members or bucket.refusal is None or bucket.refusal.kind in IMPOSSIBLE:
        return False
    entry = bucket.first()
    if entry.workload.never_preempts or world.now < entry.eviction_patience.until:
        return False
    return _is_within(world, bucket)


def _is_within(world: World, bucket: Bucket) -> bool:
    return world.forest.is_nominal(bucket.path, world.admission.demand(bucket.shape))
