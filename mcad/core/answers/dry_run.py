"""A dispatcher of its own that is fed with the facts of a cluster, and runs its cycle.

A change is made, the line is walked as in any cycle, and all of it is taken back: started
AppWrappers return to the line as after an intent that the API server refused. If reservations
moved, or the walk did not come to an end, a new dispatcher is fed instead. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol

from mcad.core.cluster import Cluster
from mcad.core.commands import WriteStatus
from mcad.core.cycle import cycle
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event, StatusRefused
from mcad.core.preemption import search
from mcad.core.queue.equivalence import NO_HEAD, EquivalenceClass
from mcad.core.reservations import release_set
from mcad.core.state.answer import Answer
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import ENDED, TEARING_DOWN, Phase
from mcad.core.state.records import Struct, replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Reservation
from mcad.core.state.settings import Settings
from mcad.core.state.units import Instant

PASSES_MAX = 50
"""Passes of one walk: each is bounded as in the dispatcher, and starts at most 200."""

_REFUSED = Answer(409, "Conflict", "a dry run")


STEP_US = 5
"""The approximate time of a step of a question's work, in microseconds."""

TRIAL_STEPS = 300
"""The work of a trial besides its verdicts."""


class OutOfWorkError(Exception):
    """The allowed work is spent: no further trial begins."""


class Facts(Struct, frozen=True):
    """All observations of a cluster, as events, and the settings of its dispatcher."""

    settings: Settings
    events: Sequence[Event]
    now: Instant


def fed(facts: Facts) -> Dispatcher:
    """A dispatcher that has processed the facts, and not decided yet."""
    dispatcher = Dispatcher(facts.settings)
    for event in facts.events:
        dispatcher.step(event, facts.now)
    return dispatcher


class Change(Protocol):
    """A change of the facts."""

    def make(self, run: DryRun) -> Callable[[], None]:
        """Make the change; returns a function that takes it back."""
        ...


def _order(entry: Entry) -> tuple[bool, search.VictimOrder]:
    return entry.phase not in TEARING_DOWN, search.victim_order(entry)


class _VerdictsBefore:
    """The verdicts on all classes in line, and which of them keep borrowers waiting, before a
    trial: the verdicts of the changed cluster must not stand."""

    def __init__(self, cluster: Cluster) -> None:
        self._waiting, self._owners = cluster.waiting, cluster.waiting.queue.ask_back
        self._refusals: dict[EquivalenceClass, Refusal | None] = {}
        self._asks_back: dict[EquivalenceClass, tuple[str, Instant]] = {}
        for eqclass in self._waiting.queue.eqclasses():
            self._refusals[eqclass] = eqclass.refusal
            if eqclass.asks_back is not NO_HEAD:
                self._asks_back[eqclass] = eqclass.asks_back
        self._asked = self._owners.copy()

    def restore(self) -> None:
        """Restore the verdicts of classes that are refused for the same as before, and judge the
        others again in the next walk."""
        for eqclass in list(self._waiting.queue.eqclasses()):
            before, after = self._refusals.get(eqclass), eqclass.refusal
            if before is None or after is None or before.signature != after.signature:
                self._waiting.verdicts.requeue(eqclass)
            else:
                eqclass.refusal = before

    def restore_owners(self) -> None:
        """Let the same classes as before keep borrowers waiting."""
        for eqclass in self._refusals:
            eqclass.asks_back = self._asks_back.get(eqclass, NO_HEAD)
        new = [one for one in self._owners if one not in self._refusals]
        owners = [*(one for one in self._asked if one.members), *new]
        self._owners.clear()
        self._owners.update(dict.fromkeys(owners))


