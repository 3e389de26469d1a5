"""One pass over the line: who goes, who is refused, and who has to be told (core R1-R6, R11).

1. take up what was begun   2. timers   3. completion and sweep
4. adrift reservations find a home      5. dispatch in order   6. tell the refused
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice

from mcad.core import attempts, completion, needs, obstacles, recovery, rights, teardown
from mcad.core.capacity import Glance
from mcad.core.commands import Urgency
from mcad.core.entry import Entry, Hold
from mcad.core.lifecycle import Phase
from mcad.core.model import Instant, Policy, Refusal, RefusalKind
from mcad.core.pacing import (
    DISPATCHES_PER_PASS,
    REPORTS_PER_PASS,
    RESTATE_INTERVAL,
    RESTATED_PER_SHAPE,
)
from mcad.core.queue import Bucket, Key
from mcad.core.reasons import (
    FRONT_OF_QUEUE,
    INSUFFICIENT_RESOURCES,
    NOT_RUNNABLE,
    ConditionType,
    EventReason,
    HoldReason,
    explain_refusal,
)
from mcad.core.timers import Timer
from mcad.core.world import AWAITED, World

_IMPOSSIBLE = frozenset({RefusalKind.NO_NODE, RefusalKind.TOO_LARGE})
_BLOCKED = Refusal(RefusalKind.BLOCKED)


def decide(world: World, *, may_dispatch: bool) -> None:
    """One pass."""
    if not world.started:
        _start(world)
    recovery.recover(world)
    needs.watch(world)
    for entry, timer in world.ripe():
        _rings(world, entry, timer)
    rights.test(world)
    completion.judge(world)
    teardown.sweep(world)
    _settle_changed(world)
    world.capacity.rehome()
    if may_dispatch:
        _dispatch(world)
        _tell(world)


def _start(world: World) -> None:
    """The barrier is passed: our epoch is the lease's, and above every one found (P11, P12)."""
    found = [e.dispatch.epoch for e in world.entries.values() if e.dispatch is not None]
    world.epoch = max(world.epoch, 1 + max(found, default=0))
    world.started = True


def _rings(world: World, entry: Entry, timer: Timer) -> None:
    match timer:
        case Timer.STATUS:
            if entry.flying is None and (entry.dirty or entry.phase in AWAITED):
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
            needs.take_back_unplaced(world, entry)
        case Timer.RESERVATION:
            needs.give_up(world, entry)
        case Timer.TOMBSTONE:
            teardown.visit(world, entry)


def _repeat_step(world: World, entry: Entry) -> None:
    match entry.phase:
        case Phase.CREATING:
            attempts.proceed(world, entry)
        case Phase.DELETING:
            teardown.delete_all(world, entry)
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


# -- dispatching ---------------------------------------------------------------------------------


class _Gate:
    """What the refused head of the line does to those behind it (core R6)."""

    def __init__(self, world: World) -> None:
        settings = world.settings
        self._world = world
        self._strict = settings.policy is Policy.STRICT_FIFO
        self._holding = settings.head_of_line_holding
        self._blocking: list[Bucket] = []
        self._closed = False
        self._has_head = False

    @property
    def open_to_all(self) -> bool:
        """Nobody can be blocked, so refused buckets need not even be looked at in order."""
        return not self._strict and not self._holding

    def blocks(self, bucket: Bucket) -> bool:
        """Whether somebody further ahead keeps this bucket from going."""
        capacity = self._world.capacity
        return self._closed or any(
            capacity.compete(ahead.shape, bucket.shape) for ahead in self._blocking
        )

    def refused(self, bucket: Bucket, refusal: Refusal) -> None:
        """The head of a bucket was refused: it may block those behind. The impossible never do."""
        if self.open_to_all or refusal.kind in _IMPOSSIBLE:
            return
        if not self._world.capacity.would_fit_emptied(bucket.shape):
            return
        if self._strict:
            self._blocking.append(bucket)
        if self._has_head:
            return
        self._has_head = True
        self._hold(bucket.first())

    def _hold(self, head: Entry) -> None:
        now = self._world.now
        head.head_since = head.head_since or now
        until = head.head_since + self._holding
        if self._holding and now < until:
            self._closed = True
            self._world.wake_at(until)


def _dispatch(world: World) -> None:
    gate = _Gate(world)
    line = _heads(world, gate)
    begun = 0
    while line and begun < DISPATCHES_PER_PASS:
        _, _, bucket = line[0]
        if _refused(world, gate, bucket):
            heappop(line)
            continue
        entry = bucket.first()
        hindrance = obstacles.obstacle(world, entry)
        if hindrance is not None:
            world.hold(entry, hindrance)
        elif _reserved(world, bucket, entry):
            begun += 1
            _stand_in_front(world, entry)
            attempts.begin(world, entry)
        order = heappop(line)[1]
        if bucket.members:
            heappush(line, (bucket.key(world.now), order, bucket))
    if line:
        world.wake_at(world.now)
    elif len(world.queue):
        _look_again(world)


def _look_again(world: World) -> None:
    """Wake twice in ``backoffTime`` while somebody waits, by one timer however often we decide.

    At each ring those are tested whose verdict is half of ``backoffTime`` old or older, so none
    gets older than all of it. A timer per verdict would never end: each ring would wish another.
    """
    half = world.settings.backoff // 2
    if half and world.look_again_at <= world.now:
        world.look_again_at = world.now + half
        world.wake_at(world.look_again_at)


def _heads(world: World, gate: _Gate) -> list[tuple[Key, int, Bucket]]:
    line = []
    for order, bucket in enumerate(world.queue.buckets()):
        if gate.open_to_all and _still_refused(world, bucket):
            continue
        line.append((bucket.key(world.now), order, bucket))
    heapify(line)
    return line


