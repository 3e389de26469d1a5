"""The whole state of the dispatcher, and the state changes that procedures share.

The procedures (cycle, observed, preemption, reservations, running, attempts, eligibility) are
functions over a Cluster; the Dispatcher routes events to them. Nothing here decides what starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcad.core.admission import Admission, Gang
from mcad.core.capacity import Capacity
from mcad.core.commands import Command, RecordEvent, WakeAt, WriteStatus
from mcad.core.fit.domains import confined
from mcad.core.queue.run_history import History
from mcad.core.queue.waiting import Waiting
from mcad.core.queue.walk import Walk
from mcad.core.quota.status import QuotaStatuses
from mcad.core.quota.usage import Forest
from mcad.core.state.agenda import Agenda
from mcad.core.state.entry import Entry
from mcad.core.state.errors import Errors
from mcad.core.state.eviction_pace import EvictionPace
from mcad.core.state.injections import Injections
from mcad.core.state.lifecycle import TEARING_DOWN, Phase, Signal
from mcad.core.state.milestones import Milestone, Passed
from mcad.core.state.model import (
    Dialect,
    DispatchRecord,
    HeldResource,
    PodSet,
    Remnant,
    Wanted,
    Workload,
)
from mcad.core.state.objects import Objects
from mcad.core.state.quota_records import NOBODYS, Designation, Path
from mcad.core.state.reasons import APPLIED, ConditionType, EventReason
from mcad.core.state.records import replace
from mcad.core.state.reservation import PendingEviction
from mcad.core.state.reservation_book import Reservations
from mcad.core.state.rights import Rights
from mcad.core.state.scale_up import ScaleUps
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import Urgency
from mcad.core.state.units import Instant
from mcad.core.status import pod_counts
from mcad.core.status.status import derive, keep_conditions

AWAITED = frozenset({Phase.INTENDING, Phase.CONFIRMING, Phase.UNDEPLOYING, Phase.SETTLING})
"""Phases that last until a status write is acknowledged."""


class Cluster:
    """The dispatcher's memory: the AppWrappers (``entries``), and one owner for each concern.

    ``evictions`` are the announced evictions, by the uid of the victim. ``started`` is whether the
    first pass was made; until then ``restored`` (an ordered set) are the uids of the AppWrappers
    with an attempt, an eviction or a place in a quota tree on record. ``passed`` are the
    milestones of the present step, for figures. ``deleted_trees`` are the AppWrappers in whose
    status the deletion of a quota tree is recorded, by tree (deleted_trees.py). ``errors`` are the
    dispatcher's errors.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.entries: dict[str, Entry] = {}
        self.agenda = Agenda(self.entries)
        self.objects = Objects()
        self.capacity = Capacity(settings)
        self.forest = Forest(settings.quota_grace)
        self.rights = Rights()
        self.waiting = Waiting(settings, self.capacity, self.forest, self.agenda, self.rights)
        self.walk = Walk()
        self.admission = Admission(self.capacity, self.forest, self.waiting.turns)
        self.reservations = Reservations()
        self.scale_ups = ScaleUps()
        self.evictions: dict[str, PendingEviction] = {}
        self.eviction_pace = EvictionPace(settings.max_evictions_per_minute)
        self.quota_statuses = QuotaStatuses()
        self.deleted_trees: dict[str, dict[str, None]] = {}
        self.history = History()
        self.started = False
        self.restored: dict[str, None] = {}
        self.recovered = False
        self.epoch = 0
        self.passed: list[Passed] = []
        self.errors = Errors()
        self.injections = Injections()
        self._commands: list[Command] = []

    @property
    def now(self) -> Instant:
        """The time of this step."""
        return self.agenda.now

    def judged(self, uid: str) -> Workload | None:
        """An AppWrapper with the items of its attempt, else of its spec."""
        entry = self.entries.get(uid)
        return entry.workload if entry is not None and not entry.rebuilt else None

    def known(self, uids: Iterable[str]) -> Iterator[Entry]:
        """The known AppWrappers among these."""
        return (self.entries[uid] for uid in uids if uid in self.entries)

    def emit(self, command: Command) -> None:
        """Add a command to the answer of this step."""
        self._commands.append(command)

    def take_commands(self) -> tuple[Command, ...]:
        """The answer of this step, with a request for the next pass if none is pending."""
        at = self.agenda.timers.next_wake_up(self.now)
        if at is not None:
            self.emit(WakeAt(at))
        commands, self._commands = tuple(self._commands), []
        return commands

    def move(self, entry: Entry, signal: Signal) -> None:
        """Follow the table of lifecycle.py."""
        before = entry.phase
        entry.move(signal, self.now)
        self.passed.append(Passed(Milestone.MOVED, entry, before, entry.phase))

    def note(self, milestone: Milestone, entry: Entry) -> None:
        """Note that the AppWrapper passes a milestone in its present phase."""
        self.passed.append(Passed(milestone, entry, entry.phase, entry.phase))

    def announce(
        self, entry: Entry, reason: EventReason, note: str, *, action: str, warning: bool = False
    ) -> None:
        """Record a Kubernetes Event about the AppWrapper."""
        self.emit(RecordEvent(entry.uid, warning, reason, action, note))

    def announce_remnant(
        self, entry: Entry, about: Remnant, reason: EventReason, note: str, *, action: str
    ) -> None:
        """Record a warning about an object that outlives its AppWrapper."""
        self.emit(RecordEvent(entry.uid, True, reason, action, note, about))

    # -- status --------------------------------------------------------------------------------

    def settle(self, entry: Entry, urgency: Urgency = Urgency.REPORT) -> None:
        """Bring ``status`` up to date: one write at a time, none if nothing changed.

        In an awaited phase even an unchanged status is written, because the outcome moves the
        AppWrapper on. Pods are counted anew with every write, and the count alone is no reason for
        a write. A dispatch supersedes an open report of the same AppWrapper, which may be the last
        of thousands, and a confirmation, which may wait for a moment: the outcome of the former is
        ignored.
        """
        if entry.phase in (Phase.GONE, Phase.FOREIGN):
            return
        writes = entry.writes
        if not writes.gives_way_to(urgency):
            writes.dirty = True
            return
        writes.dirty = False
        if entry.workload.dialect is Dialect.V1BETA2:
            keep_conditions(entry, self.now)
        view = derive(entry)
        if view == writes.written and entry.phase not in AWAITED:
            return
        if pod_counts.recount(entry, self.capacity, self.now):
            view = replace(view, pods=entry.pods)
        serial = writes.send(view, entry.phase, urgency)
        self.emit(WriteStatus(entry.uid, serial, view, urgency))

    # -- waiting -------------------------------------------------------------------------------

    def line_up(self, entry: Entry) -> None:
        """Put a waiting AppWrapper in line, or on hold if its manifest or a pause keeps it out."""
        self.leave_line(entry)
        self.waiting.enter(entry)

    def leave_line(self, entry: Entry) -> None:
        """Take the AppWrapper out of the line and off any hold, and end its reservation."""
        self.unreserve(entry)
        self.waiting.leave(entry)

    def unreserve(self, entry: Entry) -> None:
        """End its reservation, if it has one (manage.py); its room is free for all."""
        if self.reservations.remove(entry):
            self.waiting.leave(entry)
            self.admission.unreserve(self._gang(entry, entry.attempt + 1))

    def look_again(self, uids: Iterable[str]) -> None:
        """Check these AppWrappers out of line again in the next Decide: their hold may be over."""
        for entry in self.known(uids):
            if entry.phase is Phase.WAITING and entry.wait.hold is not None:
                self.line_up(entry)

    def begin_attempt(self, entry: Entry, record: DispatchRecord) -> None:
        """Begin an attempt, of this leader or an earlier one, and take its names."""
        entry.take_up(record)
        self.objects.names.take(entry.uid, record.inventory)

    def path(self, entry: Entry) -> Path:
        """Where the AppWrapper would be charged now, by its labels."""
        return self.forest.path(entry.designation)

    def remember_run(self, entry: Entry) -> None:
        """Record how long the AppWrapper ran, if it is Completed and its attempt is on record."""
        ended = entry.conditions.get(ConditionType.COMPLETED)
        if entry.dispatch is not None and ended is not None and ended.status:
            shape = self.capacity.shape(entry.workload.sets)
            self.history.note(shape, entry.dispatch.since, ended.changed)

    def gang(self, entry: Entry) -> tuple[Gang, Designation]:
        """The gang of its attempt (if it keeps room, of the next attempt), and where it is charged:
        by its attempt's record; in later trees, by its labels."""
        known = entry.dispatch.quota if entry.dispatch is not None else ()
        charged = NOBODYS if entry.rebuilt else Designation((*known, *entry.workload.quota))
        return self._gang(entry, entry.attempt + entry.keeps_room, self._sets(entry)), charged

    def next_gang(self, entry: Entry) -> tuple[Gang, Designation]:
        """The gang and the charge of the next attempt of a waiting AppWrapper."""
        return self._gang(entry, entry.attempt + 1), entry.designation

    def _gang(self, entry: Entry, attempt: int, sets: tuple[PodSet, ...] | None = None) -> Gang:
        work, sets = entry.workload, entry.workload.sets if sets is None else sets
        return Gang(work.uid, work.namespace, attempt, self.capacity.shape(sets), sets)

    def _sets(self, entry: Entry) -> tuple[PodSet, ...]:
        """Its pod sets in the topology domains that are on record for its attempt."""
        sets, record = entry.workload.sets, entry.dispatch
        if record is None or not record.domains:
            return sets
        known = {(one.item, one.index): one.domain for one in record.domains}
        at = {
            n: known[key] for n, one in enumerate(sets) if (key := (one.item, one.index)) in known
        }
        return confined(sets, at)

    def adopt(self, entry: Entry) -> None:
        """Assume the gang of its recorded attempt, whether it fits or not."""
        at = entry.held_from if entry.phase is Phase.HELD else entry.phase
        leaves = at in TEARING_DOWN and not entry.keeps_room
        leaving = entry.workload.deleting or leaves
        self.admission.adopt(*self.gang(entry), leaving=leaving)
        if entry.dispatch is not None and not entry.keeps_room:
            self.capacity.gangs.give_up_sets(entry.uid, entry.dispatch.resumed)
            self.capacity.gangs.note_apart(entry.uid, entry.dispatch.apart)
            if entry.dispatch.placed:
                self.capacity.gangs.note_placed(entry.uid)

    def keep_room(self, entry: Entry) -> None:
        """Give its room to the next attempt (C7). Where its pods have not gone yet, the next
        attempt finds no place for a while, but neither does any other AppWrapper (C6)."""
        self.admission.renew(entry.uid, entry.attempt + 1, self._sets(entry))

    def freeze(self, entry: Entry) -> None:
        """Freeze room and charge of a deleted AppWrapper until its objects are gone (P9). A new
        leader may hear of the deletion before it has taken up the attempt, and its room."""
        if entry.keeps_room and self.capacity.gangs.exists(entry.uid):
            self.admission.renew(entry.uid, entry.attempt + 1, ())
        self.admission.freeze(entry.uid)

    def want(self, entry: Entry, item: int, index: int, wanted: Wanted | None) -> None:
        """Set the pods of a set that a live object of the present attempt wants. A failed object
        wants none, but the next attempt gets its room (C7)."""
        if not entry.keeps_room:
            self.capacity.gangs.want(
                entry.uid, item, index, None if item in entry.run.failed else wanted
            )

    def end_attempt(self, entry: Entry) -> None:
        """End an attempt that is gone: room and names are free, and its spec counts again."""
        self.admission.release(entry.uid)
        if entry.edited is not None:
            entry.unset_condition(ConditionType.EDIT_PENDING, self.now, reason=APPLIED)
        entry.end_attempt()
        self.objects.names.give_back(entry.uid, entry.inventory)
        for ref in entry.inventory:
            self.look_again(self.waiting.for_name(ref))

    def held_resources(self) -> tuple[HeldResource, ...]:
        """The wrapped resources that are on hold in a namespace, oldest hold first."""
        if not self.rights.held:  # called after each step
            return ()
        return tuple(held.resource for held in self.rights.held.values())

    def forget(self, entry: Entry) -> None:
        """Drop every trace of an AppWrapper that is gone and holds nothing, or is taken up anew."""
        self.note(Milestone.FORGOTTEN, entry)
        self.leave_line(entry)
        self.reservations.waits_no_more(entry)
        self.end_attempt(entry)
        del self.entries[entry.uid]
        self.injections.forget(entry.uid)
        self.objects.leftovers.pop(entry.uid, None)
        self.agenda.to_recover.pop(entry.uid, None)
        self.agenda.recovering.pop(entry.uid, None)
        self.restored.pop(entry.uid, None)
        self.reservations.fulfilled.pop(entry.uid, None)
        self.walk.in_flight.pop(entry.uid, None)
