"""All that the dispatcher knows, and the state changes that procedures share.

The procedures (cycle, observed, preemption, reservations, running, attempts, eligibility) are
functions over a Cluster; the Dispatcher routes events to them. Nothing here decides what starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcad.core.admission import Admission, Gang
from mcad.core.capacity import Capacity
from mcad.core.commands import Command, RecordEvent, WakeAt, WriteStatus
from mcad.core.queue import priority_ceiling
from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.queue.inadmissible import InadmissibleLists
from mcad.core.queue.ordering import Turns
from mcad.core.queue.queue import Queue
from mcad.core.queue.run_history import History
from mcad.core.quota.status_writes import QuotaStatuses
from mcad.core.quota.usage import Forest
from mcad.core.state.bounds import LOOKS, READS_PER_SECOND, Look, PerSecond
from mcad.core.state.entry import Entry, Hold
from mcad.core.state.eviction_pace import EvictionPace
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import (
    Child,
    Dialect,
    DispatchRecord,
    HeldResource,
    ObjectRef,
    Remnant,
    Workload,
)
from mcad.core.state.names import Names
from mcad.core.state.quota_records import NOBODYS, Designation, Path
from mcad.core.state.reasons import APPLIED, ConditionType, EventReason, HoldReason
from mcad.core.state.records import replace
from mcad.core.state.refusal import Doubts
from mcad.core.state.reservation import Firsts, Patience, PendingEviction, Reservation
from mcad.core.state.rights import Rights
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer, Timers
from mcad.core.state.units import Duration, Instant
from mcad.core.state.unproven import Unproven
from mcad.core.status import pod_counts, v1beta2_conditions
from mcad.core.status.status import derive

KindKey = tuple[str, str]

Scope = tuple[str, str] | None
"""A node of a quota tree that an AppWrapper waits for, as (tree, node), or None for the nodes of
the cluster."""

AWAITED = frozenset({Phase.INTENDING, Phase.CONFIRMING, Phase.UNDEPLOYING, Phase.SETTLING})
"""Phases that last until a status write is acknowledged."""


def kind_key(ref: ObjectRef) -> KindKey:
    """The kind as a watch sees it."""
    return (ref.group, ref.resource)


class Cluster:
    """The dispatcher's memory.

    ``to_recover``, ``to_report``, ``to_judge``, ``to_resume``, ``to_settle`` and ``unswept`` are
    ordered sets (dicts of None) of uids that the next Decide has to look at; observations only add
    to them (R5).
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ceilings = dict(settings.max_priority)
        self.capacity = Capacity(settings)
        self.forest = Forest(settings.quota_grace)
        self.turns = Turns(settings, self.capacity, self.forest)
        self.admission = Admission(self.capacity, self.forest, self.turns)
        self.inadmissible = InadmissibleLists(self.capacity, self.forest, self.turns)
        self.queue = Queue(self.capacity, self.inadmissible, self.forest.waiting)
        self.quota_statuses = QuotaStatuses()
        self.history = History()
        self.entries: dict[str, Entry] = {}
        self.now: Instant = 0
        self.started = False
        self.epoch = 0
        self.last_seen: Instant = 0
        self.children: dict[str, Child] = {}
        self.children_of: dict[str, dict[str, Child]] = {}
        self.disowned: dict[str, Child] = {}  # by uid: only their labels name an AppWrapper
        self.unproven = Unproven()
        self.names = Names()
        self.unwatched: dict[KindKey, str] = {}
        self.waiting_for_kind: dict[str, None] = {}
        self.rights = Rights()
        self.to_recover: dict[str, None] = {}
        self.to_report: dict[str, None] = {}
        self.to_judge: dict[str, None] = {}
        self.to_resume: dict[str, None] = {}
        self.to_settle: dict[str, None] = {}
        self.unswept: dict[str, None] = {}
        self.leftovers: dict[str, None] = {}  # uids of AppWrappers that only objects tell of
        self.swept: dict[str, Instant] = {}  # uid -> when its deletion may be asked for again
        self.timers = Timers(self.entries)
        self.reservations: dict[
            str, Entry
        ] = {}  # by uid, those that have one, the oldest reservation first
        self.fulfilled: dict[str, None] = {}  # by uid: dispatched to what they reserved
        self.reservations_on_record: dict[str, Reservation] = {}  # by uid: to be planned anew
        self.preemptors_on_record: dict[
            str, Reservation
        ] = {}  # by uid: as their victims' records say
        self.evictions: dict[str, PendingEviction] = {}  # by uid, of those that are told to leave
        self.eviction_pace = EvictionPace(settings.max_evictions_per_minute)
        self.firsts = Firsts()
        self.ask_back: dict[
            EquivalenceClass, None
        ] = {}  # those that borrowers wait for (borrow_wait.py)
        self.heads: dict[Scope, str] = {}  # the uids of those whose holds are running (R6)
        self.resume_at: Turn | None = None  # where the walk along the line goes on (R5)
        self.looked_at: dict[Look, Instant] = {}  # at what is looked now and then
        self.item_reads = PerSecond(READS_PER_SECOND)
        self.look_again_at: Instant = 0  # when the refused are tested again, at the latest
        self.doubts: Doubts | None = (
            None  # of an onlooker (standby_view.py); the dispatcher has none
        )
        self.out: list[Command] = []

    def judged(self, uid: str) -> Workload | None:
        """An AppWrapper with the items of its attempt if one stands, otherwise those of its
        spec."""
        entry = self.entries.get(uid)
        return entry.workload if entry is not None and not entry.rebuilt else None

    def emit(self, command: Command) -> None:
        """Add a command to the answer of this step."""
        self.out.append(command)

    def announce(
        self, entry: Entry, reason: EventReason, note: str, *, action: str, warning: bool = False
    ) -> None:
        """Record a Kubernetes Event about the AppWrapper."""
        self.emit(RecordEvent(entry.uid, warning, reason, action, note))

    def announce_remnant(
        self, entry: Entry, child: Child, reason: EventReason, note: str, *, action: str
    ) -> None:
        """Record a warning about an object that outlives its AppWrapper."""
        about = Remnant(child.ref, child.uid)
        self.emit(RecordEvent(entry.uid, True, reason, action, note, about))

    # -- timers ------------------------------------------------------------------------------

    def wake_in(self, entry: Entry, timer: Timer, delay: Duration) -> None:
        """Look at the AppWrapper again after ``delay``, for this purpose."""
        self.timers.start(entry, timer, self.now + delay)

    def wake_at(self, at: Instant) -> None:
        """Decide at this instant."""
        self.timers.wish(at)

    def is_time_for(self, look: Look) -> bool:
        """Whether it is time for this look; if not, decide again when it is."""
        due_at = self.looked_at.get(look, 0) + LOOKS[look]
        if self.now < due_at:
            self.wake_at(due_at)
            return False
        self.looked_at[look] = self.now
        return True

    def expired(self) -> Iterator[tuple[Entry, Timer]]:
        """The timers that have expired, in the order of their times."""
        return self.timers.expired(self.now)

    def ask_to_be_woken(self) -> None:
        """At the end of a step: request one wake-up, however many timers run (ADR 4)."""
        at = self.timers.next_wake_up(self.now)
        if at is not None:
            self.emit(WakeAt(at))

    # -- status ------------------------------------------------------------------------------

    def settle(self, entry: Entry, urgency: Urgency = Urgency.REPORT) -> None:
        """Bring ``status`` up to date: one write at a time, none if nothing changed.

        In an awaited phase the write is made even if the last one said the same, because its
        outcome moves the AppWrapper on. Pods are counted anew with every write, and that alone is
        no reason for one. A dispatch does not wait behind a report of its own, which
        may be the last of thousands: it supersedes it, and the report's outcome is ignored.
        """
        if entry.phase in (Phase.GONE, Phase.FOREIGN):
            return
        writes = entry.writes
        supersedes = urgency is Urgency.DISPATCH and writes.urgency is Urgency.REPORT
        if writes.flying is not None and not supersedes:
            writes.dirty = True
            return
        writes.dirty = False
        if entry.workload.dialect is Dialect.V1BETA2:
            v1beta2_conditions.keep(entry, self.now)
        view = derive(entry)
        if view == writes.written and entry.phase not in AWAITED:
            return
        if pod_counts.recount(entry, self.capacity, self.settings.pod_counts_interval, self.now):
            view = replace(view, pods=entry.pods)
        writes.serial += 1
        writes.flying, writes.flying_in, writes.urgency = view, entry.phase, urgency
        self.emit(WriteStatus(entry.uid, writes.serial, view, urgency))

    # -- waiting -----------------------------------------------------------------------------

    def line_up(self, entry: Entry) -> None:
        """Put a waiting AppWrapper in line, or on hold if its manifest or a pause keeps it out."""
        self.leave_line(entry)
        if entry.pause is not None and entry.pause.until <= self.now:
            entry.pause = None
        hold = _own_hold(entry) or entry.pause
        if hold is not None:
            self.hold(entry, hold)
            return
        self._stand(entry)
        self.to_report[entry.uid] = None

    def rank_anew(self, entry: Entry) -> None:
        """Its priority climbs no further: rank it anew. Its reason to wait is not reported again
        because of that."""
        if entry in self.queue:
            self.queue.remove(entry)
            self._stand(entry)

    def _stand(self, entry: Entry) -> None:
        work = entry.workload
        rank = priority_ceiling.rank(work, entry.first_seen, self.now, self.ceilings)
        group = self.turns.group(work.namespace)
        self.queue.add(entry, self.capacity.shape(work.sets), self.path(entry), group, rank)
        if rank.until:
            self.wake_in(entry, Timer.CEILING, rank.until - self.now)

    def leave_line(self, entry: Entry) -> None:
        """Take it out of the line and off any hold; room that is reserved for it is free for
        all."""
        self.queue.remove(entry)
        self.unreserve(entry)
        if entry.hold is not None and entry.hold.reason == HoldReason.WAITING_FOR_NAME:
            self.names.stop_waiting(entry.uid, _names_of(entry))
        entry.hold = None
        entry.stop(Timer.HOLD)
        self.waiting_for_kind.pop(entry.uid, None)

    def unreserve(self, entry: Entry) -> None:
        """End its reservation, if it has one (manage.py)."""
        if self.reservations.pop(entry.uid, None) is not None:
            entry.reservation, entry.waits_for = None, {}
            self.firsts.reservation_ended = True
            self.admission.unreserve(self.next_gang(entry))

    def hold(self, entry: Entry, hold: Hold) -> None:
        """Keep a waiting AppWrapper out of the line; the next Decide reports why."""
        self.queue.remove(entry)
        entry.hold = hold
        self.to_report[entry.uid] = None
        if hold.until:
            self.wake_in(entry, Timer.HOLD, hold.until - self.now)
        if hold.reason == HoldReason.KIND_NOT_WATCHED:
            self.waiting_for_kind[entry.uid] = None
        if hold.reason == HoldReason.MISSING_RIGHT:
            self.rights.concern(entry.uid, _names_of(entry))
        if hold.reason == HoldReason.WAITING_FOR_NAME:
            self.names.wait(entry.uid, _names_of(entry))

    def look_again(self, uids: Iterable[str]) -> None:
        """What kept these AppWrappers out of the line may be over; the next Decide finds out."""
        for uid in uids:
            entry = self.entries.get(uid)
            if entry is not None and entry.phase is Phase.WAITING and entry.hold is not None:
                self.line_up(entry)

    def begin_attempt(self, entry: Entry, record: DispatchRecord) -> None:
        """An attempt stands, of this leader or an earlier one, and takes its names."""
        entry.take_up(record)
        self.names.take(entry.uid, record.inventory)

    def path(self, entry: Entry) -> Path:
        """Where it would be charged now, by its labels."""
        return self.forest.path(Designation(entry.workload.quota))

    def remember_run(self, entry: Entry) -> None:
        """How long it ran, if it is Completed and its attempt is on record."""
        ended = entry.conditions.get(ConditionType.COMPLETED)
        if entry.dispatch is not None and ended is not None and ended.status:
            shape = self.capacity.shape(entry.workload.sets)
            self.history.note(shape, entry.dispatch.since, ended.changed)

    def designation(self, entry: Entry) -> Designation:
        """Where it is charged: as its attempt says; in trees that came later, by its labels."""
        if entry.rebuilt:
            return NOBODYS
        known = entry.dispatch.quota if entry.dispatch is not None else ()
        return Designation((*known, *entry.workload.quota))

    def gang(self, entry: Entry) -> Gang:
        """What its attempt needs room for; if it keeps room, what the next attempt needs."""
        sets, attempt = entry.workload.sets, entry.attempt + entry.keeps_room
        work = entry.workload
        return Gang(work.uid, work.namespace, attempt, self.capacity.shape(sets), sets)

    def next_gang(self, entry: Entry) -> Gang:
        """What the next attempt of a waiting AppWrapper would need room for."""
        work, sets = entry.workload, entry.workload.sets
        shape = self.capacity.shape(sets)
        return Gang(work.uid, work.namespace, entry.attempt + 1, shape, sets)

    def adopt(self, entry: Entry) -> None:
        """Assume what it was dispatched with, whether it fits or not."""
        leaves = entry.phase in TEARING_DOWN and not entry.keeps_room
        leaving = entry.workload.deleting or leaves
        self.admission.adopt(self.gang(entry), self.designation(entry), leaving=leaving)

    def keep_room(self, entry: Entry) -> None:
        """Its room is that of the next attempt from now on (C7). Where its pods have not gone yet,
        that finds no place for a while, but neither does any other AppWrapper (C6)."""
        self.admission.renew(entry.uid, entry.attempt + 1, entry.workload.sets)

    def freeze(self, entry: Entry) -> None:
        """It is deleted: its objects hold their room until they are gone, and no more; so does its
        charge (P9)."""
        if entry.keeps_room:
            self.admission.renew(entry.uid, entry.attempt + 1, ())
        self.capacity.freeze(entry.uid)

    def want(self, entry: Entry, item: int, index: int, want: int | None) -> None:
        """A live object of the present attempt wants so many pods of a set. A failed one wants
        none, but the next attempt gets its room (C7)."""
        if not entry.keeps_room:
            self.capacity.want(entry.uid, item, index, None if item in entry.failed else want)

    def release(self, entry: Entry) -> None:
        """Its attempt needs no room any more; all room is given back here."""
        self.admission.release(entry.uid)

    def end_attempt(self, entry: Entry) -> None:
        """Nothing of its attempt is left: room and names are free, and its spec counts again."""
        self.release(entry)
        if entry.edited is not None:
            entry.unset_condition(ConditionType.EDIT_PENDING, self.now, reason=APPLIED)
        entry.end_attempt()
        self.names.give_back(entry.uid, entry.inventory)
        for ref in entry.inventory:
            self.look_again(self.names.waiters(ref))

    def waits_no_more(self, entry: Entry) -> None:
        """It got what it waited for, or is gone: it starts afresh the next time."""
        self.firsts.waited.pop(entry.uid, None)
        entry.patience, entry.eviction_patience = Patience(), Patience()
        entry.head_for = 0

    def held_resources(self) -> tuple[HeldResource, ...]:
        """The wrapped resources that are held in a namespace, oldest hold first."""
        return tuple(held.resource for held in self.rights.held.values())

    def forget(self, entry: Entry) -> None:
        """Drop every trace of an AppWrapper that is gone and holds nothing, or is taken up anew."""
        self.leave_line(entry)
        self.waits_no_more(entry)
        self.end_attempt(entry)
        del self.entries[entry.uid]
        self.leftovers.pop(entry.uid, None)
        self.to_recover.pop(entry.uid, None)

    # -- children ----------------------------------------------------------------------------

    def put_child(self, child: Child) -> None:
        """Remember a wrapped object as it is now."""
        old = self.children.get(child.uid)
        if old is not None and old.workload != child.workload:
            self._unlink(old)
        self.children[child.uid] = child
        self.children_of.setdefault(child.workload, {})[child.uid] = child
        self.names.observe(child)
        self.unswept[child.uid] = None

    def drop_child(self, uid: str) -> Child | None:
        """Forget a wrapped object; returns what it was, None if it was not known."""
        child = self.children.pop(uid, None)
        self.unswept.pop(uid, None)
        self.swept.pop(uid, None)
        if child is None:
            return None
        self._unlink(child)
        self.names.vanish(child)
        return child

    def _unlink(self, child: Child) -> None:
        siblings = self.children_of[child.workload]
        del siblings[child.uid]
        if not siblings:
            del self.children_of[child.workload]

    def children_for(self, entry: Entry) -> list[Child]:
        """The observed objects of the AppWrapper, of whatever attempt."""
        return list(self.children_of.get(entry.uid, {}).values())


def _names_of(entry: Entry) -> list[ObjectRef]:
    return [item.ref for item in entry.workload.items]


def _own_hold(entry: Entry) -> Hold | None:
    work = entry.workload
    if work.deleting:
        return Hold(HoldReason.DELETED, "The AppWrapper is being deleted.")
    if work.problem is not None:
        return Hold(work.problem.kind, str(work.problem))
    if work.suspended:
        return Hold(HoldReason.SUSPENDED, "spec.suspend is true; set it to false to queue it.")
    return None