def _still_refused(world: World, bucket: Bucket) -> bool:
    """Falls wake nobody: a refusal stands until a pool of the shape rises (core R4).

    It is tested again within ``backoffTime`` all the same (``_look_again``), for the day on which
    this is wrong.
    """
    refusal = bucket.refusal
    if refusal is None or refusal.kind is RefusalKind.BLOCKED:
        return False
    fresh = world.now - bucket.tested_at < world.settings.backoff // 2
    return fresh and bucket.refused_at == world.capacity.rises(bucket.shape)


def _refused(world: World, gate: _Gate, bucket: Bucket) -> bool:
    if gate.blocks(bucket):
        _refuse(world, bucket, _BLOCKED)
        return True
    if _still_refused(world, bucket):
        refusal = bucket.refusal
    else:
        refusal = world.capacity.refusal(bucket.shape)
        bucket.tested_at = world.now
    if refusal is None:
        bucket.refusal = None
        return False
    _refuse(world, bucket, refusal)
    gate.refused(bucket, refusal)
    return True


def _refuse(world: World, bucket: Bucket, refusal: Refusal) -> None:
    before = bucket.refusal
    bucket.refusal, bucket.refused_at = refusal, world.capacity.rises(bucket.shape)
    if before is not None and _signature(before) == _signature(refusal):
        return
    for entry in bucket.front(RESTATED_PER_SHAPE):
        if entry.told is not None:
            world.to_tell[entry.uid] = None


def _reserved(world: World, bucket: Bucket, entry: Entry) -> bool:
    work = entry.workload
    refusal = world.capacity.reserve(work.uid, entry.attempt + 1, bucket.shape, work.sets)
    if refusal is not None:
        _refuse(world, bucket, refusal)
    return refusal is None


def verdict(glance: Glance, bucket: Bucket) -> Refusal | None:
    """The present verdict on a bucket, for people: with live figures, and nothing is changed."""
    if bucket.refusal is not None and bucket.refusal.kind is RefusalKind.BLOCKED:
        return bucket.refusal
    return glance.refusal(bucket.shape)


def _stand_in_front(world: World, entry: Entry) -> None:
    entry.set_condition(ConditionType.HEAD_OF_LINE, world.now, reason=FRONT_OF_QUEUE)


# -- telling -------------------------------------------------------------------------------------


def _signature(refusal: Refusal) -> tuple[RefusalKind, str]:
    """What has to change before a refusal is worth another write (design section 5)."""
    return (refusal.kind, refusal.binding)


def _tell(world: World) -> None:
    for uid in list(islice(world.to_tell, REPORTS_PER_PASS)):
        entry = world.entries.get(uid)
        if entry is not None and _is_untested(world, entry):
            continue
        del world.to_tell[uid]
        if entry is not None and entry.phase is Phase.WAITING:
            _tell_one(world, entry)
    first = world.entries.get(next(iter(world.to_tell), ""))
    if first is not None and not _is_untested(world, first):
        world.wake_at(world.now)


def _is_untested(world: World, entry: Entry) -> bool:
    """In line, but the pass ended before its shape had a verdict."""
    return entry in world.queue and world.queue.refusal_of(entry) is None


def _tell_one(world: World, entry: Entry) -> None:
    refusal = world.queue.refusal_of(entry)
    if entry.hold is not None:
        _tell_hold(world, entry, entry.hold)
    elif refusal is not None:
        _tell_refusal(world, entry, refusal)


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


def _tell_refusal(world: World, entry: Entry, refusal: Refusal) -> None:
    if entry.told is not None and world.now - entry.told_at < RESTATE_INTERVAL:
        if Timer.RESTATE not in entry.timers:
            world.wake_in(entry, Timer.RESTATE, entry.told_at + RESTATE_INTERVAL - world.now)
        return
    on_record = entry.restored and _shows_refusal(entry)
    entry.restored = False
    entry.told, entry.told_at = refusal, world.now
    entry.set_condition(ConditionType.HEAD_OF_LINE, world.now, reason=FRONT_OF_QUEUE)
    if on_record:
        # After a restart the figures stay frozen at the refusal that is on record.
        entry.announced = True
        return
    message = f"{INSUFFICIENT_RESOURCES} {explain_refusal(refusal)}".rstrip()
    entry.set_condition(ConditionType.BACKOFF, world.now, reason=NOT_RUNNABLE, message=message)
    world.settle(entry)
    if not entry.announced:
        entry.announced = True
        world.announce(entry, EventReason.QUEUED, message, action="Queue")


def _shows_refusal(entry: Entry) -> bool:
    shown = entry.conditions.get(ConditionType.BACKOFF)
    return shown is not None and shown.status and shown.reason == NOT_RUNNABLE


def _restate_if_changed(world: World, entry: Entry) -> None:
    current = world.queue.refusal_of(entry)
    if current is None or entry.told is None:
        return
    if _signature(current) != _signature(entry.told):
        world.to_tell[entry.uid] = None


def head_of_line(world: World, glance: Glance, now: Instant) -> Entry | None:
    """First in order among those refused by capacity that would fit if AppWrappers left (R6).

    For people: nothing is changed.
    """
    for bucket in sorted(world.queue.buckets(), key=lambda one: one.key(now)):
        refusal = glance.refusal(bucket.shape)
        if refusal is None or refusal.kind in _IMPOSSIBLE:
            continue
        if glance.would_fit_emptied(bucket.shape):
            return bucket.first()
    return None
