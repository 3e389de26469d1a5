"""One AppWrapper as the dispatcher remembers it: mutable, and owned by the World alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.state.bounds import Tries
from mcad.core.state.inventory import aligned
from mcad.core.state.lifecycle import RETAINING, TEARING_DOWN, Phase, Signal, transition
from mcad.core.state.model import (
    Cascade,
    Condition,
    DispatchPhase,
    DispatchRecord,
    Next,
    ObjectRef,
    PodCounts,
    Remnant,
    Workload,
)
from mcad.core.state.names import NameKey, name_key
from mcad.core.state.quota_records import Path
from mcad.core.state.reasons import ConditionType, TeardownReason
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
    """The status on its way to the server.

    ``serial`` numbers the writes; ``flying`` is the one whose outcome is open, ``flying_in`` and
    ``urgency`` tell what asked for it; ``written`` is the last one that is persisted, None if
    unknown; ``dirty`` asks for another one as soon as the outcome is known, and ``tries`` counts
    those that failed.
    """

    serial: int = 0
    flying: StatusView | None = None
    flying_in: Phase = Phase.WAITING
    urgency: Urgency = Urgency.REPORT
    dirty: bool = False
    written: StatusView | None = None
    tries: Tries = field(default_factory=Tries)


@dataclass(slots=True)
class Creation:
    """The items of an attempt as they come into being.

    ``cursor`` is the next one to create, ``asked`` whether its create is under way, and ``doubt``
    the instant until which one that got no clear answer may still be committed (ADR 7);
    ``created`` are the uids of those that exist (item number -> uid), and ``words`` what the server
    said to a 403. ``absent`` are items that were seen to go, or that a live read did not find, and
    ``read_again`` is when the next live read of one that no watch has told of is due.
    """

    cursor: int = 0
    asked: bool = False
    doubt: Instant = 0
    created: dict[int, str] = field(default_factory=dict)
    words: str = ""
    absent: set[int] = field(default_factory=set)
    read_again: dict[int, Instant] = field(default_factory=dict)


@dataclass(slots=True)
class Removal:
    """The objects of an attempt that is taken back, as they go.

    ``undeleted`` are the items whose deletion is not accepted yet, ``remains`` what the last of so
    many ``looks`` found, and ``overtaken`` whether something has gone since it was asked for.
    """

    undeleted: set[int] = field(default_factory=set)
    remains: tuple[Remnant, ...] = ()
    looks: int = 0
    overtaken: bool = False
    forced: bool = False


@dataclass(slots=True, eq=False)
class Entry:
    """Everything that is known about one AppWrapper.

    While an attempt stands, the items of ``workload`` are those of its inventory, one by one, and
    ``edited`` is the spec as it is now if that differs: it counts when the attempt is over (P8).

    ``former`` (an ordered set) are names of items of earlier attempts that are no item's any more.
    ``superseded`` is the record that an unwritten intent replaces. ``pods`` are those that status
    tells of, as they were at ``counted_at`` (see pod_counts.py). ``finished`` are the items that
    have said so, and ``failed`` those that say that they failed.
    ``requeueing_wait`` is the present wait before a requeue, 0 before the first, and ``resets``
    counts those since it was created.

    ``path`` is where it counts in the quota trees, as its status shows it: it is looked up when
    there is something to tell, so that a new tree does not rewrite the whole line. ``reservation``
    is the room that is reserved for it while it waits, and ``waits_for`` holds those that have to
    leave for that, uid -> attempt; ``fulfilled`` is the reservation of an intent that is not
    persisted yet. ``patience`` tells of reservations that came to nothing because others did not
    end, ``eviction_patience`` of those for which others were evicted, and ``planned_at`` is when it
    was last looked for victims while it has a reservation. ``eviction`` is the last time that its
    room was taken for another one's; ``opponents`` are the uids of all for which it was, and when.
    ``reported`` is the refusal that its status shows and ``reported_at`` when it was written;
    ``announced`` whether an Event said so in this stay in the queue; ``restored`` until the first
    verdict after a restart, which must not rewrite figures that are on record. ``untested``: its
    attempt is another leader's and was first seen after the barrier, so it is unknown yet whether
    it fits (P12). ``rebuilt``: only objects that it left were seen, not the AppWrapper (P9).
    ``unreadable``: its record of an attempt is not understood, so it is left alone until that
    changes. ``head_since`` is when it became the head of the line, if it is; ``head_for`` for how
    long it was that before, in this stay in the queue (R6).

    ``awaits_nodes`` is whether this leader has seen it run before all of its pods had nodes, and
    ``waited_for_nodes`` for how long, if that does not count for its limit (pod_timeouts.py).
    ``missing_since`` is when pods began to be missing, 0 if none is. ``tries`` counts failed
    requests of the present step, which began at ``step_since``,
    ``refusals`` the attempts since the last dispatch that a quota or admission refused, and
    ``in_vain`` those in a row that came to nothing: not all of their pods ever had nodes (ADR 17).
    ``pause`` keeps it out of the line after them, whatever is edited. ``timers`` holds the timers
    that run, with their ends (see timers.py).
    """

    workload: Workload
    first_seen: Instant
    edited: Workload | None = None
    phase: Phase = Phase.WAITING
    dispatch: DispatchRecord | None = None
    superseded: DispatchRecord | None = None
    former: dict[NameKey, None] = field(default_factory=dict)
    rebuilt: bool = False
    unreadable: bool = False
    first_dispatch: Instant = 0
    awaits_nodes: bool = False
    waited_for_nodes: Duration = 0
    requeueings: int = 0
    requeueing_wait: Duration = 0
    resets: int = 0
    pods: PodCounts = field(default_factory=PodCounts)
    counted_at: Instant = 0
    conditions: dict[str, Condition] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    writes: StatusWrites = field(default_factory=StatusWrites)
    creation: Creation = field(default_factory=Creation)
    removal: Removal = field(default_factory=Removal)
    waiting: WaitingState = WaitingState.OUT
    hold: Hold | None = None
    pause: Hold | None = None
    path: Path = ()
    reservation: Reservation | None = None
    waits_for: dict[str, int] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    eviction_patience: Patience = field(default_factory=Patience)
    planned_at: Instant = 0
    eviction: Eviction | None = None
    opponents: dict[str, Instant] = field(default_factory=dict)
    reported: Refusal | None = None
    reported_at: Instant = 0
    announced: bool = False
    restored: bool = False
    untested: bool = False
    head_since: Instant = 0
    head_for: Duration = 0
    tries: Tries = field(default_factory=Tries)
    step_since: Instant = 0
    missing_since: Instant = 0
    in_vain: int = 0
    refusals: int = 0
    timers: dict[str, Instant] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)

    @property
    def uid(self) -> str:
        """The AppWrapper's uid."""
        return self.workload.uid

    @property
    def title(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.workload.namespace}/{self.workload.name}"

    @property
    def record(self) -> DispatchRecord:
        """The record of its attempt, for a caller that knows that there is one."""
        if self.dispatch is None:
            raise InvariantViolated("attempt-recorded", f"{self.title} is {self.phase} without one")
        return self.dispatch

    def ref(self, item: int) -> ObjectRef:
        """Where an item of its attempt lives; the spec may have been edited."""
        return self.record.inventory[item]

    @property
    def inventory(self) -> tuple[ObjectRef, ...]:
        """What its attempt consists of, () if there is none."""
        return self.dispatch.inventory if self.dispatch is not None else ()

    @property
    def attempt(self) -> int:
        """The number of the recorded attempt, 0 before the first."""
        return self.dispatch.attempt if self.dispatch else 0

    def move(self, signal: Signal, now: Instant) -> None:
        """Follow the table of lifecycle.py; what counts and times the step ends with it."""
        self.phase = transition(self.title, self.phase, signal, self.story)
        self.story.append(signal)
        del self.story[:-STORY_MAX]
        self.tries, self.step_since = Tries(), now
        for timer in OF_PHASE.intersection(self.timers):
            del self.timers[timer]

    def take_up(self, record: DispatchRecord) -> None:
        """An attempt stands, of this leader or another: it is judged by its inventory from here
        on."""
        self.former.update(dict.fromkeys(map(name_key, self.inventory)))
        for ref in record.inventory:
            self.former.pop(name_key(ref), None)
        self.dispatch = record
        self.creation.cursor, self.creation.created = 0, {}
        self.missing_since = 0
        self.finished, self.failed = set(record.finished), set()
        spec, self.workload = self.workload, aligned(self.workload, record)
        is_edited = record.payload not in ("", spec.payload) or self.workload is not spec
        self.edited = spec if is_edited else None

    def end(
        self, phase: DispatchPhase, now: Instant, reason: str, message: str, then: Next
    ) -> None:
        """Its attempt ends: the record says since when and why, and a failure is shown at once."""
        self.dispatch = replace(
            self.record, phase=phase, entered=now, reason=reason, message=message, next=then
        )
        if then is Next.FAILED:
            self.set_condition(ConditionType.FAILED, now, reason=reason, message=message)

    def edit(self, work: Workload) -> None:
        """The spec was edited while an attempt stands: what is dispatched stays what it is."""
        record, old = self.dispatch, self.workload
        stands = record is not None and record.phase is not DispatchPhase.RELEASED
        if record is None or not stands or work.payload == record.payload:
            self.workload, self.edited = work, None
        else:
            self.workload, self.edited = replace(work, items=old.items, sets=old.sets), work

    def end_attempt(self) -> None:
        """No attempt stands any more: the spec counts as it is now."""
        if self.edited is not None:
            self.workload, self.edited = self.edited, None

    def stop(self, timer: Timer) -> None:
        """Let a timer not ring, if it runs."""
        self.timers.pop(timer, None)

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

        The time of an attempt that ended for want of running pods, or in a reset, is added: that is
        the workload's own (MCAD counts from the first dispatch). Time without room is not, nor that
        of attempts that ended otherwise: evicted, suspended, or without a node.
        """
        record = self.record
        before = record.limit_since or record.since
        if record.reason == TeardownReason.MIN_PODS_NOT_RUNNING or record.next is Next.RESET:
            return max(0, record.entered - before)
        return max(0, record.since - (before - self.waited_for_nodes))

    @property
    def keeps_room(self) -> bool:
        """Whether its room is reserved for the attempt that follows a reset."""
        if self.phase is Phase.PAUSING:
            return True
        return self.phase in TEARING_DOWN and self.record.next is Next.RESET

    @property
    def lingers(self) -> bool:
        """Whether it is deleted after its objects, and there may be some (foreground deletion)."""
        if not self.workload.deleting or self.workload.cascade is not Cascade.FOREGROUND:
            return False
        return self.phase in RETAINING and self.phase is not Phase.FOREIGN

    def is_at(self, attempt: int, item: int) -> bool:
        """Whether this item of this attempt is the one that is being created."""
        at = (self.attempt, self.creation.cursor)
        return self.phase is Phase.CREATING and (attempt, item) == at

    def found(self, item: int) -> None:
        """An item is there that no create of ours is known to have made: the one in doubt did.

        If there was one only; of several, the others may still be committed (ADR 7).
        """
        making = self.creation
        if item == making.cursor and not making.asked and self.tries.failures <= 1:
            making.doubt = 0

    def set_condition(
        self, kind: ConditionType, now: Instant, *, reason: str = "", message: str = ""
    ) -> None:
        """Make the condition True; an equal one keeps its times."""
        self.put_condition(kind, now, status=True, reason=reason, message=message)

    def unset_condition(
        self, kind: ConditionType, now: Instant, *, reason: str, message: str = ""
    ) -> None:
        """Make the condition False if it is True; one that never was stays absent."""
        old = self.conditions.get(kind)
        if old is not None and old.status:
            self.put_condition(kind, now, status=False, reason=reason, message=message)

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
        """Make the condition True or False; an equal one keeps its times."""
        old = self.conditions.get(kind)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            return
        changed = old.changed if old is not None and old.status == status else now
        self.conditions[kind] = Condition(kind, status, reason, message, now, changed)
