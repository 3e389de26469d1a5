"""The events of a journal that do not depend on decisions.

What was there at the beginning, what users, nodes and quotas did later, and how long each
AppWrapper ran: other decisions can be replayed against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mcad.core.cluster import Cluster
from mcad.core.events import (
    AppWrapperGone,
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    Decide,
    Event,
    ItemRefused,
    KindWatched,
    NodeGone,
    NodeSeen,
    PauseGone,
    PauseSeen,
    PodGone,
    PodSeen,
    QuotaGone,
    QuotaSeen,
)
from mcad.core.state.answer import Answer
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase, Persisted
from mcad.core.state.reasons import State
from mcad.core.state.records import Struct, replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import Duration, Instant
from mcad.core.status.status import derive, persisted
from mcad.journal.lives import Lives
from mcad.journal.reader import Begin, Gap, Session
from mcad.journal.replay import Made, drive

_TOLD = (
    AppWrapperSeen,
    AppWrapperGone,
    NodeSeen,
    NodeGone,
    QuotaSeen,
    QuotaGone,
    PauseSeen,
    PauseGone,
    PodSeen,
    PodGone,
    ChildSeen,
    ChildGone,
    KindWatched,
)


_BEING_CREATED = frozenset({Phase.INTENDING, Phase.CREATING, Phase.CONFIRMING})


class Run(Struct, frozen=True):
    """The last attempt of an AppWrapper. ``lasted`` is from its dispatch to its end.

    ``deleted_after`` is the time from its end to its deletion, None if it was not deleted;
    ``by_deletion``: a deletion ended it.
    """

    lasted: Duration
    failed: bool = False
    by_deletion: bool = False
    deleted_after: Duration | None = None


@dataclass
class Script:
    """``start`` is what existed before the first decision, ``then`` the later events.

    ``runs`` and ``refused`` are, by uid, how attempts ended and which items were never created;
    ``lives`` are the recorded histories.
    """

    settings: Settings
    begun: Instant
    ended: Instant
    start: list[Event]
    then: list[tuple[Instant, Event]]
    runs: dict[str, Run]
    refused: dict[str, tuple[int, Answer]]
    lives: Lives


def read(sessions: Iterable[Session], until: Instant | None = None) -> tuple[Script, list[str]]:
    """The script of these leaderships, one after another, and what could not be read."""
    writing = _Writing()
    wrong: list[str] = []
    for session in sessions:
        _read(session, writing, wrong, until)
    return writing.script(), wrong


def _read(session: Session, writing: _Writing, wrong: list[str], until: Instant | None) -> None:
    for found in drive(session, until):
        if isinstance(found, Gap):
            wrong.append(found.why)
        elif isinstance(found, Begin):
            writing.begin(session.header.settings)
            if found.cluster is not None:
                _feed_present(found.cluster, writing)
        else:
            writing.step(found)


def _feed_present(cluster: Cluster, writing: _Writing) -> None:
    for event in present(cluster):
        writing.event(event, cluster.now)
    writing.listed(cluster.now)


@dataclass
class _Writing:
    """A script while it is built.

    ``_known`` has the events that would delete each present object, and ``_before`` those of the
    leadership before.
    """

    lives: Lives = field(default_factory=Lives)
    _settings: Settings = field(default_factory=Settings)
    _begun: Instant = 0
    _is_listing: bool = True
    _start: list[Event] = field(default_factory=list)
    _then: list[tuple[Instant, Event]] = field(default_factory=list)
    _refused: dict[str, tuple[int, Answer]] = field(default_factory=dict)
    _known: dict[Event, None] = field(default_factory=dict)
    _before: dict[Event, None] = field(default_factory=dict)

    def begin(self, settings: Settings) -> None:
        """Another leadership begins, or another file after a gap: present objects are listed."""
        self._settings, self._is_listing = settings, True
        self._before, self._known = self._known, {}

    def listed(self, now: Instant) -> None:
        """All present objects are listed; missing ones were deleted in between."""
        if not self._is_listing:
            return
        self._is_listing = False
        if not self._begun:
            self._begun = now
            self.lives.measure_from(now)
        for gone in self._before:
            if gone not in self._known:
                self.event(gone, now)

    def step(self, made: Made) -> None:
        """Take a step with its commands."""
        event, now = made.step.event, made.step.now
        if isinstance(event, Decide):
            self.listed(now)
        self.event(event, now)
        for command in made.commands:
            self.lives.command(command, now)

    def event(self, event: Event, now: Instant) -> None:
        """Take an event."""
        self.lives.observe(event, now)
        if isinstance(event, ItemRefused):
            self._refused[event.uid] = (event.item, event.answer)
        if not isinstance(event, _TOLD):
            return
        if self._begun:
            self._then.append((now, event))
        else:
            self._start.append(event)
        gone = _gone(event)
        if gone == event:
            self._known.pop(event, None)
        elif gone is not None:
            self._known[gone] = None

    def script(self) -> Script:
        """The script, without events that follow from decisions."""
        lives = self.lives.by_uid
        runs = {uid: run for uid in lives if (run := self._run(uid)) is not None}
        decided = self._decided()
        return Script(
            settings=self._settings,
            begun=self._begun,
            ended=self.lives.now,
            start=self._start,
            then=[
                (now, event)
                for now, event in self._then
                if _gone(event) not in decided and not _is_end_of_a_run(event, runs)
            ],
            runs=runs,
            refused={
                uid: why
                for uid, why in self._refused.items()
                if uid in lives and lives[uid].failed and not lives[uid].first
            },
            lives=self.lives,
        )

    def _decided(self) -> set[Event]:
        """The deletions of objects and pods of our AppWrappers."""
        found: set[Event] = set()
        for event in (*self._start, *(event for _, event in self._then)):
            owner = ""
            if isinstance(event, PodSeen):
                owner = event.pod.workload
            elif isinstance(event, ChildSeen):
                owner = event.child.workload
            gone = _gone(event)
            if owner in self.lives.by_uid and gone is not None:
                found.add(gone)
        return found

    def _run(self, uid: str) -> Run | None:
        """The run; None if never dispatched, ended before the journal began, or not ended in it."""
        life = self.lives.by_uid[uid]
        over = life.ended or life.deleted
        if not life.last or not over or over <= self._begun:
            return None
        after = life.deleted - life.ended if life.ended and life.deleted else None
        return Run(over - life.last, life.failed, not life.ended, after)


def present(cluster: Cluster) -> Iterator[Event]:
    """The events that would rebuild this core after a restart.

    An AppWrapper that is being created is restored as dispatched, although this core may not know
    all of its objects.
    """
    for (group, resource), message in cluster.objects.unwatched.items():
        yield KindWatched(group, resource, watched=False, message=message)
    for node in cluster.capacity.nodes():
        yield NodeSeen(node)
    for subtree in cluster.forest.subtrees.values():
        yield QuotaSeen(subtree)
    yield from map(PauseSeen, cluster.waiting.dispatch_pauses.by_uid.values())
    for entry in cluster.entries.values():
        if not entry.rebuilt and entry.phase is not Phase.GONE:
            work = replace(entry.edited or entry.workload, persisted=_saved(entry, cluster.now))
            yield AppWrapperSeen(work, listed=True)
    yield from map(ChildSeen, cluster.objects.by_uid.values())
    yield from map(PodSeen, cluster.capacity.pods.all())


def _saved(entry: Entry, now: Instant) -> Persisted:
    saved = replace(persisted(derive(entry)), foreign=entry.phase is Phase.FOREIGN)
    if saved.dispatch is None or entry.phase not in _BEING_CREATED:
        return saved
    record = saved.dispatch
    confirmed = record.confirmed or now
    done = replace(record, phase=DispatchPhase.DISPATCHED, confirmed=confirmed)
    return replace(saved, state=State.RUNNING, dispatch=done)


def _gone(event: Event) -> Event | None:
    """The event that deletes the object of an event; None if it has none."""
    match event:
        case AppWrapperSeen():
            return AppWrapperGone(event.workload.uid)
        case NodeSeen():
            return NodeGone(event.node.name)
        case QuotaSeen():
            return QuotaGone(event.subtree.uid)
        case PauseSeen():
            return PauseGone(event.pause.uid)
        case PodSeen():
            return PodGone(event.pod.uid)
        case ChildSeen():
            return ChildGone(event.child.uid)
        case AppWrapperGone() | NodeGone() | QuotaGone() | PauseGone() | PodGone() | ChildGone():
            return event
        case _:
            return None


def _is_end_of_a_run(event: Event, runs: Mapping[str, Run]) -> bool:
    """Whether a deletion follows from the end of a run, which has its own time in a script."""
    if isinstance(event, AppWrapperGone):
        return event.uid in runs
    return isinstance(event, AppWrapperSeen) and event.workload.deleting
