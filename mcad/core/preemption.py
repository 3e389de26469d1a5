"""When somebody who waits may have others evicted, and for whom that is tried (core R10).

Those who were refused are looked at after the walk, in the order of the line; one whose plan came
to nothing not again before half of ``backoffTime``, as with verdicts. A look is bounded work, and
there is at most one a second, so plans that fail cost a share of the time however many wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcad.core import claims, evicting, obstacles
from mcad.core.bucket import Bucket
from mcad.core.departures import without_those_to_spare
from mcad.core.dispatching import refused
from mcad.core.drains import Drain
from mcad.core.entry import Entry
from mcad.core.lifecycle import TEARING_DOWN
from mcad.core.model import Fit, Workload
from mcad.core.pacing import EVICTION_LOOK, EVICTION_STEPS, STUCK_AFTER
from mcad.core.passing import outranks
from mcad.core.victims import evictions
from mcad.core.world import World


def walk(world: World) -> None:
    """One look, if it is time for one."""
    if not (_is_possible(world) and len(world.queue)):
        return
    due_at = world.evictions_looked_at + EVICTION_LOOK
    if world.now < due_at:
        world.wake_at(due_at)
        return
    world.evictions_looked_at = world.now
    _look(world, _due(world))


def _is_possible(world: World) -> bool:
    """Nobody is evicted where nodes are not looked at: the winner might not fit after all."""
    settings = world.settings
    if settings.fit is not Fit.NODES:
        return False
    return settings.preemption or (settings.reclaim and world.forest.has_trees)


def _due(world: World) -> list[Bucket]:
    """Those to be tried: whose last plan is the oldest first, in the order of the line."""
    last = world.now - world.settings.backoff // 2
    found = [bucket for bucket in refused(world) if bucket.planned_at <= last]
    found.sort(key=lambda bucket: bucket.planned_at)
    return found


def _look(world: World, due: Sequence[Bucket]) -> None:
    left, others = EVICTION_STEPS, None
    for bucket in due:
        if left <= 0:
            world.wake_at(world.now + EVICTION_LOOK)
            return
        bucket.planned_at = world.now
        if bucket.members and _may_win(world, bucket.first()):
            if others is None:
                others = _candidates(world)
            left -= _try(world, bucket, others)


def _may_win(world: World, entry: Entry) -> bool:
    """Whether nothing but room keeps it from going, and no claim of its own was in vain lately."""
    known = world.patience.get(entry.uid)
    if entry.workload.never_preempts or (known is not None and world.now < known.until):
        return False
    return obstacles.obstacle(world, entry) is None


def _candidates(world: World) -> list[Entry]:
    """Who may be evicted at all, in order: the lowest priority, then the latest dispatch."""
    latest = world.now - world.settings.min_run_time
    found = [
        (entry.workload.priority, -entry.record.since, entry.uid, entry)
        for entry in _with_room(world)
        if evicting.may_be_evicted(entry) and entry.record.since <= latest
    ]
    return [entry for *_, entry in sorted(found)]


def _with_room(world: World) -> Iterator[Entry]:
    for uid in world.capacity.reserved():
        entry = world.entries.get(uid)
        if entry is not None:
            yield entry


def _leavers(world: World) -> list[str]:
    """The uids of those who leave anyway, and soon: nobody is evicted where they make room."""
    return [
        entry.uid
        for entry in _with_room(world)
        if entry.phase in TEARING_DOWN
        and not entry.keeps_room
        and world.now - entry.record.entered < STUCK_AFTER
    ]


def _try(world: World, bucket: Bucket, others: Sequence[Entry]) -> int:
    """Evict for the first of the bucket, if that is of use; returns the work that it was."""
    entry = bucket.first()
    lifted = [uid for uid in world.claims if outranks(entry, world.entries[uid])]
    departures = world.admission.what_if(bucket.shape, bucket.path, lifted)
    leavers = [uid for uid in _leavers(world) if departures.leave(uid)]
    candidates = _evictable_for(world, entry, others)
    found = evictions(entry.workload, candidates, departures, world.settings)
    if found is not None and found.victims:
        room = without_those_to_spare(departures, leavers)
        if room is not None:
            leaving = (*room.leaving, *(uid for uid, _ in found.victims))
            claims.clear(world, entry, room.plan)
            claims.make(world, entry, found.reason, Drain(room.plan, leaving))
            evicting.begin(world, entry, found.victims)
    return departures.steps


def _evictable_for(world: World, entry: Entry, others: Sequence[Entry]) -> list[Workload]:
    """No pair meets twice, and whoever is to leave leaves for one only."""
    return [
        one.workload
        for one in others
        if one.uid not in world.evictions
        and evicting.may_be_evicted(one)
        and (one.eviction is None or one.eviction.by != entry.uid)
    ]
