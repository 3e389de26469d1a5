"""When evictions for a waiting AppWrapper are considered, and for which one (core R10).

Refused AppWrappers are looked at after the walk, in the order of the line. After a plan that found
no victims the next one waits for half of ``backoffTime``, as with verdicts. A look is bounded work,
and there is at most one a second, so plans that fail cost a share of the time however many wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from mcad.core.cluster import World
from mcad.core.cycle import pre_enqueue
from mcad.core.cycle.admit import in_order
from mcad.core.cycle.borrow_wait import ask_back
from mcad.core.preemption import eviction
from mcad.core.preemption.eviction_pace import NextEvictions
from mcad.core.preemption.targets import evictions
from mcad.core.queue.equivalence import Bucket
from mcad.core.reservations import end_times, manage, release_set
from mcad.core.reservations.precedence import outranked
from mcad.core.reservations.release_set import Drain
from mcad.core.snapshot.removal import Room, without_those_to_spare
from mcad.core.state.bounds import EVICTION_STEPS, RUN_TIME_DOUBLES_MAX, TEARDOWN_MARGIN, Look
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN
from mcad.core.state.model import Workload
from mcad.core.state.reservation import EVICTIONS, ClaimReason
from mcad.core.state.units import Duration, Instant

_HIGHEST = 2**31
"""Above any priority."""


def walk(world: World) -> None:
    """One look, if it is time for one."""
    if not (_is_possible(world) and (len(world.queue) or world.claims)):
        return
    if _may_evict_now(world) and world.is_time_for(Look.EVICTIONS):
        _look(world, _due(world))


def _may_evict_now(world: World) -> bool:
    """Whether evictions may begin: while a preemptor waits for its own, no other one evicts."""
    due = world.eviction_pace.next
    if due is None or due.at <= world.now or _still_waits(world, due) is None:
        return True
    world.wake_at(due.at)
    return False


def _still_waits(world: World, due: NextEvictions) -> Entry | None:
    """The preemptor, None if it does not wait any more."""
    entry = world.entries.get(due.preemptor)
    waits = entry is not None and (entry in world.queue or entry.uid in world.claims)
    return entry if waits else None


def _is_possible(world: World) -> bool:
    settings = world.settings
    return settings.preemption or (settings.reclaim and world.forest.has_trees)


def _due(world: World) -> list[Bucket]:
    """The AppWrappers to be tried: the oldest last plan first, then in the order of the line. Those
    without a right are left out before any order is asked for: at overload that is nearly all."""
    last = world.now - world.settings.backoff // 2
    rightful = world.queue.buckets() if world.settings.preemption else _within_their_shares(world)
    due = (bucket for bucket in rightful if bucket.planned_at <= last)
    return sorted(in_order(world, due), key=lambda bucket: bucket.planned_at)


def _within_their_shares(world: World) -> Iterator[Bucket]:
    """Those with a leaf in one of the trees that has something left of all that they demand."""
    for path, buckets in world.queue.by_path():
        spent = world.forest.spent(path)
        for bucket in buckets:
            demanded = [resource for resource, _ in bucket.shape.fixed]
            if any(of_tree.isdisjoint(demanded) for of_tree in spent):
                yield bucket


def _look(world: World, due: Sequence[Bucket]) -> None:
    left = EVICTION_STEPS
    everybody: Survey | None = None
    for entry in chain(_next_preemptor(world), _due_owners(world), _firsts(world, due)):
        if left <= 0:
            world.is_time_for(Look.EVICTIONS)  # the rest at the next look
            return
        if _may_win(world, entry):
            if everybody is None:
                everybody = survey(world)
            if not _has_a_right(world, entry, everybody.lowest):
                continue
            sought = _try(world, entry, everybody)
            left -= sought.steps
            if world.eviction_pace.next is not None:
                return
            if sought.drain is not None:
                everybody = None  # they are candidates no more


def _next_preemptor(world: World) -> Iterator[Entry]:
    """The preemptor with evictions that are due, if it still waits. Its status ceases to announce
    them."""
    due, world.eviction_pace.next = world.eviction_pace.next, None
    entry = _still_waits(world, due) if due is not None else None
    if entry is not None:
        _tell_anew(world, entry)
        yield entry


def _tell_anew(world: World, entry: Entry) -> None:
    """The reason to wait is another one by now."""
    entry.told = None
    world.to_tell[entry.uid] = None


def _firsts(world: World, due: Iterable[Bucket]) -> Iterator[Entry]:
    """The first of each bucket, which counts as looked at when its turn comes."""
    for bucket in due:
        if bucket.members:
            bucket.planned_at = world.now
            ask_back(world, bucket)  # its leaf may have got room since it was refused
            yield bucket.first()


def _due_owners(world: World) -> Iterator[Entry]:
    """Those that have a reservation and wait for others to end: by that they lose no right to have
    others evicted, which may be sooner."""
    last = world.now - world.settings.backoff // 2
    for entry in list(world.claims.values()):
        waits = entry.claim is not None and entry.claim.reason not in EVICTIONS
        if waits and entry.planned_at <= last:
            entry.planned_at = world.now
            yield entry


def _may_win(world: World, entry: Entry) -> bool:
    """Whether nothing but room keeps it from going, and no claim of its own was in vain lately."""
    if entry.workload.never_preempts or world.now < entry.eviction_patience.until:
        return False
    return _has_a_right(world, entry) and pre_enqueue.obstacle(world, entry) is None


def _has_a_right(world: World, entry: Entry, lowest: int | None = None) -> bool:
    """Whether there may be a victim for it (targets.py), where ``lowest`` is the lowest priority of
    all candidates, if that is known. It is cheaper to ask that first: what waits at overload mostly
    has all of its share and more."""
    settings, work = world.settings, entry.workload
    if settings.preemption and (lowest is None or lowest < work.priority):
        return True
    if entry.uid in world.claims:  # what it asks for is charged to its shares already
        return settings.reclaim
    demand = world.admission.demand(world.capacity.shape(work.sets))
    return settings.reclaim and world.forest.may_reclaim(world.path(entry), demand)


class Survey(NamedTuple):
    """The AppWrappers that hold room: the ``candidates`` for eviction by uid, in order; the uids of
    ``leavers``, which go soon without one, so that nothing is evicted where they make room; and the
    ``opponents`` of candidates, the preemptors that evicted them before."""

    candidates: dict[str, Workload]
    leavers: list[str]
    opponents: dict[str, dict[str, Instant]]

    @property
    def lowest(self) -> int:
        """The lowest priority of all candidates."""
        return min((one.priority for one in islice(self.candidates.values(), 1)), default=_HIGHEST)


def survey(world: World) -> Survey:
    """All that hold room, in the order of eviction: the lowest priority first, then the latest
    dispatch."""
    found: list[tuple[int, int, str, Entry]] = []
    leavers: list[str] = []
    opponents: dict[str, dict[str, Instant]] = {}
    for uid in world.capacity.reserved():
        entry = world.entries.get(uid)
        if entry is None or uid in world.evictions:
            continue  # its room is promised to another preemptor already
        if eviction.may_be_evicted(entry):
            since = entry.record.since
            if since + _run_time(world, entry) <= world.now:
                found.append((entry.workload.priority, -since, uid, entry))
                if entry.opponents:
                    opponents[uid] = entry.opponents
        elif _leaves_soon(world, entry):
            leavers.append(uid)
    found.sort()
    return Survey({uid: one.workload for _, _, uid, one in found}, leavers, opponents)


def _run_time(world: World, entry: Entry) -> Duration:
    """How long it runs at least: twice as long after each eviction, so that a borrower gets work
    done in the end."""
    count = entry.eviction.count if entry.eviction is not None else 0
    return world.settings.min_run_time << min(count, RUN_TIME_DOUBLES_MAX)


def _leaves_soon(world: World, entry: Entry) -> bool:
    if entry.phase not in TEARING_DOWN or entry.keeps_room:
        return False
    return (
        world.now - entry.record.entered < end_times.teardown_time(world, entry) + TEARDOWN_MARGIN
    )


class Sought(NamedTuple):
    """The result of a plan: the victims, if their eviction is of use, the leavers that are waited
    for as well, where the preemptor goes; and how much work the plan was, in ``steps``."""

    steps: int
    victims: tuple[tuple[str, ClaimReason], ...] = ()
    reason: ClaimReason = ClaimReason.PREEMPTING
    drain: Drain | None = None


def plan(world: World, entry: Entry, everybody: Survey) -> Sought:
    """The victims that would make room for a waiting AppWrapper; nothing is changed. No pair meets
    twice, whichever of the two was evicted: shares and priorities may change, and two that evicted
    each other in turn would do nothing else. After a restart the last time of each is known."""
    departures = release_set.what_if(world, entry, (*outranked(world, entry), entry.uid))
    leavers = [uid for uid in everybody.leavers if departures.leave(uid)]
    met = _met(entry, everybody)
    candidates = everybody.candidates
    if met:
        candidates = {uid: one for uid, one in candidates.items() if uid not in met}
    found = evictions(entry.workload, candidates, departures, world.settings)
    if found is None or not found.victims:
        return Sought(departures.steps)
    room = Room((), found.plan)
    if leavers:
        room = without_those_to_spare(departures, leavers) or Room(tuple(leavers), found.plan)
    leaving = (*room.leaving, *(uid for uid, _ in found.victims))
    return Sought(departures.steps, found.victims, found.reason, Drain(room.plan, leaving))


def _met(entry: Entry, everybody: Survey) -> set[str]:
    """The uids with which it met: evicted for it, whatever came of that, or it for them."""
    lost = {uid for uid, known in everybody.opponents.items() if entry.uid in known}
    return lost | entry.opponents.keys()


def _try(world: World, entry: Entry, everybody: Survey) -> Sought:
    """Evict for a waiting AppWrapper, if that is of use."""
    sought = plan(world, entry, everybody)
    if sought.drain is None:
        return sought
    pace = world.eviction_pace
    if pace.may_begin(entry.uid, len(sought.victims), world.now):
        pace.spend(len(sought.victims), world.now)
        world.unclaim(entry)
        manage.clear(world, entry, sought.drain.plan)
        manage.make(world, entry, sought.reason, sought.drain)
        eviction.begin(world, entry, sought.victims)
    else:
        _tell_anew(world, entry)
        world.wake_at(pace.next.at if pace.next is not None else world.now)
    return sought
