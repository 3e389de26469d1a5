"""The walk along the line: which AppWrappers start, and which are refused (core R4-R6, R11).

A walk leads from the first in line to the last and takes as many passes as it needs. Each pass ends
at a number of dispatches or at a bound of counted work, and the next one continues there, so that
the last in line get a verdict however often the first are requeued. All AppWrappers ahead of that
point have had a verdict in this walk. If room rose for one of them since, it is judged again before
any behind it starts, with up to half of the work of the pass; the rest waits for the next walk.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from mcad.core.attempts import create
from mcad.core.cluster import Cluster
from mcad.core.cycle.head_of_line import HeadOfLineBlocking
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.borrow_wait import DeferredBorrowing, ask_back
from mcad.core.eligibility.order import stand_in_front
from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.state.bounds import (
    DISPATCHES_PER_PASS,
    HOLD_STEPS,
    RESTATED_PER_SHAPE,
    STEPS_PER_PASS,
)
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import HELD_BACK, Refusal, RefusalKind

_BLOCKED, _LENDING = Refusal(RefusalKind.BLOCKED), Refusal(RefusalKind.LENDING)

Line = list[tuple[Turn, EquivalenceClass]]
"""A heap of buckets by the keys of their heads, of which no two are equal."""


class _Effort:
    """The work of one pass. ``leftover``: a class ahead was left for the next walk."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._resumed_at = cluster.walk.resume_at
        self._begun = cluster.admission.steps
        self._rest_begun: int | None = None
        self._dispatches = 0
        self._holds = 0
        self.leftover = False

    def dispatched(self) -> None:
        """One more AppWrapper starts."""
        self._dispatches += 1

    def held(self) -> None:
        """One more fits and does not start, for a reason of its own."""
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

    def leaves(self, key: Turn, eqclass: EquivalenceClass) -> bool:
        """Whether this head keeps its verdict of this walk, although room rose since."""
        had_one = eqclass.refusal is not None and eqclass.refusal.kind not in HELD_BACK
        if not (had_one and self._is_passed(key) and self._spent() >= STEPS_PER_PASS // 2):
            return False
        self.leftover = True
        return True

    def _is_passed(self, key: Turn) -> bool:
        return self._resumed_at is not None and key < self._resumed_at

    def _spent(self) -> int:
        return self._cluster.admission.steps - self._begun + self._holds * HOLD_STEPS


def dispatch(cluster: Cluster) -> None:
    """Continue the walk as far as this pass gets."""
    blocking, effort, deferred = (
        HeadOfLineBlocking(cluster),
        _Effort(cluster),
        DeferredBorrowing(cluster),
    )
    line, turns = _heads(cluster, blocking), cluster.waiting.turns
    while line:
        key, eqclass = line[0]
        if turns.change and key < (now_due := turns.of(eqclass, cluster.now)):
            heapreplace(line, (now_due, eqclass))  # its group has more in use by now
            cluster.waiting.inadmissible.reconsider(eqclass)
            _call_next(cluster, blocking, line)
            continue
        if blocking.blocks(eqclass):
            _refuse(cluster, eqclass, _BLOCKED)
            cluster.waiting.inadmissible.requeue(eqclass)
            heappop(line)
            continue
        if eqclass.refusal == _LENDING and deferred.waits(eqclass):
            heappop(line)  # as before: thousands may, and a verdict costs ten times as much
            continue
        if not (eqclass.is_inadmissible or effort.leaves(key, eqclass)):
            if effort.is_over(key):
                break
            _judge(cluster, eqclass)
        heappop(line)
        if eqclass.refusal is not None:
            blocking.refused(eqclass, eqclass.refusal)
        elif deferred.waits(eqclass):
            _refuse(cluster, eqclass, _LENDING)
        else:
            _go(cluster, blocking, effort, eqclass)
            if eqclass.members:
                heappush(line, (cluster.waiting.turns.of(eqclass, cluster.now), eqclass))
        _call_next(cluster, blocking, line)
    _end(cluster, blocking, effort, line)


def _call_next(cluster: Cluster, blocking: HeadOfLineBlocking, line: Line) -> None:
    """Classes that waited for the verdict on a representative are tried in this pass: all of them
    are behind it."""
    for eqclass in cluster.waiting.inadmissible.take_requeued():
        if blocking.open_to_all:
            heappush(line, (cluster.waiting.turns.of(eqclass, cluster.now), eqclass))


def _end(cluster: Cluster, blocking: HeadOfLineBlocking, effort: _Effort, line: Line) -> None:
    cluster.walk.resume_at = line[0][0] if line else None
    if not line:
        blocking.closes()
    if line or effort.leftover:
        cluster.agenda.wake_at(cluster.now)
    elif len(cluster.waiting.queue):
        _look_again(cluster)


def _go(
    cluster: Cluster, blocking: HeadOfLineBlocking, effort: _Effort, eqclass: EquivalenceClass
) -> None:
    """The head of the class fits: it starts, unless something besides room prevents it."""
    entry = eqclass.first()
    hindrance = pre_enqueue.obstacle(cluster, entry)
    if hindrance is not None:
        effort.held()
        cluster.waiting.hold(entry, hindrance)
    elif _reserved(cluster, eqclass, entry):
        effort.dispatched()
        blocking.goes(entry)
        stand_in_front(cluster, entry)
        create.begin(cluster, entry)


def _look_again(cluster: Cluster) -> None:
    """Wake twice in ``backoffTime`` while any wait, by one timer however often a pass is made.

    At each ring those are tested whose verdict is half of ``backoffTime`` old or older, so none
    gets older than all of it. A timer per verdict would never end: each ring would wish another.
    """
    half = cluster.settings.backoff // 2
    if half and cluster.walk.look_again_at <= cluster.now:
        cluster.walk.look_again_at = cluster.now + half
        cluster.agenda.wake_at(cluster.walk.look_again_at)


def _heads(cluster: Cluster, blocking: HeadOfLineBlocking) -> Line:
    """A refusal stands until something happens that may let the shape in (core R4). It is tested
    again within ``backoffTime`` all the same (``_look_again``), for the day on which this is wrong.
    """
    inadmissible, until = cluster.waiting.inadmissible, cluster.now - cluster.settings.backoff // 2
    inadmissible.requeue_all(until, everyone=not blocking.open_to_all)
    # Only where a refused one may block others do those that rest have to be passed.
    eqclasses = inadmissible.active() if blocking.open_to_all else cluster.waiting.queue.eqclasses()
    line = [(cluster.waiting.turns.of(eqclass, cluster.now), eqclass) for eqclass in eqclasses]
    heapify(line)
    return line


def _judge(cluster: Cluster, eqclass: EquivalenceClass) -> None:
    """Its shares, then the nodes. On these all of one shape have the same verdict."""
    eqclass.tested_at = cluster.now
    refusal = cluster.admission.quota_refusal(eqclass.shape, eqclass.path)
    refusal = refusal or eqclass.of_shape.refusal or cluster.capacity.refusal(eqclass.shape)
    if refusal is None:
        eqclass.refusal = None
    else:
        _refuse(cluster, eqclass, refusal)
        ask_back(cluster, eqclass)
        _rest(cluster, eqclass, refusal)


def _rest(cluster: Cluster, eqclass: EquivalenceClass, refusal: Refusal) -> None:
    """A DaemonSet demands less of its shares when a node goes: nothing wakes it but a look."""
    if refusal.quota is not None and eqclass.shape.per_node:
        cluster.waiting.inadmissible.hand_over(eqclass)
    else:
        cluster.waiting.inadmissible.refuse(eqclass, refusal, cluster.now)


def _refuse(cluster: Cluster, eqclass: EquivalenceClass, refusal: Refusal) -> None:
    before = eqclass.refusal
    eqclass.refusal = refusal
    if before is not None and signature(before) == signature(refusal):
        return
    for entry in eqclass.front(RESTATED_PER_SHAPE):
        if entry.reported is not None:
            cluster.agenda.to_report[entry.uid] = None


def _reserved(cluster: Cluster, eqclass: EquivalenceClass, entry: Entry) -> bool:
    refusal = cluster.admission.assume(*cluster.next_gang(entry))
    if refusal is not None:
        _refuse(cluster, eqclass, refusal)
        _rest(cluster, eqclass, refusal)
    return refusal is None


def signature(refusal: Refusal) -> tuple[RefusalKind, str, bool]:
    """What has to change before a refusal is worth another write (design section 5)."""
    return (refusal.kind, refusal.binding, rests_on_absence(refusal))


def rests_on_absence(refusal: Refusal) -> bool:
    """Whether it is by a quota tree of which a QuotaSubtree is absent."""
    return refusal.quota is not None and refusal.quota.is_absent
