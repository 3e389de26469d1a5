"""Whether the protocol allows what was observed of real hubs and members.

``accepts`` reads what API servers stored, in that order, for one AppWrapper. It knows no view of a
leader, only what there is: where the model asks whether a leader may think that a copy is dead,
this asks whether the copy is dead. So it says nothing about reads (M6, and the live read of M9)
unless a write shows that one was missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.clusters.model import ALIVE, NOT_STANDING, Attempt


class Seen(StrEnum):
    """Kinds of events."""

    OFFERED = "offered"  # a copy was created by a hub
    RECORDED = "recorded"  # status.assignment was written
    GRANTED = "granted"
    WITHDRAWN = "withdrawn"  # a delete that names uid and version was accepted
    REVOKED = "revoked"  # a delete that names the uid was accepted
    UNFINALIZED = "finalizer removed"
    GONE = "gone"  # the copy is absent
    OUTCOME = "outcome written"  # to the hub
    BEGUN = "begun"  # the member's intent was written
    ENDED = "ended"
    TAKEN_BACK = "taken back"  # the member's teardown began
    RELEASED = "released"  # nothing is left of the attempt
    LEADER = "leader changed"
    LEASE = "lease taken"  # a hub holds the Lease in a member
    COPY_DELETED = "copy deleted"  # by a user
    RESUMED = "resumed"  # by a user
    RECREATED = "recreated"  # by a tool
    DELETED = "deleted"  # the AppWrapper, on the hub
    RESTORED = "restored"  # the hub, to the record that the event has
    CLONED = "cloned"  # a second hub, of this name and with this record
    DIED = "died"  # a cluster, for good
    FENCED = "fenced"


class Event(NamedTuple):
    """One event. What it has nothing to do with is left out."""

    kind: Seen
    cluster: str = ""
    uid: str = ""
    number: int = 0  # of the record
    version: str = ""  # of the copy after the write; of a withdrawal the one that the delete names
    is_suspended: bool = True  # of a copy that is created
    hub: str = ""  # that writes
    leader: str = ""  # that writes


class Verdict(NamedTuple):
    """Whether a trace is allowed; if not, its first event that is not, and the rule."""

    number: int = 0  # of the event, from 1
    event: Event | None = None
    rule: str = ""
    why: str = ""

    @property
    def is_allowed(self) -> bool:
        return not self.rule

    def __str__(self) -> str:
        if self.is_allowed:
            return "allowed"
        if self.event is None:
            return f"at the end: {self.rule}: {self.why}"
        what = " ".join(filter(None, (self.event.kind, self.event.uid, self.event.cluster)))
        return f"event {self.number}, {what}: {self.rule}: {self.why}"


def accepts(trace: Iterable[Event], *, is_over: bool = False) -> Verdict:
    """The verdict on a trace. ``is_over``: nothing follows, so all has to be at its end."""
    observed = _Clusters()
    for number, event in enumerate(trace, 1):
        try:
            observed.take(event)
        except _BrokenError as broken:
            return Verdict(number, event, *broken.args)
    try:
        if is_over:
            observed.end()
    except _BrokenError as broken:
        return Verdict(0, None, *broken.args)
    return Verdict()


class _BrokenError(Exception):
    """Rule and reason."""


def _need(is_kept: bool, rule: str, why: str) -> None:
    if not is_kept:
        raise _BrokenError(rule, why)


@dataclass
class _Copy:
    uid: str
    is_suspended: bool
    version: str
    is_granted: bool = False
    is_deleted: bool = False
    is_unfinalized: bool = False
    attempt: Attempt = Attempt.NONE

    def stands(self) -> bool:
        return self.attempt not in NOT_STANDING

    def is_dead(self) -> bool:
        # An intent on a deleted copy creates nothing (P9).
        return self.is_deleted and (not self.stands() or self.attempt is Attempt.EMPTY)

    def may_run(self) -> bool:
        return (self.is_granted or self.stands()) and not self.is_dead()


@dataclass
class _Hub:
    number: int = 0
    cluster: str = ""
    uid: str = ""
    has_outcome: bool = False
    is_deleted: bool = False
    is_doubtful: bool = False  # restored, or another hub was met

    def is_wanted(self) -> bool:
        return not self.has_outcome and not self.is_deleted


OF_A_HUB = (Seen.OFFERED, Seen.GRANTED, Seen.WITHDRAWN, Seen.REVOKED, Seen.UNFINALIZED)
"""What only a hub writes in a member: with its Lease there (M11)."""


class _Clusters:
    """What there is after some events. Each event has a method."""

    def __init__(self) -> None:
        self.hubs = {"": _Hub()}
        self.copies: dict[str, _Copy] = {}
        self.uids: set[str] = set()
        self.recorded: dict[str, str] = {}  # every uid that ever was, and its cluster
        self.granted: set[str] = set()  # every uid that ever was
        self.dead: set[str] = set()
        self.fenced: set[str] = set()
        self.leases: dict[str, str] = {}
        self.leaders: set[str] = set()
        self.past_leaders: set[str] = set()  # of before a restore: their requests may still arrive
        self.has_ended = False

    def take(self, event: Event) -> None:
        self.leaders.add(event.leader)
        if event.kind in OF_A_HUB:
            holder = self.leases.get(event.cluster, event.hub)
            _need(holder == event.hub, "M11", f"hub {holder!r} holds the Lease there")
        getattr(self, f"on_{event.kind.name.lower()}")(event)

    def end(self) -> None:
        hub = self.hubs[""]
        for cluster, copy in self.copies.items():
            if cluster not in self.dead:
                is_left = copy.is_deleted and copy.attempt in (*ALIVE, Attempt.EMPTY)
                _need(not is_left, "M12", f"{copy.uid} is deleted, and was not taken back")
                is_kept = copy.attempt is Attempt.ENDED and not hub.is_deleted
                _need(is_kept, "M9", f"{copy.uid} is left in {cluster}")
        _need(not hub.is_wanted(), "M8", "the hub has no outcome")

    # Hubs and leaders

    def on_recorded(self, event: Event) -> None:
        hub = self._hub(event)
        is_next = event.number == hub.number + 1
        _need(is_next, "M2", f"number {event.number} does not follow {hub.number}")
        _need(event.uid in self.uids, "M2", f"there never was a copy {event.uid}")
        _need(hub.is_wanted(), "M8", "there is an outcome, or the AppWrapper is deleted")
        _need(self._is_recorded_dead(hub), "M6", f"{hub.uid} in {hub.cluster} is not dead")
        if event.uid not in self.granted:  # a granted one runs already, and is adopted (M9)
            self._needs_all(hub, event)
        hub.number, hub.cluster, hub.uid = event.number, event.cluster, event.uid
        self.recorded[event.uid] = event.cluster

    def on_outcome(self, event: Event) -> None:
        hub = self._hub(event)
        copy = self.copies.get(hub.cluster)
        _need(hub.is_wanted(), "M8", "the outcome is written once")
        is_it = copy is not None and copy.uid == hub.uid and copy.attempt is Attempt.ENDED
        _need(is_it, "M8", "the recorded copy has not ended")
        hub.has_outcome = True

    def on_deleted(self, event: Event) -> None:
        self._hub(event).is_deleted = True

    def on_restored(self, event: Event) -> None:
        self.hubs[event.hub] = _Hub(event.number, event.cluster, event.uid, is_doubtful=True)
        self.past_leaders |= self.leaders
        self.has_ended = self.has_ended and not self.dead

    def on_cloned(self, event: Event) -> None:
        self.hubs[event.hub] = _Hub(event.number, event.cluster, event.uid)

    def on_lease(self, event: Event) -> None:
        if self.leases.get(event.cluster, event.hub) != event.hub:
            self._hub(event).is_doubtful = True
        self.leases[event.cluster] = event.hub

    def on_leader(self, event: Event) -> None:
        """Its name is known from here on."""

    # What hubs do with copies

    def on_offered(self, event: Event) -> None:
        _need(event.is_suspended, "M1", "a copy is created suspended")
        self._create(event)

    def on_granted(self, event: Event) -> None:
        copy = self._copy(event)
        if event.uid not in self.recorded:
            is_other = event.cluster in self.recorded.values()
            raise _BrokenError("M3" if is_other else "M2", f"{event.uid} was never recorded")
        self._needs_all(self._hub(event), event)
        copy.is_granted, copy.is_suspended = True, False
        self.granted.add(event.uid)

    def on_withdrawn(self, event: Event) -> None:
        copy = self._copy(event)
        _need(not copy.stands(), "M5", "its attempt stands")
        is_current = "" in (event.version, copy.version) or event.version == copy.version
        _need(is_current, "M5", f"the delete names {event.version}, there is {copy.version}")
        copy.is_deleted = True

    def on_revoked(self, event: Event) -> None:
        copy, hub = self._copy(event), self._hub(event)
        is_ours = copy.is_granted or copy.stands()
        _need(is_ours, "M5", "it was not granted: it is withdrawn, by its version")
        if event.leader and event.leader not in self.past_leaders:
            is_forgotten = hub.is_doubtful and hub.is_wanted() and hub.uid != event.uid
            is_adopted = is_forgotten and self._is_recorded_dead(hub)
            _need(not is_adopted, "M9", "the hub was restored: a granted copy is recorded")
        copy.is_deleted = True

    def on_unfinalized(self, event: Event) -> None:
        copy = self._copy(event)
        if copy.attempt is Attempt.ENDED:
            _need(self._hub(event).is_deleted, "M8", "it has ended, and its AppWrapper is there")
        else:
            _need(copy.is_deleted, "M7", "it is not deleted")
            _need(copy.is_dead(), "M7", "its attempt stands")
        copy.is_unfinalized = True

    # What happens in members

    def on_begun(self, event: Event) -> None:
        copy = self._copy(event)
        _need(copy.is_granted, "M4", "its grant does not name its uid")
        _need(not copy.is_suspended, "M4", "it is suspended")
        _need(not copy.stands(), "trace", "an attempt stands")
        if copy.is_deleted:
            copy.attempt = Attempt.EMPTY
            return
        _need(not self.has_ended, "M8", "it runs again after it has ended")
        for cluster, other in self.copies.items():
            is_alive = other is not copy and other.attempt in ALIVE and cluster not in self.dead
            _need(not is_alive, "M6", f"{other.uid} is alive in {cluster}")
        copy.attempt = Attempt.RUNNING

    def on_ended(self, event: Event) -> None:
        self._move(event, Attempt.ENDED, Attempt.RUNNING)
        self.has_ended = True

    def on_taken_back(self, event: Event) -> None:
        self._move(event, Attempt.LEAVING, Attempt.RUNNING)

    def on_released(self, event: Event) -> None:
        self._move(event, Attempt.RELEASED, Attempt.LEAVING, Attempt.EMPTY)

    def on_gone(self, event: Event) -> None:
        _need(self._copy(event).is_unfinalized, "M7", "its finalizer was not removed")
        del self.copies[event.cluster]

    def on_copy_deleted(self, event: Event) -> None:
        self._copy(event).is_deleted = True

    def on_resumed(self, event: Event) -> None:
        self._copy(event).is_suspended = False

    def on_recreated(self, event: Event) -> None:
        self._create(event)

    def on_died(self, event: Event) -> None:
        """What has ended there and was not written yet is known nowhere: it runs again."""
        self.dead.add(event.cluster)
        self.has_ended = self.has_ended and self.hubs[""].has_outcome

    def on_fenced(self, event: Event) -> None:
        self.fenced.add(event.cluster)

    # What there is

    def _hub(self, event: Event) -> _Hub:
        if event.hub not in self.hubs:
            raise _BrokenError("trace", f"there is no hub {event.hub!r}")
        return self.hubs[event.hub]

    def _copy(self, event: Event) -> _Copy:
        copy = self.copies.get(event.cluster)
        if copy is None or copy.uid != event.uid:
            raise _BrokenError("trace", f"there is no copy {event.uid} in {event.cluster}")
        if event.kind is not Seen.WITHDRAWN:
            copy.version = event.version
        return copy

    def _create(self, event: Event) -> None:
        _need(event.cluster not in self.copies, "trace", "there is a copy")
        _need(event.uid not in self.uids, "trace", "the uid was used before")
        self.uids.add(event.uid)
        self.copies[event.cluster] = _Copy(event.uid, event.is_suspended, event.version)

    def _move(self, event: Event, to: Attempt, *before: Attempt) -> None:
        copy = self._copy(event)
        _need(copy.attempt in before, "trace", f"its attempt is {copy.attempt.name}")
        copy.attempt = to

    def _is_recorded_dead(self, hub: _Hub) -> bool:
        copy = self.copies.get(hub.cluster)
        is_there = copy is not None and copy.uid == hub.uid and hub.cluster not in self.fenced
        return not is_there or (copy is not None and copy.is_dead())

    def _needs_all(self, hub: _Hub, event: Event) -> None:
        """A hub that may have forgotten a copy has to know that there is none. What a leader sent
        before the restore may arrive after it: a record alone starts nothing."""
        if not hub.is_doubtful or event.leader in self.past_leaders:
            return
        for cluster, copy in self.copies.items():
            is_free = cluster in (event.cluster, *self.fenced) or not copy.may_run()
            _need(is_free, "M10", f"the hub was restored, and {copy.uid} may run in {cluster}")
        for cluster, holder in self.leases.items():
            is_held = cluster in self.fenced or holder == event.hub
            _need(is_held, "M11", f"hub {holder!r} holds the Lease in {cluster}")
