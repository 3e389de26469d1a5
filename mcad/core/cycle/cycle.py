"""One pass: what is done, in this order, and which AppWrappers are told (core R1-R6, R11).

1. take up what was begun   2. timers   3. completion and sweep
4. adrift reservations find a home, and what has all that it claims goes   5. dispatch in order
6. what is evicted, what is first for too long, and what may go ahead of claims
7. tell the refused, and the trees
"""

from __future__ import annotations

from itertools import islice

from mcad.core.attempts import access, create, leftovers, orphans, recovery, remains, teardown
from mcad.core.cluster import AWAITED, World
from mcad.core.commands import Urgency
from mcad.core.cycle.admit import (
    HELD_BACK,
    dispatch,
    rests_on_absence,
    signature,
    stand_in_front,
)
from mcad.core.cycle.head_of_line import IMPOSSIBLE
from mcad.core.preemption import eviction, search
from mcad.core.preemption.eviction_pace import tells_of_due_evictions
from mcad.core.queue.equivalence import Bucket
from mcad.core.quota import status_writes
from mcad.core.quota.absent import tells_of_absence
from mcad.core.quota.explain import Words
from mcad.core.reservations import backfill, manage, starvation
from mcad.core.running import monitor, pod_timeouts, reset
from mcad.core.snapshot.glance import Glance
from mcad.core.state.bounds import REPORTS_PER_PASS, RESTATE_INTERVAL
from mcad.core.state.entry import Entry, Hold
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import (
    INSUFFICIENT_QUOTA,
    INSUFFICIENT_RESOURCES,
    NOT_RUNNABLE,
    ConditionType,
    EventReason,
    HoldReason,
)
from mcad.core.state.refusal import Refusal
from mcad.core.state.timers import Timer


def decide(world: World, *, may_dispatch: bool) -> None:
    """One pass."""
    is_first = not world.started
    if is_first:
        _start(world)
    status_writes.refresh(world)
    recovery.recover(world)
    if is_first:
        leftovers.take_up(world)
    pod_timeouts.watch(world)
    for entry, timer in world.ripe():
        _rings(world, entry, timer)
    access.test(world)
    monitor.judge(world)
    orphans.sweep(world)
    _settle_changed(world)
    world.capacity.rehome()
    if may_dispatch:
        manage.keep(world)
        reset.resume(world)
        eviction.proceed(world)
        dispatch(world)
        search.walk(world)
        starvation.watch(world)
        backfill.walk(world)
        _tell(world)
        status_writes.tell(world)


def _start(world: World) -> None:
    """The barrier is passed: our epoch is the lease's, and above every one found (P11, P12)."""
    found = [e.dispatch.epoch for e in world.entries.values() if e.dispatch is not None]
    world.epoch = max(world.epoch, 1 + max(found, default=0))
    world.started = True
    evictions = [e.eviction.at for e in world.entries.values() if e.eviction is not None]
    world.eviction_pace.recall(evictions)
    status_writes.expect_trees(world)


def _rings(world: World, entry: Entry, timer: Timer) -> None:
    match timer:
        case Timer.STATUS:
            if entry.writes.flying is None and (entry.writes.dirty or entry.phase in AWAITED):
                world.settle(entry, Urgency.DISPATCH)
        case Timer.STEP:
            _repeat_step(world, entry)
        case Timer.HOLD:
            world.line_up(entry)
        case Timer.CEILING:
            world.rank_anew(entry)
        case Timer.RESTATE:
            _restate_if_changed(world, entry)
        case Timer.PLACEMENT:
            pod_timeouts.take_back_unplaced(world, entry)
        case Timer.RESERVATION:
            pod_timeouts.give_up(world, entry)
        case Timer.TOMBSTONE:
            remains.visit(world, entry)
        case _:
            world.to_judge[entry.uid] = None


def _repeat_step(world: World, entry: Entry) -> None:
    match entry.phase:
        case Phase.CREATING:
            create.proceed(world, entry)
        case Phase.DELETING:
            teardown.delete_rest(world, entry)
        case Phase.VERIFYING:
            teardown.look(world, entry)
        case _:
            pass


def _settle_changed(world: World) -> None:
    for uid in world.to_settle:
        entry = world.entries.get(uid)
        if entry is not None:
            world.settle(entry)
    world.to_settle.clear()


# -- telling -------------------------------------------------------------------------------------


