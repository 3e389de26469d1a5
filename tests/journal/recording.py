"""Random lives of a dispatcher with a journal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from click.testing import CliRunner

from mcad.cli.main import main
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.settings import Settings
from mcad.core.state.units import Instant
from mcad.journal.header import Header
from mcad.journal.writer import Journal, Limits
from tests.core.bench import Bench, node, random_life

SMALL = Limits(files=1000, file_bytes=2000)
LARGE = Limits(files=1000)


class Recorded(Dispatcher):
    """One that writes down every step; ``begin`` makes its journal."""

    def __init__(self, settings: Settings, begin: Callable[[Dispatcher], Journal]) -> None:
        super().__init__(settings)
        self.journal = begin(self)

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        commands = super().step(event, now)
        self.journal.note(now, event, commands)
        return commands


def recorded_bench(folder: Path, settings: Settings, name: str, limits: Limits, **more) -> Bench:
    """A bench, each of whose dispatchers has a journal in the folder; they close it themselves
    when the next one begins."""
    journals: list[Journal] = []

    def lead(settings: Settings) -> Recorded:
        def begin(dispatcher: Dispatcher) -> Journal:
            number = len(journals) + 1
            for one in journals[-1:]:
                one.close()
            header = Header(f"{name}-{number}", number, settings)
            journals.append(Journal(folder, header, dispatcher.cluster, limits))
            return journals[-1]

        return Recorded(settings, begin)

    return Bench(settings=settings, lead=lead, **more)


def live(folder: Path, seed: int, limits: Limits = LARGE, submitted: int = 40) -> None:
    """A random life with crashes, each of which begins another leadership."""
    rng = Random(seed)
    settings = Settings(preemption=rng.random() < 0.5, min_run_time=0)
    nodes = [node(f"n{number}", rng.randint(200, 900)) for number in range(4)]
    bench = recorded_bench(folder, settings, f"leader-{seed}", limits, nodes=nodes)
    for _ in random_life(bench, rng, submitted):
        flush(bench.dispatcher.journal)
    bench.dispatcher.journal.close()


def flush(journal: Journal) -> None:
    """Write what was noted, and wait for the child if it begins a file."""
    journal.flush()
    while journal.is_changing_over:
        time.sleep(0.002)
        journal.flush()


def run(*args: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``mcad replay``."""
    done = CliRunner().invoke(main, ["replay", *map(str, args)])
    return done.exit_code, done.stdout, done.stderr
