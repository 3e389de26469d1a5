"""The walk along the line: which go, and which are refused (core R4-R6, R11).

A walk leads from the first in line to the last and takes as many passes as it needs: each ends at a
number of dispatches or at a bound of counted work, and the next one goes on there, so that those at
the end get their verdict however often those in front are woken. All that are ahead of that point
have had a verdict in this walk. If room rose for one of them since, it is judged again before any
behind it goes, with up to half of the work of the pass; what is left over waits for the next walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from mcad.core.attempts import create
from mcad.core.cluster import World
from mcad.core.cycle import pre_enqueue
from mcad.core.cycle.borrow_wait import Lending, ask_back
from mcad.core.cycle.head_of_line import IMPOSSIBLE, Gate
from mcad.core.queue.equivalence import Bucket, Turn
from mcad.core.quota.records import Designation
from mcad.core.state.bounds import (
    DISPATCHES_PER_PASS,
    HOLD_STEPS,
    RESTATED_PER_SHAPE,
    STEPS_PER_PASS,
)
from mcad.core.state.entry import Entry
from mcad.core.state.reasons import FRONT_OF_QUEUE, ConditionType
from mcad.core.state.refusal import Refusal, RefusalKind

_BLOCKED, _LENDING = Refusal(RefusalKind.BLOCKED), Refusal(RefusalKind.LENDING)
HELD_BACK = frozenset({RefusalKind.BLOCKED, RefusalKind.LENDING})
"""Refusals of those that might fit, but let another one go first."""

Line = list[tuple[Turn, Bucket]]
"""A heap of buckets by the keys of their heads, of which no two are equal."""


class _Effort:
    """The work of one pass. ``leftover``: one ahead was left for the next walk."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._resumed_at = world.resume_at
        self._begun = world.admission.steps
        self._rest_begun: int | None = None
        self._dispatches = 0
        self._holds = 0
        self.leftover = False

    def dispatched(self) -> None:
        """One more goes."""
        self._dispatches += 1

    def held(self) -> None:
        """One more does not, for a reason of its own."""
        self._holds += 1

    def is_over(self, key: Turn) -> bool:
        """Whether the pass ends before this head, which needs a verdict."""
        if self._dispatches >= DISPATCHES_PER_PASS:
            return True
        if self._is_passed(key):
            return self._spent() >= STEPS_PER_PASS
        if self._rest_begun is None:
            self._rest_begun = self._spent()
        share = STEPS_PER_PASS if self._resumed_at is None else STEPS_PER_PASS // 2
        spent = self._spent() - self._rest_begun
        return spent > 0 and spent >= share  # the next in the walk gets a verdict

    def leaves(self, key: Turn, bucket: Bucket) -> bool:
        """Whether this head keeps the verdict it had in this walk, although room rose since."""
        had_one = bucket.refusal is not None and bucket.refusal.kind not in HELD_BACK
        if not (had_one and self._is_passed(key) and self._spent() >= STEPS_PER_PASS // 2):
            return False
        self.leftover = True
        return True

    def _is_passed(self, key: Turn) -> bool:
        return self._resumed_at is not None and key < self._resumed_at

    def _spent(self) -> int:
        return self._world.admission.steps - self._begun + self._holds * HOLD_STEPS


def dispatch(world: World) -> None:
    """Go along the line as far as this pass gets."""
    gate, effort, lending = Gate(world), _Effort(world), Lending(world)
    line = _heads(world, gate)
    while line:
        key, bucket = line[0]
        if world.turns.change and key < (now_due := world.turns.of(bucket, world.now)):
            heapreplace(line, (now_due, bucket))  # its group has more in use by now
            world.beds.reconsider(bucket)
            _call_next(world, gate, line)
            continue
        if gate.blocks(bucket):
            _refuse(world, bucket, _BLOCKED)
            world.beds.wake(bucket)
            heappop(line)
            continue
        if bucket.refusal == _LENDING and lending.waits(bucket):
            heappop(line)  # as before: thousands may, and a verdict costs ten times as much
            continue
        if not (bucket.rests or effort.leaves(key, bucket)):
            if effort.is_over(key):
                break
            _judge(world, bucket)
        heappop(line)
        if bucket.refusal is not None:
            gate.refused(bucket, bucket.refusal)
        elif lending.waits(bucket):
            _refuse(world, bucket, _LENDING)
        else:
            _go(world, gate, effort, bucket)
            if bucket.members:
                heappush(line, (world.turns.of(bucket, world.now), bucket))
        _call_next(world, gate, line)
    _end(world, gate, effort, line)


def _call_next(world: World, gate: Gate, line: Line) -> None:
    """Those that waited for the same as one that has gone on, or is refused for another reason now,
    are looked at in this pass: all of them are behind it."""
    for bucket in world.beds.take_called():
        if gate.open_to_all:
            heappush(line, (world.turns.of(bucket, world.now), bucket))


def _end(world: World, gate: Gate, effort: _Effort, line: Line) -> None:
    world.resume_at = line[0][0] if line else None
    if not line:
        gate.closes()
    if line or effort.leftover:
        world.wake_at(world.now)
    elif len(world.queue):
        _look_again(world)


def _go(world: World, gate: Gate, effort: _Effort, bucket: Bucket) -> None:
    """The first of the bucket fits: it goes, unless something besides capacity hinders it."""
    entry = bucket.first()
    hindrance = pre_enqueue.obstacle(world, entry)
    if hindrance is not None:
        effort.held()
        world.hold(entry, hindrance)
    elif _reserved(world, bucket, entry):
        effort.dispatched()
        gate.goes(entry)
        stand_in_front(world, entry)
        create.begin(world, entry)


def _look_again(world: World) -> None:
    """Wake twice in ``backoffTime`` while any wait, by one timer however often a pass is made.

    At each ring those are tested whose verdict is half of ``backoffTime`` old or older, so none
    gets older than all of it. A timer per verdict would never end: each ring would wish another.
    """
    half = world.settings.backoff // 2
    if half and world.look_again_at <= world.now:
        world.look_again_at = world.now + half
        world.wake_at(world.look_again_at)


def _heads(world: World, gate: Gate) -> Line:
    """A refusal stands until something happens that may let the shape in (core R4). It is tested
    again within ``backoffTime`` all the same (``_look_again``), for the day on which this is wrong.
    """
    beds, until = world.beds, world.now - world.settings.backoff // 2
    beds.wake_all(until, everyone=not gate.open_to_all)
    # Only where a refused one may block others do those that rest have to be passed.
    buckets = beds.awake() if gate.open_to_all else world.queue.buckets()
    line = [(world.turns.of(bucket, world.now), bucket) for bucket in buckets]
    heapify(line)
    return line


def _judge(world: World, bucket: Bucket) -> None:
    """Its shares, then the nodes. On these all of one shape have the same verdict."""
    bucket.tested_at = world.now
    refusal = world.admission.quota_refusal(bucket.shape, bucket.path)
    refusal = refusal or bucket.of_shape.refusal or world.capacity.refusal(bucket.shape)
    if refusal is None:
        bucket.refusal = None
    else:
        _refuse(world, bucket, refusal)
        ask_back(world, bucket)
        _rest(world, bucket, refusal)


def _rest(world: World, bucket: Bucket, refusal: Refusal) -> None:
    """A DaemonSet demands less of its shares when a node goes: nothing wakes it but a look."""
    if refusal.quota is not None and bucket.shape.per_node:
        world.beds.pass_on(bucket)
    else:
        world.beds.rest(bucket, refusal, world.now)


def _refuse(world: World, bucket: Bucket, refusal: Refusal) -> None:
    before = bucket.refusal
    bucket.refusal = refusal
    if before is not None and signature(before) == signature(refusal):
        return
    for entry in bucket.front(RESTATED_PER_SHAPE):
        if entry.told is not None:
            world.to_tell[entry.uid] = None


def _reserved(world: World, bucket: Bucket, entry: Entry) -> bool:
    gang = world.next_gang(entry)
    refusal = world.admission.reserve(gang, Designation(entry.workload.quota))
    if refusal is not None:
        _refuse(world, bucket, refusal)
        _rest(world, bucket, refusal)
    return refusal is None


def signature(refusal: Refusal) -> tuple[RefusalKind, str, bool]:
    """What has to change before a refusal is worth another write (design section 5)."""
    return (refusal.kind, refusal.binding, rests_on_absence(refusal))


def rests_on_absence(refusal: Refusal) -> bool:
    """Whether it is by a quota tree of which a QuotaSubtree is absent."""
    return refusal.quota is not None and refusal.quota.is_absent


def stand_in_front(world: World, entry: Entry) -> None:
    """The condition HeadOfLine: it comes with the first verdict, whichever it is."""
    entry.set_condition(ConditionType.HEAD_OF_LINE, world.now, reason=FRONT_OF_QUEUE)


_NOT_REFUSED = IMPOSSIBLE | HELD_BACK


def refused(world: World) -> Iterator[Bucket]:
    """Buckets that were refused for want of room, in the order of their heads."""
    return in_order(world, world.queue.buckets())


def in_order(world: World, buckets: Iterable[Bucket]) -> Iterator[Bucket]:
    """The same of those that were."""
    at, now = world.turns.at, world.now
    line = [
        (at(bucket, bucket.lies_by or bucket.key, now), bucket)
        for bucket in buckets
        if bucket.refusal is not None and bucket.refusal.kind not in _NOT_REFUSED
    ]
    return (bucket for _, bucket in sorted(line))