def _tell(world: World) -> None:
    words = Words(world.forest)
    for uid in list(islice(world.to_tell, REPORTS_PER_PASS)):
        entry = world.entries.get(uid)
        if entry is not None and _is_untested(world, entry):
            continue
        del world.to_tell[uid]
        if entry is not None and entry.phase is Phase.WAITING:
            _tell_one(world, entry, words)
    first = world.entries.get(next(iter(world.to_tell), ""))
    if first is not None and not _is_untested(world, first):
        world.wake_at(world.now)


def _is_untested(world: World, entry: Entry) -> bool:
    """In line, but the pass ended before its shape had a verdict."""
    return entry in world.queue and world.queue.refusal_of(entry) is None


def _tell_one(world: World, entry: Entry, words: Words) -> None:
    refusal, before = world.queue.refusal_of(entry), entry.path
    entry.path = world.path(entry)
    if entry.hold is not None:
        _tell_hold(world, entry, entry.hold)
    elif refusal is not None:
        _tell_refusal(world, entry, refusal, words)
    if entry.path != before:
        world.settle(entry)  # if there was nothing else to tell


def _tell_hold(world: World, entry: Entry, hold: Hold) -> None:
    if hold.reason == HoldReason.DELETED:
        return
    entry.told = None
    before = entry.conditions.get(ConditionType.BACKOFF)
    entry.set_condition(ConditionType.BACKOFF, world.now, reason=hold.reason, message=hold.message)
    world.settle(entry)
    if entry.restored and entry.conditions[ConditionType.BACKOFF] == before:
        entry.announced = True  # a restart does not repeat what is on record
    entry.restored = False
    if not entry.announced and entry.workload.problem is not None:
        entry.announced = True
        world.announce(entry, EventReason.REFUSED, hold.message, action="Parse", warning=True)


def _tell_refusal(world: World, entry: Entry, refusal: Refusal, words: Words) -> None:
    if entry.told is not None and world.now - entry.told_at < RESTATE_INTERVAL:
        if Timer.RESTATE not in entry.timers:
            world.wake_in(entry, Timer.RESTATE, entry.told_at + RESTATE_INTERVAL - world.now)
        return
    due = world.eviction_pace.explain(entry.uid)
    is_brief = bool(due) or rests_on_absence(refusal)
    on_record = entry.restored and not is_brief and _shows_refusal(entry)
    entry.restored = False
    entry.told, entry.told_at = refusal, world.now
    stand_in_front(world, entry)
    if on_record:
        # After a restart the figures stay frozen at the refusal that is on record.
        entry.announced = True
        return
    lack = INSUFFICIENT_RESOURCES if refusal.quota is None else INSUFFICIENT_QUOTA
    why = (lack, words.explain(refusal), due)
    message = " ".join(filter(None, why))
    entry.set_condition(ConditionType.BACKOFF, world.now, reason=NOT_RUNNABLE, message=message)
    world.settle(entry)
    if not entry.announced:
        entry.announced = True
        world.announce(entry, EventReason.QUEUED, message, action="Queue")


def _shows_refusal(entry: Entry) -> bool:
    """Whether the record has one, and nothing in it that may be over by now."""
    shown = entry.conditions.get(ConditionType.BACKOFF)
    if shown is None or not shown.status or shown.reason != NOT_RUNNABLE:
        return False
    return not (tells_of_absence(shown.message) or tells_of_due_evictions(shown.message))


def _restate_if_changed(world: World, entry: Entry) -> None:
    current = world.queue.refusal_of(entry)
    if current is None or entry.told is None:
        return
    if signature(current) != signature(entry.told):
        world.to_tell[entry.uid] = None


# -- for people ---------------------------------------------------------------------------------


def verdict(world: World, glance: Glance, bucket: Bucket) -> Refusal | None:
    """The present verdict on a bucket, for people: with live figures, and nothing is changed. What
    would fit may be held back."""
    refusal = _by_quota(world, glance, bucket) or glance.refusal(bucket.shape)
    if refusal is None and bucket.refusal is not None and bucket.refusal.kind in HELD_BACK:
        return bucket.refusal
    return refusal


def _by_quota(world: World, glance: Glance, bucket: Bucket) -> Refusal | None:
    return world.forest.refusal(bucket.path, glance.demand(bucket.shape)) if bucket.path else None


def may_be_head(world: World, glance: Glance, bucket: Bucket) -> bool:
    """Whether the first of a bucket is head of the line, if none before it is: refused by capacity,
    but would fit if AppWrappers left (R6). For people: nothing is changed."""
    if _by_quota(world, glance, bucket) is not None:
        return False
    refusal = glance.refusal(bucket.shape)
    if refusal is None or refusal.kind in IMPOSSIBLE:
        return False
    return glance.would_fit_emptied(bucket.shape)
