"""What a journal costs, and how fast it is replayed.

    python -m benchmarks.bench_journal [--jobs 2000]

The core alone, on virtual time: jobs of three teams are submitted, run and end on 100 nodes. The
same steps are made three times: by a core, by the journal alone (which is handed the events and
commands), and by a replay of the files.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from random import Random
from time import process_time

from benchmarks.builders import machines
from benchmarks.replay import MINUTE, Job, Replay
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Instant
from mcad.journal.header import Header, files_of
from mcad.journal.reader import Gap, sessions
from mcad.journal.replay import replay
from mcad.journal.writer import Journal, Limits

CPU = 1000
NODES = 100
SETTINGS = Settings(preemption=True)


class Remembering(Dispatcher):
    """A core that records its events and its answers."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.steps: list[tuple[Instant, Event, tuple[Command, ...]]] = []

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        commands = super().step(event, now)
        self.steps.append((now, event, commands))
        return commands


def jobs(count: int) -> list[Job]:
    """About as many as the nodes can run, with a queue that grows and shrinks."""
    rng = Random(1)
    at, found = 0, []
    for number in range(count):
        at += rng.randrange(12 * SECOND)
        pods, run = rng.choice((1, 2, 4, 16)), rng.randrange(5, 60) * MINUTE
        request = (("cpu", rng.choice((1, 4, 8)) * CPU), ("pods", 1))
        job = Job(f"j{number}", at, pods, request, run, team=f"team-{number % 3}")
        found.append(job._replace(priority=rng.choice((0, 0, 5))))
    return found


def main() -> None:
    """Record, write, replay."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2_000)
    count = parser.parse_args().jobs
    brain = Remembering(SETTINGS)
    Replay(jobs(count), machines(NODES, 48), brain=brain).run()
    steps = brain.steps
    core = Dispatcher(SETTINGS)
    began = process_time()
    for now, event, _ in steps:
        core.step(event, now)
    alone = process_time() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        began = process_time()
        journal = Journal(path, Header("leader", 1, SETTINGS), core.cluster, Limits())
        last = 0
        for now, event, commands in steps:
            journal.note(now, event, commands)
            if now - last > SECOND:
                journal.flush()
                last = now
        journal.close()
        noting = process_time() - began
        size = sum(one.stat().st_size for one in files_of(path))
        began, made, differing = process_time(), 0, 0
        for session in sessions(path)[0]:
            for one in replay(session):
                made += 1
                differing += isinstance(one, Gap) or one.differs
        replaying = process_time() - began
    print(f"{len(steps)} steps, {len(steps) / count:.1f} per AppWrapper")
    print(f"core alone {alone:.2f} s of CPU, journal {noting:.2f} s: {100 * noting / alone:.1f} %")
    print(f"{size / len(steps):.1f} bytes a step, {size / count:.0f} bytes per AppWrapper")
    print(f"replayed {made / replaying:.0f} steps a second of CPU, {differing} differ")


if __name__ == "__main__":
    main()
