"""One AppWrapper as the dispatcher remembers it: mutable, with an owner for each field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mcad.core.state.bounds import Tries
from mcad.core.state.internal_error import InternalError
from mcad.core.state.inventory import aligned
from mcad.core.state.lifecycle import (
    ENDED,
    LEFT_ALONE,
    RETAINING,
    TEARING_DOWN,
    Phase,
    Signal,
    transition,
)
from mcad.core.state.model import (
    Cascade,
    Condition,
    DispatchPhase,
    DispatchRecord,
    NameKey,
    Next,
    ObjectRef,
    Persisted,
    PodCounts,
    Remnant,
    Workload,
)
from mcad.core.state.quota_records import Designation, Path
from mcad.core.state.reasons import DISPATCHER_ERROR, ConditionType, TeardownReason
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Eviction, Patience, Reservation
from mcad.core.state.status_view import StatusView, Urgency
from mcad.core.state.timers import OF_PHASE, Timer
from mcad.core.state.units import Duration, Instant
from mcad.core.state.violations import InvariantViolated
from mcad.core.state.waiting_reason import Hold
from mcad.core.state.waiting_state import WaitingState

STORY_MAX = 16


@dataclass(slots=True)
class StatusWrites:
    """The status on its way to the server."""

    serial: int = 0  # numbers the writes
    flying: StatusView | None = None  # the write whose outcome is open
    flying_in: Phase = Phase.WAITING  # the phase that requested it
    urgency: Urgency = Urgency.REPORT
    written: StatusView | None = None  # the last persisted view, None if unknown
    dirty: bool = False  # another write follows as soon as the outcome is known
    tries: Tries = field(default_factory=Tries)  # writes that failed in a row

    def gives_way_to(self, urgency: Urgency) -> bool:
        """Whether a later write takes the place of the open one, if there is one. Of two reports
        both are written: a condition that ended and began anew has to show both."""
        return self.flying is None or urgency is Urgency.DISPATCH is not self.urgency

    def send(self, view: StatusView, phase: Phase, urgency: Urgency) -> int:
        """Note a write on its way; returns its number."""
        self.serial += 1
        self.flying, self.flying_in, self.urgency = view, phase, urgency
        return self.serial

    def answer(self, serial: int, *, is_persisted: bool) -> bool:
        """Note the outcome of a write; False if it is not the open one."""
        if serial != self.serial or self.flying is None:
            return False
        self.written, self.flying = self.flying if is_persisted else None, None
        if is_persisted:
            self.tries = Tries()
        return True


class Absence(NamedTuple):
    """Why an item is missing: its fate, and whether the cluster took it away (``lost``) or a
    client."""

    words: str
    lost: bool = False


@dataclass(slots=True)
class Creation:
    """The items of an attempt as they come into being."""

    cursor: int = 0  # the next item to create
    asked: bool = False  # its create is under way
    doubt: Instant = 0  # until when a create without a clear answer may be committed (ADR 7)
    created: dict[int, str] = field(default_factory=dict)  # item -> uid of the existing object
    words: str = ""  # the server's message of a 403
    # item -> why, of items that were seen to go or that a live read did not find
    absent: dict[int, Absence] = field(default_factory=dict)
    # When the next live read is due of an item that no watch has reported.
    read_again: dict[int, Instant] = field(default_factory=dict)

    def exists(self, item: int, uid: str) -> None:
        """Note that the item exists, as the object with this uid."""
        self.created[item] = uid
        self.absent.pop(item, None)

    def vanished(self, item: int, why: Absence) -> None:
        """Note that the item does not exist any more."""
        self.created.pop(item, None)
        self.absent[item] = why


@dataclass(slots=True)
class Removal:
    """The objects of an attempt that is taken back, as they go."""

    undeleted: set[int] = field(default_factory=set)  # items whose deletion is not accepted yet
    remains: tuple[Remnant, ...] = ()  # the findings of the last look
    looks: int = 0  # how many looks found something
    overtaken: bool = False  # something has gone since the look was requested
    forced: bool = False  # an Event has reported that force was used
    remains_reported: bool = False  # an Event has reported the remains of the deleted AppWrapper

    def found(self, remains: tuple[Remnant, ...]) -> None:
        """Note a look that found remains."""
        self.remains, self.looks = remains, self.looks + 1


@dataclass(slots=True)
class Run:
    """The objects and pods of an attempt, as they run."""

    finished: set[int] = field(default_factory=set)  # items that reported their end
    failed: set[int] = field(default_factory=set)  # items that reported a failure
    awaits_nodes: bool = False  # this leader has seen it run before all of its pods had nodes
    waited_for_nodes: Duration = 0  # for how long, if that does not count for its limit
    # When a pod of it last appeared, lost its gates, got its node or became ready (stage.py).
    stage_since: Instant = 0
    ungated_at: Instant = 0  # when pods of it last lost their gates
    missing: int = 0  # pods that should exist and do not
    missing_since: Instant = 0  # since when this many are missing, 0 if none
    ends_at: Instant = 0  # when its attempt ends if nothing changes, 0 if never
    refused: dict[int, str] = field(default_factory=dict)  # item -> why its pods are not created
    calm_since: Instant = 0  # since when its pods run without a stall, 0 during a stall
    refused_read: Instant = 0  # when Events were last read

    def begin(self, finished: Iterable[int]) -> None:
        """Begin the run of an attempt whose items with these numbers have finished."""
        self.finished, self.failed = set(finished), set()
        self.stage_since = self.ungated_at = self.missing = self.missing_since = 0
        self.refused, self.refused_read = {}, 0


@dataclass(slots=True)
class Past:
    """The attempts so far, counted: a restart reads them from the status."""

    first_dispatch: Instant = 0
    requeueings: int = 0
    requeueing_wait: Duration = 0  # the present wait before a requeue, 0 before the first
    resets: int = 0
    refusals: int = 0  # attempts since the last dispatch that a quota or admission refused
    in_vain: int = 0  # attempts in a row that never had nodes for all pods (ADR 17)


@dataclass(slots=True)
class Wait:
    """Its place in the line or out of it, and what its status shows of why it waits."""

    state: WaitingState = WaitingState.OUT
    hold: Hold | None = None  # why it is out of the line
    pause: Hold | None = None  # keeps it out after failed attempts, through all edits
    head_since: Instant = 0  # when it became the head of the line, if it is (R6)
    binding_since: Instant = 0  # since when it fits and waits for bindings of others (R2)
    head_for: Duration = 0  # how long it was head before, until it is dispatched
    deferred_before: Duration = 0  # ``deferred_for`` of its class when it joined (ADR 30)
    reported: Refusal | None = None  # the refusal that its status shows
    reported_at: Instant = 0  # when its status last showed other figures of its wait
    announced: bool = False  # an Event has reported it, in this stay in the queue
    restored: bool = False  # until the first report after a restart, which repeats no record


@dataclass(slots=True, eq=False)
class Entry:
    """All that is known about one AppWrapper.

    The fields are grouped by owner; tests/core/test_owners.py says which modules assign them.
    """

    # -- the AppWrapper as it is observed ------------------------------------------------------

    # While an attempt exists, these items are those of the inventory, one by one (P8).
    workload: Workload
    first_seen: Instant
    edited: Workload | None = None  # the present spec if it differs; counts after the attempt (P8)
    rebuilt: bool = False  # only its objects were seen, not the AppWrapper (P9)
    unreadable: bool = False  # its record is not understood; left alone until it changes

    # -- its life ------------------------------------------------------------------------------

    phase: Phase = Phase.WAITING
    story: list[str] = field(default_factory=list)  # the last signals
    step_since: Instant = 0  # when the present step began
    tries: Tries = field(default_factory=Tries)  # failed requests of the present step
    timers: dict[str, Instant] = field(default_factory=dict)  # running timers, with their ends
    error: InternalError | None = None  # why it is held
    held_from: Phase = Phase.WAITING  # the phase that its status shows while it is held

    # -- its attempt ---------------------------------------------------------------------------

    dispatch: DispatchRecord | None = None
    superseded: DispatchRecord | None = None  # the record that an unwritten intent replaces
    # An ordered set of names of items of earlier attempts that no present item has.
    former: dict[NameKey, None] = field(default_factory=dict)
    creation: Creation = field(default_factory=Creation)
    removal: Removal = field(default_factory=Removal)
    untested: bool = False  # another leader's, seen after the barrier: it may not fit (P12)
    run: Run = field(default_factory=Run)
    past: Past = field(default_factory=Past)

    # -- its status ----------------------------------------------------------------------------

    conditions: dict[str, Condition] = field(default_factory=dict)
    pods: PodCounts = field(default_factory=PodCounts)  # as they were at counted_at
    counted_at: Instant = 0
    # Its place in the quota trees; looked up when there is something to report, so that a new tree
    # does not rewrite the whole line.
    path: Path = ()
    counted: Path = ()  # ``path`` as on record at the start, without a label for it
    deleted_trees: tuple[tuple[str, Instant], ...] = ()  # of the path, and since when: on record
    writes: StatusWrites = field(default_factory=StatusWrites)

    # -- its wait ------------------------------------------------------------------------------

    wait: Wait = field(default_factory=Wait)

    # -- its reservation -----------------------------------------------------------------------

    reservation: Reservation | None = None
    waits_for: dict[str, int] = field(default_factory=dict)  # its release set: uid -> attempt
    patience: Patience = field(default_factory=Patience)  # of reservations that wait for ends
    eviction_patience: Patience = field(default_factory=Patience)  # of reservations with victims
    scale_up_patience: Patience = field(default_factory=Patience)  # of reservations for new nodes

    # -- evictions -----------------------------------------------------------------------------

    planned_at: Instant = 0  # when victims were last searched for it, while it has a reservation
    eviction: Eviction | None = None  # its last eviction

    @property
    def uid(self) -> str:
        """The AppWrapper's uid."""
        return self.workload.uid

    @property
    def title(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.workload.namespace}/{self.workload.name}"

    @property
    def designation(self) -> Designation:
        """The leaves that its labels name, and for trees without a label its place before a
        restart, by which a deleted tree is known to have had the leaf."""
        return Designation((*self.workload.quota, *self.counted))

    @property
    def record(self) -> DispatchRecord:
        """The record of its attempt, for a caller that knows that it has one."""
        if self.dispatch is None:
            raise InvariantViolated("attempt-recorded", f"{self.title} is {self.phase} without one")
        return self.dispatch

    @property
    def reserved(self) -> Reservation:
        """Its reservation, for a caller that knows that it has one."""
        if self.reservation is None:
            raise InvariantViolated("room-reserved", f"{self.title} has no reservation")
        return self.reservation

    def ref(self, item: int) -> ObjectRef:
        """Where an item of its attempt lives; the spec may have been edited."""
        return self.record.inventory[item]

    @property
    def inventory(self) -> tuple[ObjectRef, ...]:
        """The objects of its attempt, () without an attempt."""
        return self.dispatch.inventory if self.dispatch is not None else ()

    @property
    def attempt(self) -> int:
        """The number of the recorded attempt, 0 before the first."""
        return self.dispatch.attempt if self.dispatch else 0

    def move(self, signal: Signal, now: Instant) -> None:
        """Follow the table of lifecycle.py; counters and timers of the step end with it."""
        self.phase = transition(self.title, self.phase, signal, self.story)
        self.story.append(signal)
        del self.story[:-STORY_MAX]
        self.begin_step(now)
        for timer in OF_PHASE.intersection(self.timers):
            del self.timers[timer]

    def set_aside(self, now: Instant) -> None:
        """Set the AppWrapper aside, held in its phase: no timer of it runs."""
        self.held_from = self.phase
        self.move(Signal.ERROR, now)
        self.timers.clear()

    def blame(self, error: InternalError, now: Instant) -> None:
        """Record why the AppWrapper is held."""
        self.error = error
        self.set_condition(
            ConditionType.INTERNAL_ERROR, now, reason=DISPATCHER_ERROR, message=error.message
        )

    def recall(self, saved: Persisted, phase: Phase) -> None:
        """Recall the status of an AppWrapper that is held before more of it was read."""
        self.phase, self.dispatch = phase, saved.dispatch
        self.conditions = {one.type: one for one in saved.conditions}

    def begin_step(self, now: Instant) -> None:
        """Begin to count failed requests anew."""
        self.tries, self.step_since = Tries(), now

    def take_up(self, record: DispatchRecord) -> None:
        """Take up an attempt, of this leader or another: its inventory counts from here on."""
        self.former.update(dict.fromkeys(ref.key for ref in self.inventory))
        for ref in record.inventory:
            self.former.pop(ref.key, None)
        self.superseded, self.dispatch = self.dispatch, record
        self.creation.cursor, self.creation.created, self.creation.absent = 0, {}, {}
        self.run.begin(record.finished)
        spec, self.workload = self.workload, aligned(self.workload, record)
        is_edited = record.payload not in ("", spec.payload) or self.workload is not spec
        self.edited = spec if is_edited else None

    def amend(self, **changes: object) -> None:
        """Change the record of the same attempt."""
        self.dispatch = replace(self.record, **changes)

    def withdraw(self) -> None:
        """Withdraw an unwritten intent: the record before it counts."""
        self.end_attempt()
        self.dispatch = self.superseded

    def end(
        self, phase: DispatchPhase, now: Instant, reason: str, message: str, then: Next
    ) -> None:
        """End the attempt: the record says since when and why, and a failure is shown at once."""
        self.amend(phase=phase, entered=now, reason=reason, message=message, next=then)
        self.drop_condition(ConditionType.STALLED)
        if then is Next.FAILED:
            self.set_condition(ConditionType.FAILED, now, reason=reason, message=message)

    def edit(self, work: Workload) -> None:
        """Note an edit of the spec while an attempt runs: the attempt does not change."""
        record, old = self.dispatch, self.workload
        stands = record is not None and record.phase is not DispatchPhase.RELEASED
        if record is None or not stands or work.payload == record.payload:
            self.workload, self.edited = work, None
        else:
            self.workload, self.edited = replace(work, items=old.items, sets=old.sets), work

    def end_attempt(self) -> None:
        """End the attempt for the spec, which counts as it is now."""
        if self.edited is not None:
            self.workload, self.edited = self.edited, None

    def report_anew(self) -> None:
        """Mark the shown reason to wait as outdated."""
        self.wait.reported = None

    def stops_waiting(self) -> None:
        """End this stay in the queue: in the next one, an Event reports why it waits."""
        self.wait.reported, self.wait.announced = None, False

    def stop(self, timer: Timer) -> None:
        """Stop a timer, if it runs."""
        self.timers.pop(timer, None)

    def begin_stage(self, since: Instant) -> None:
        """Begin to wait for pods anew, after progress of a pod."""
        self.run.stage_since = max(self.run.stage_since, since)

    def limit_counts_from(self, begun: Instant) -> Instant:
        """Since when ``dispatchDuration.limit`` counts in an attempt that begins at ``begun``."""
        record = self.dispatch
        if record is None:
            return begun
        if record.phase not in (DispatchPhase.PAUSED, DispatchPhase.RELEASED):
            return record.limit_since or begun
        return begun - (record.entered - record.limit_since) if record.limit_since else begun

    def limit_used(self) -> Duration:
        """How much of ``dispatchDuration.limit`` is used up when the present attempt is torn down.

        The time of an attempt that ended for lack of running pods, or in a reset, is added: it is
        the workload's own (MCAD counts from the first dispatch). Time without room is not added,
        nor the time of attempts that ended otherwise: evicted, suspended, or without a node.
        """
        record = self.record
        before = record.limit_since or record.since
        if record.reason == TeardownReason.MIN_PODS_NOT_RUNNING or record.next is Next.RESET:
            return max(0, record.entered - before)
        return max(0, record.since - (before - self.run.waited_for_nodes))

    @property
    def may_have_objects(self) -> bool:
        """Whether the attempt on record is not over."""
        record = self.dispatch
        is_over = self.held_from in (*ENDED, Phase.WAITING)
        return record is not None and record.phase is not DispatchPhase.RELEASED and not is_over

    @property
    def keeps_room(self) -> bool:
        """Whether its room is reserved for the attempt after a reset."""
        if self.phase is Phase.PAUSING:
            return True
        return self.phase in TEARING_DOWN and self.record.next is Next.RESET

    @property
    def is_unwanted(self) -> bool:
        """Whether no attempt of it may stand: it is suspended, or deleted and kept."""
        return self.workload.suspended or bool(self.workload.kept_by)

    @property
    def goes(self) -> bool:
        """Whether it is deleted, and no finalizer of others keeps it."""
        return self.workload.deleting and not self.workload.kept_by

    @property
    def lingers(self) -> bool:
        """Whether it is deleted after its objects, and may have some (foreground deletion)."""
        if not self.goes or self.workload.cascade is not Cascade.FOREGROUND:
            return False
        return self.phase in RETAINING and self.phase not in LEFT_ALONE

    def is_at(self, attempt: int, item: int) -> bool:
        """Whether this item of this attempt is being created."""
        at = (self.attempt, self.creation.cursor)
        return self.phase is Phase.CREATING and (attempt, item) == at

    def found(self, item: int) -> None:
        """Note an item that no known create has made: it stems from a create in doubt.

        A single doubt ends; of several creates, the others may still be committed (ADR 7).
        """
        making = self.creation
        if item == making.cursor and not making.asked and self.tries.failures <= 1:
            making.doubt = 0

    def set_condition(
        self, kind: ConditionType, now: Instant, *, reason: str = "", message: str = ""
    ) -> None:
        """Make the condition True; an equal condition keeps its times."""
        self.put_condition(kind, now, status=True, reason=reason, message=message)

    def unset_condition(
        self, kind: ConditionType, now: Instant, *, reason: str, message: str = ""
    ) -> None:
        """Make the condition False if it is True; a condition that never was stays absent."""
        old = self.conditions.get(kind)
        if old is not None and old.status:
            self.put_condition(kind, now, status=False, reason=reason, message=message)

    def drop_condition(self, kind: ConditionType) -> None:
        """Remove the condition: it is present only during a fault."""
        self.conditions.pop(kind, None)

    def stamp_condition(self, kind: ConditionType, now: Instant, *, reason: str) -> None:
        """Make the condition True with new times even if it is True already."""
        self.conditions[kind] = Condition(kind, True, reason, "", now, now)

    def shows(self, kind: ConditionType) -> bool:
        """Whether the condition is True."""
        condition = self.conditions.get(kind)
        return condition is not None and condition.status

    def put_condition(
        self, kind: ConditionType, now: Instant, *, status: bool, reason: str, message: str = ""
    ) -> None:
        """Make the condition True or False; an equal condition keeps its times."""
        old = self.conditions.get(kind)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            return
        changed = old.changed if old is not None and old.status == status else now
        self.conditions[kind] = Condition(kind, status, reason, message, now, changed)