class DryRun:
    """The dispatcher before its next cycle.

    ``starting`` are the uids of the AppWrappers that start in it without any change, in order.
    ``holders`` (an ordered set) are the uids of AppWrappers that hold room: leaving ones first,
    then the lowest priority, and of these the latest dispatch. ``candidates`` are the AppWrappers
    that may be evicted, None if none ever is. ``trials`` counts the walks, and ``left`` is the work
    that is left for them, in steps.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.trials = 0
        self.left = 2**62
        self._begin()
        present = sorted(release_set.present(self.cluster), key=_order)
        self.holders = {entry.uid: None for entry in present}
        self.candidates = search.survey(self.cluster) if self._may_evict() else None
        with self.tried() as started:
            self.starting = list(started)

    def _may_evict(self) -> bool:
        settings = self.cluster.settings
        return settings.preemption or (settings.reclaim and bool(self.cluster.forest.trees))

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """All priorities of AppWrappers that wait or hold room, rising."""
        entries = self.cluster.entries.values()
        counted = (one for one in entries if one.phase not in ENDED)
        return tuple(sorted({one.workload.priority for one in counted}))

    def _begin(self) -> None:
        self._serials: dict[str, int] = {}
        # No pod is bound in a dry run, so nothing may wait for bindings.
        settings = replace(self.facts.settings, binding_wait=0)
        self._dispatcher = fed(replace(self.facts, settings=settings))
        agenda = self.cluster.agenda
        self.feed(Decide(may_dispatch=False))  # takes up begun work, as far as a pass gets
        while agenda.is_behind or agenda.to_judge:
            self.feed(Decide(may_dispatch=False))
        self._walk()
        self._withdraw()

    def allow(self, steps: int) -> None:
        """Allow trials this much work from now on; the last trial may exceed it."""
        self.left = steps

    def spend(self, microseconds: int) -> None:
        """Count work besides trials: steps of a snapshot, each about a microsecond."""
        self.left -= microseconds // STEP_US

    @property
    def cluster(self) -> Cluster:
        """The cluster as the dispatcher knows it now."""
        return self._dispatcher.cluster

    def feed(self, event: Event) -> None:
        """Feed an event to the dispatcher."""
        self._dispatcher.step(event, self.facts.now)

    def entry(self, uid: str) -> Entry:
        """The entry of a known AppWrapper."""
        return self.cluster.entries[uid]

    def starts(self, uid: str, *changes: Change) -> bool:
        """Whether the AppWrapper is dispatched in the next cycle after these changes."""
        with self.tried(*changes) as started:
            return uid in started

    @contextmanager
    def tried(self, *changes: Change) -> Iterator[list[str]]:
        """The AppWrappers that start after these changes (uids, in order). The cluster is in that
        state within the context, and as before after it. ``OutOfWorkError`` if no work is left."""
        if self.left <= 0:
            raise OutOfWorkError
        self.trials += 1
        self._serials = {}
        begun = self.cluster.admission.steps
        reservations = self._reservations()
        known = _VerdictsBefore(self.cluster)
        take_back = [change.make(self) for change in changes]
        is_done = self._walk()
        started = list(self._serials) if is_done else []
        try:
            yield started
        finally:
            cluster = self.cluster
            if is_done and reservations == self._reservations():
                self._withdraw()
                for undo in reversed(take_back):
                    undo()
                known.restore()
                self._walk()
                self._withdraw()
                known.restore_owners()
            else:
                self._begin()
            self.left -= TRIAL_STEPS + cluster.admission.steps - begun

    def _walk(self) -> bool:
        """Walk the line until nothing more starts; False if that takes too many passes."""
        for _ in range(PASSES_MAX):
            before = len(self._serials)
            continues = cycle.start_what_fits(self.cluster)
            self._note_intents()
            if not continues and len(self._serials) == before:
                return True
        return False

    def _note_intents(self) -> None:
        for command in self.cluster.take_commands():
            if not isinstance(command, WriteStatus):
                continue
            if self.entry(command.uid).phase is Phase.INTENDING:
                self._serials[command.uid] = command.serial

    def _withdraw(self) -> None:
        for uid, serial in reversed(self._serials.items()):
            self.feed(StatusRefused(uid, serial, _REFUSED))
        self._serials = {}

    def _reservations(self) -> dict[str, Reservation]:
        return {uid: owner.reserved for uid, owner in self.cluster.reservations.items()}
