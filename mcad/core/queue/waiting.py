"""Every waiting AppWrapper: in line, or out of it and why (waiting_state.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcad.core.queue import priority_ceiling
from mcad.core.queue.dispatch_pauses import DispatchPauses
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.queue.ordering import Turns
from mcad.core.queue.queue import Queue
from mcad.core.queue.verdicts import Verdicts
from mcad.core.state.agenda import Agenda
from mcad.core.state.bounds import REFUSED_STEPS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import NameKey, ObjectRef
from mcad.core.state.reasons import FRONT_OF_QUEUE, ConditionType
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.rights import Rights
from mcad.core.state.settings import Settings
from mcad.core.state.timers import Timer
from mcad.core.state.units import Instant
from mcad.core.state.violations import check
from mcad.core.state.waiting_reason import RESERVED, Hold, WaitingReason
from mcad.core.state.waiting_state import WaitingSignal, WaitingState, waiting

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity
    from mcad.core.quota.usage import Forest


class Waiting:
    """Owns ``waiting``, ``hold`` and ``pause`` of every AppWrapper, and the queue.

    The indexes find the holds that an event ends: ``for_kind`` (an ordered set of the uids that
    wait for a kind that is not watched), ``for_name``, and the rights. ``last_seen`` is the latest
    first-seen time: AppWrappers that arrive in the same second follow it.
    """

    def __init__(
        self,
        settings: Settings,
        capacity: Capacity,
        forest: Forest,
        agenda: Agenda,
        rights: Rights,
    ) -> None:
        self.ceilings = dict(settings.max_priority)
        self.turns = Turns(settings, capacity, forest)
        self.verdicts = Verdicts(capacity, forest)
        self.queue = Queue(capacity, self.verdicts, forest.in_line)
        self.dispatch_pauses = DispatchPauses(forest)
        self.last_seen: Instant = 0
        self.for_kind: dict[str, None] = {}
        self._for_name: dict[NameKey, dict[str, None]] = {}
        self._capacity = capacity
        self._forest = forest
        self._agenda = agenda
        self._rights = rights

    def enter(self, entry: Entry) -> None:
        """Put an AppWrapper in line, or on hold if its manifest or a pause requires that."""
        hold = _own_hold(entry)
        pause = entry.wait.pause
        if pause is not None and pause.until <= self._agenda.now and hold is None:
            entry.wait.pause = None
        if hold is not None:
            self.hold(entry, hold)
        elif entry.wait.pause is not None:
            self._keep_out(entry, entry.wait.pause, WaitingSignal.PAUSE)
        elif (hold := self.dispatch_pauses.hold(entry.workload)) is not None:
            self.hold(entry, hold)
        else:
            self._follow(entry, WaitingSignal.LINE_UP)
            self._stand(entry)
            self._agenda.to_report[entry.uid] = None

    def rank_anew(self, entry: Entry) -> None:
        """Rank the AppWrapper anew: its priority climbs no further. That alone is not reported."""
        if entry in self.queue:
            self.queue.remove(entry)
            self._stand(entry)

    def _stand(self, entry: Entry) -> None:
        work, now = entry.workload, self._agenda.now
        rank = priority_ceiling.rank(work, entry.first_seen, now, self.ceilings)
        group, path = self.turns.group(work.namespace), self._forest.path(entry.designation)
        self.queue.add(entry, self._capacity.shape(work.sets), path, group, rank)
        if rank.until:
            self._agenda.set_timer(entry, Timer.CEILING, rank.until)

    def pause(self, entry: Entry, pause: Hold | None) -> None:
        """Keep the AppWrapper out of the line until the pause ends, through all edits."""
        entry.wait.pause = pause

    def hold(self, entry: Entry, hold: Hold) -> None:
        """Keep a waiting AppWrapper out of the line; the next pass reports why."""
        self._keep_out(entry, hold, WaitingSignal.HOLD)

    def reserve(self, entry: Entry, message: str) -> None:
        """Keep the AppWrapper out of the line until its reserved room is free, or there."""
        scales_up = entry.reserved.reason is ReservationReason.SCALING_UP
        reason = WaitingReason.SCALING_UP if scales_up else WaitingReason.ROOM_RESERVED
        self._keep_out(entry, Hold(reason, message), WaitingSignal.RESERVE)

    def _keep_out(self, entry: Entry, hold: Hold, signal: WaitingSignal) -> None:
        self.queue.remove(entry)
        self._follow(entry, signal)
        entry.wait.hold = hold
        self._agenda.to_report[entry.uid] = None
        if hold.until:
            self._agenda.set_timer(entry, Timer.HOLD, hold.until)
        if hold.reason == WaitingReason.KIND_NOT_WATCHED:
            self.for_kind[entry.uid] = None
        if hold.reason == WaitingReason.MISSING_RIGHT:
            self._rights.concern(entry.uid, [item.ref for item in entry.workload.items])
        if hold.reason == WaitingReason.WAITING_FOR_NAME:
            for item in entry.workload.items:
                self._for_name.setdefault(item.ref.key, {})[entry.uid] = None

    def leave(self, entry: Entry) -> None:
        """Take the AppWrapper out of the line and off any hold."""
        self.queue.remove(entry)
        if entry.wait.hold is not None and entry.wait.hold.reason == WaitingReason.WAITING_FOR_NAME:
            self._forget_names(entry)
        entry.wait.hold = None
        entry.stop(Timer.HOLD)
        self.for_kind.pop(entry.uid, None)
        self._follow(entry, WaitingSignal.LEAVE)

    def put_out(self, entry: Entry) -> None:
        """Take the AppWrapper out after an error about it, without trusting its state."""
        self._forget_names(entry)
        entry.wait.hold, entry.wait.state = None, WaitingState.OUT
        self.for_kind.pop(entry.uid, None)
        self.queue.remove(entry)

    def _forget_names(self, entry: Entry) -> None:
        for key in [item.ref.key for item in entry.workload.items]:
            waiters = self._for_name.get(key, {})
            waiters.pop(entry.uid, None)
            if not waiters:
                self._for_name.pop(key, None)

    def for_name(self, ref: ObjectRef) -> list[str]:
        """The uids of the AppWrappers that wait until the name is free, the first arrival first."""
        return list(self._for_name.get(ref.key, ()))

    def stand_in_front(self, entry: Entry) -> None:
        """Set the condition HeadOfLine, which comes with the first verdict of any kind."""
        kind = ConditionType.HEAD_OF_LINE
        entry.set_condition(kind, self._agenda.now, reason=FRONT_OF_QUEUE)

    def requeue_for_nodes(self) -> None:
        """Requeue the classes that may fit after events of nodes. All other refusals stand; they
        are tested again within ``backoffTime`` (admit.py), in case of an error here."""
        self.turns.renew()
        self.verdicts.requeue_for_nodes()

    def refused(self, eqclasses: Iterable[EquivalenceClass]) -> list[EquivalenceClass]:
        """The refused classes among these, in the order of their heads; without classes that can
        never fit or only let others go first."""
        refused = [one for one in eqclasses if one.is_refused]
        self._agenda.spent += len(refused) * REFUSED_STEPS
        return [eqclass for _, eqclass in sorted(self.turns.line(refused, self._agenda.now))]

    def _follow(self, entry: Entry, signal: WaitingSignal) -> None:
        entry.wait.state = waiting(entry.title, entry.wait.state, signal)

    def check_one(self, entry: Entry) -> None:
        """Check that one AppWrapper waits as its state says."""
        state, title = entry.wait.state, entry.title
        is_out, is_in_line = state is WaitingState.OUT, state is WaitingState.IN_LINE
        check(is_out == (entry.phase is not Phase.WAITING), "waits-in-its-phase", title)
        check((entry in self.queue) == is_in_line, "in-line-by-its-state", title)
        check((entry.wait.hold is None) == (is_out or is_in_line), "held-by-its-state", title)
        reason = entry.wait.hold.reason if entry.wait.hold is not None else ""
        is_reserved = state is WaitingState.RESERVED
        check((reason in RESERVED) == is_reserved, "reserved-by-its-state", title)
        is_known = (entry.uid in self.for_kind) == (reason == WaitingReason.KIND_NOT_WATCHED)
        check(is_known, "waits-for-a-kind-by-its-hold", title)
        if not self.dispatch_pauses.pending and (is_in_line or is_reserved):
            check(self.dispatch_pauses.hold(entry.workload) is None, "not-paused-in-line", title)
        if reason == WaitingReason.WAITING_FOR_NAME:
            for item in entry.workload.items:
                check(entry.uid in self.for_name(item.ref), "waits-for-its-names", title)


def _own_hold(entry: Entry) -> Hold | None:
    work = entry.workload
    if work.deleting:
        return Hold(WaitingReason.DELETED, WaitingReason.DELETED.text)
    if work.problem is not None:
        return Hold(work.problem.kind, str(work.problem))
    if work.suspended:
        return Hold(WaitingReason.SUSPENDED, WaitingReason.SUSPENDED.text)
    if not work.granted:
        return Hold(WaitingReason.NOT_GRANTED, WaitingReason.NOT_GRANTED.text)
    return None
