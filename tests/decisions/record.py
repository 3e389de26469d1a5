"""The decisions of a history, line by line, in the words of people.

Each start with its nodes, each eviction with its preemptor, and at rest where each AppWrapper
stands and why. What the text leaves out is free: passes, their work, when a status is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from random import Random

from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.why import why
from mcad.core.commands import Command, WriteStatus
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase
from mcad.core.state.units import SECOND
from tests.core.answers import worlds
from tests.core.bench import Bench
from tests.core.builders import START
from tests.core.handovers import Handovers
from tests.core.histories import History, Lives, PausedTeams, Places, RackedTeams, Teams
from tests.decisions.varied import Varied

PROFILES: tuple[type[History], ...] = (
    Varied,
    Lives,
    Varied,
    Teams,
    Varied,
    RackedTeams,
    Varied,
    Places,
    Varied,
    PausedTeams,
    Varied,
    Handovers,
)
"""By number of the history, in turn."""

ACTS = 80


class Recorder:
    """Writes down what a bench decides. ``lines`` is the text so far."""

    def __init__(self, bench: Bench) -> None:
        self.lines: list[str] = []
        self._bench, self._before = bench, bench.heard
        self._started: dict[str, int] = {}
        self._evictions: dict[str, int] = {}
        self._shown: dict[str, str] = {}
        bench.heard = self._heard

    def _heard(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, WriteStatus):
                self._status(command)
        self._before(commands)

    def _status(self, command: WriteStatus) -> None:
        uid, record, evicted = command.uid, command.status.dispatch, command.status.eviction
        if evicted is not None and evicted.count != self._evictions.get(uid, 0):
            self._evictions[uid] = evicted.count
            self._write(f"{uid} is evicted for {evicted.by}: {evicted.reason}")
        if record is None or record.phase is not DispatchPhase.CREATING:
            return
        if self._started.get(uid) != record.attempt:
            self._started[uid] = record.attempt
            places = self._bench.dispatcher.cluster.capacity.gangs.places_of(uid)
            self._write(f"{uid} starts, attempt {record.attempt}, on {places}")

    def at_rest(self) -> None:
        """Where each AppWrapper stands and why it waits, as far as that has changed."""
        now = dict(self._places())
        for name in sorted(self._shown.keys() - now.keys()):
            self._write(f"{name} is gone")
        for name, text in now.items():
            if self._shown.get(name) != text:
                self._write(f"{name}: {text}")
        self._shown = now

    def _places(self) -> Iterator[tuple[str, str]]:
        for row in self._bench.all_rows():
            yield row.name, f"{row.position} {row.state} {row.waits_for}: {row.why}"
        for entry in self._bench.dispatcher.cluster.reservations.values():
            if (kept := entry.reservation) is not None:
                yield f"room for {entry.uid}", f"{kept.reason} {sorted(entry.waits_for)}"

    def _write(self, text: str) -> None:
        self.lines.append(f"{(self._bench.now - START) // SECOND} s {text}")


def history(number: int) -> list[str]:
    """What one history decides."""
    life = PROFILES[number % len(PROFILES)](number)
    recorder = Recorder(life.bench)
    for _ in range(ACTS):
        life.random.choice(life.acts())()
        life.after_each()
        if not life.bench.pending:
            recorder.at_rest()
    life.end()
    recorder.at_rest()
    return recorder.lines


def answers(number: int) -> list[str]:
    """What each AppWrapper that waits in a small world is told, and what would start it."""
    rng = Random(f"decisions {number}")
    run = DryRun(worlds.world(rng, evicts=rng.random() < 0.3))
    waiting = [e.uid for e in run.cluster.entries.values() if e.phase is Phase.WAITING]
    return [f"{uid}: {one}" for uid in sorted(waiting) for one in _answer(run, uid)]


def _answer(run: DryRun, uid: str) -> Iterator[str]:
    found = why(run, uid)
    yield f"{found.reason} {found.text} starts: {found.starts} evicts: {sorted(found.evicts)}"
    for remedy in found.remedies:
        yield f"{remedy.kind}: {remedy.text}"


KINDS: dict[str, Callable[[int], list[str]]] = {"history": history, "answers": answers}


def digest(lines: Iterable[str]) -> str:
    """What stands for so many decisions in a file."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
