"""The walk along the line: which AppWrappers start, and which are refused (core R4-R6, R11).

A walk leads from the first in line to the last and takes as many passes as it needs. Each pass ends
at a number of dispatches or at a bound of counted work, and the next pass continues there, so that
the last in line get a verdict however often the first are requeued. All AppWrappers ahead of that
point have had a verdict in this walk. If room rose since for one of them, it is judged again before
any behind it starts, with up to half of the work of the pass; the rest waits for the next walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.core.attempts import create
from mcad.core.capacity import LEFT_OFF
from mcad.core.cluster import Cluster
from mcad.core.cycle.head_of_line import HeadOfLineBlocking
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.binding_wait import BindingWait
from mcad.core.eligibility.borrow_wait import DeferredBorrowing, ask_back
from mcad.core.queue.equivalence import EquivalenceClass, Turn, awaited
from mcad.core.queue.line import Head, Line
from mcad.core.state.bounds import (
    DISPATCH_STEPS,
    DISPATCH_STEPS_PER_POD,
    DISPATCHES_PER_PASS,
    HOLD_STEPS,
    LEFT_PER_STEP,
    RESTATED_PER_SHAPE,
    WORK_PER_PASS,
)
from mcad.core.state.refusal import Refusal
from mcad.core.state.waiting_reason import WaitingReason

if TYPE_CHECKING:
    from mcad.core.queue.equivalence import Awaited

_BLOCKED, _LENDING = Refusal(WaitingReason.BLOCKED), Refusal(WaitingReason.LENDING)
_BINDING = Refusal(WaitingReason.BINDING)


def dispatch(cluster: Cluster) -> None:
    """Continue the walk as far as this pass gets. Steps before it may have released room, which
    goes to the first in line."""
    cluster.waiting.requeue_for_nodes()
    _Pass(cluster).run()


class _Pass:
    """One pass of the walk. ``_leftover``: a class ahead was left for the next walk. ``_refusals``
    are the refusals of this pass, by the awaited room or share: room only falls in a pass, so all
    other classes that await the same are refused as well."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turns, self._verdicts = cluster.waiting.turns, cluster.waiting.verdicts
        self._changes = self._turns.change
        self._blocking, self._deferred = HeadOfLineBlocking(cluster), DeferredBorrowing(cluster)
        self._binding = BindingWait(cluster)
        self._resumed_at = cluster.walk.resume_at
        self._line = self._line_up()
        self._begun = cluster.admission.steps
        left = WORK_PER_PASS - cluster.agenda.spent
        # At least half the work of lining up, so that lining up tens of thousands pays off.
        self._most = max(WORK_PER_PASS // 3, left, self._lined_up // 2)
        self._begun_behind: int | None = None
        self._dispatches = self._holds = self._begun_attempts = self._left = 0
        self._half_spent = False
        self._refusals: dict[Awaited, Refusal] = {}

    def run(self) -> None:
        """Try the heads in turn until all have a verdict or the pass is over."""
        line = self._line
        while (first := line.first()) is not None:
            key, eqclass = first
            if self._changes and key < (now_due := self._turn(eqclass)):
                line.renew(now_due)  # the group has more in use by now
            elif self._blocking.blocks(eqclass):
                line.pop()
                if eqclass.refusal is not _BLOCKED:
                    self._keep_active(eqclass, _BLOCKED)
            elif eqclass.refusal == _LENDING and self._deferred.waits(eqclass):
                line.pop()  # no change: thousands may wait here, and a verdict costs ten times more
            elif not self._try(key, eqclass):
                break
        self._end(first)

    def _turn(self, eqclass: EquivalenceClass) -> Turn:
        return self._turns.of(eqclass, self._cluster.now)

    def _line_up(self) -> Line:
        """The line of this pass, with inadmissible classes only where heads may block others."""
        cluster, verdicts = self._cluster, self._verdicts
        open_to_all, now = self._blocking.open_to_all, cluster.now
        verdicts.requeue_for_shares(heads_block=not open_to_all)
        self._leftover = verdicts.requeue_old(now - cluster.settings.backoff // 2)
        queue = cluster.waiting.queue
        line = Line(self._turns, now, verdicts.active if open_to_all else queue.eqclasses())
        if line.is_reordered:
            (verdicts if open_to_all else queue).put_in_order(line.eqclasses())
        self._lined_up = line.steps
        cluster.agenda.spent += line.steps
        return line

    def _try(self, key: Turn, eqclass: EquivalenceClass) -> bool:
        """Judge the class if it needs a verdict, and start its head if it fits. Returns False if
        the pass ends before it."""
        self._cluster.errors.about = eqclass.first().uid
        self._share_verdict(eqclass)
        until = self._leaves_until(key, eqclass)
        needs_verdict = until is None and not eqclass.is_inadmissible
        if needs_verdict and (self._is_over(key) or not self._judge(eqclass)):
            return False
        refusal = eqclass.refusal
        if refusal and self._blocking.asks(eqclass, refusal) and self._is_over(key):
            return False
        if refusal and not self._blocking.refused(eqclass, refusal):
            return False
        self._line.pop()
        if until is not None:
            self._left += 1
            if self._blocking.open_to_all:
                self._left += self._line.leave(until) // LEFT_PER_STEP
        if refusal is not None:
            return True
        if self._blocking.takes_room(eqclass):
            self._keep_active(eqclass, _BLOCKED)
        elif self._deferred.waits(eqclass):
            self._keep_active(eqclass, _LENDING)
        elif self._binding.waits(eqclass):
            eqclass.refusal = _BINDING  # for a moment, so there is no report
        else:
            self._start(eqclass)
            if eqclass.members:
                self._line.push(eqclass)
        return True

    def _is_over(self, key: Turn) -> bool:
        """Whether the pass ends before this head, which needs a verdict."""
        if self._dispatches >= DISPATCHES_PER_PASS:
            return True
        if self._is_passed(key):
            return self._spent() >= self._most
        if self._begun_behind is None:
            self._begun_behind = self._spent()
        share = self._most if self._resumed_at is None else self._most // 2
        spent = self._spent() - self._begun_behind
        # The next class in the walk gets a verdict, however many classes were left.
        return spent > 0 and spent >= share - self._left // 2

    def _leaves_until(self, key: Turn, eqclass: EquivalenceClass) -> Turn | None:
        """The turn before which classes like this one keep their verdict of this walk, although
        room rose since, or pods were bound for which it waited; None if it needs one now."""
        if eqclass.is_inadmissible or eqclass.refusal is None:
            return None
        if not (self._is_passed(key) and self._is_half_spent()):
            return None
        is_binding = eqclass.refusal is _BINDING and self._binding.still_waits(eqclass)
        if not (eqclass.may_keep_verdict or is_binding):
            return None
        self._leftover = True
        return self._resumed_at

    def _is_passed(self, key: Turn) -> bool:
        return self._resumed_at is not None and key < self._resumed_at

    def _is_half_spent(self) -> bool:
        """Cached once true: it is asked for thousands of classes."""
        self._half_spent = self._half_spent or self._spent() >= self._most // 2
        return self._half_spent

    def _spent(self) -> int:
        verdicts = self._cluster.admission.steps - self._begun
        return verdicts + self._holds * HOLD_STEPS + self._begun_attempts

    def _share_verdict(self, eqclass: EquivalenceClass) -> None:
        """Refuse a class that was refused before again, if another class that awaits the same was
        refused in this pass."""
        before = eqclass.refusal
        if before is None or eqclass.is_inadmissible:
            return
        shared = self._refusals.get(awaited(eqclass, before))
        if shared is not None and shared.reason is before.reason:
            # A refusal by quota names the class's own leaf.
            self._put_aside(eqclass, before if before.quota is not None else shared)

    def _judge(self, eqclass: EquivalenceClass) -> bool:
        """Check the shares, then the nodes, where all classes of one shape have the same verdict.
        Returns False, and changes nothing, if the verdict takes another pass."""
        cluster, shape = self._cluster, eqclass.shape
        refusal = cluster.admission.quota_refusal(shape, eqclass.path)
        refusal = refusal or self._refusals.get(shape) or cluster.capacity.refusal(shape)
        if refusal is LEFT_OFF:
            return False
        if refusal is None:
            eqclass.refusal = None
        else:
            self._binding.refused(eqclass)
            self._refusals[awaited(eqclass, refusal)] = refusal
            self._put_aside(eqclass, refusal)
            ask_back(cluster, eqclass)
        return True

    def _start(self, eqclass: EquivalenceClass) -> None:
        """Start the head of the class, which fits, unless something besides room prevents it."""
        cluster, entry = self._cluster, eqclass.first()
        hindrance = pre_enqueue.obstacle(cluster, entry)
        if hindrance is not None:
            self._holds += 1
            cluster.waiting.hold(entry, hindrance)
            return
        refusal = cluster.admission.assume(*cluster.next_gang(entry))
        if refusal is not None:
            self._put_aside(eqclass, refusal)
            return
        self._dispatches += 1
        pods = sum(one.declared for one in eqclass.shape.alike)
        self._begun_attempts += DISPATCH_STEPS + DISPATCH_STEPS_PER_POD * pods
        self._blocking.goes(entry)
        self._binding.starts(entry)
        cluster.waiting.stand_in_front(entry)
        create.begin(cluster, entry)

    def _put_aside(self, eqclass: EquivalenceClass, refusal: Refusal) -> None:
        """Refuse the class until something changes. A DaemonSet demands less of its shares when a
        node goes, which requeues nothing, so its class is tried again in each pass."""
        if refusal.quota is not None and eqclass.shape.per_node:
            self._keep_active(eqclass, refusal)
        else:
            self._refuse(eqclass, refusal)
            self._verdicts.refuse(eqclass, refusal, self._cluster.now)

    def _keep_active(self, eqclass: EquivalenceClass, refusal: Refusal) -> None:
        """Refuse the class for this pass only."""
        self._refuse(eqclass, refusal)
        self._verdicts.requeue(eqclass)

    def _refuse(self, eqclass: EquivalenceClass, refusal: Refusal) -> None:
        before = eqclass.refusal
        eqclass.refusal = refusal
        if refusal is not _LENDING:
            eqclass.deferred_at = 0
        if before is not None and before.signature == refusal.signature:
            return
        for entry in eqclass.front(RESTATED_PER_SHAPE):
            if entry.wait.reported is not None:
                self._cluster.agenda.to_report[entry.uid] = None

    def _end(self, first: Head | None) -> None:
        """End the pass; ``first`` is where the next pass continues, None after the last."""
        cluster = self._cluster
        cluster.agenda.spent += self._spent() + self._line.steps - self._lined_up
        cluster.walk.resume_at = first[0] if first is not None else None
        if first is None:
            self._blocking.closes()
        if first is not None or self._leftover:
            cluster.agenda.wake_at(cluster.now)
        elif len(cluster.waiting.queue):
            self._look_again()

    def _look_again(self) -> None:
        """Wake twice in ``backoffTime`` while AppWrappers wait, by one timer for all passes.

        Each time tests the classes whose verdict is at least half of ``backoffTime`` old, so none
        gets older than that. Timers per verdict would never end: each would start another.
        """
        cluster, half = self._cluster, self._cluster.settings.backoff // 2
        if half and cluster.walk.look_again_at <= cluster.now:
            cluster.walk.look_again_at = cluster.now + half
            cluster.agenda.wake_at(cluster.walk.look_again_at)
