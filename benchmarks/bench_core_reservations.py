"""CPU time of all decisions of an hour, without and with starvation prevention, and with Backfill.

    python -m benchmarks.bench_core_reservations [--nodes 1000] [--shapes 1000] [--queued 20000]

The core alone in virtual time (replay.py): the nodes are full of AppWrappers with declared limits,
the line is full of others of so many shapes, and a gang at its head needs half of the nodes.
Garbage collection is off as in ``mcad run`` after its start. One table: process CPU time of all
steps of the dispatcher within the hour, how many passes there were, and the longest.

With 400 nodes and shapes and 8,000 queued, on two cores with little else, and of it what keeping
reservations, choosing the protected one, and backfill took:

    none               6.63 s    12183 passes
    protection         7.65 s    10867               1.17 s
    Backfill           7.60 s    10602               1.24 s

The machine is noisy: the same figures between 6.3 and 8.3, 7.6 and 10, 7.6 and 10.4 in other runs.
Before AppWrappers that go ahead of a reservation were counted by slots, and not planned for by a
sum, it was 6.59, 15.31 and 19.87 s.
"""

from __future__ import annotations

import argparse
import gc
from random import Random
from time import process_time_ns

from benchmarks.builders import cores, machines
from benchmarks.replay import HOUR, MINUTE, Job, Replay
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND, Instant

CORES = 16


class Timed:
    """A dispatcher that notes what its steps cost."""

    def __init__(self, settings: Settings) -> None:
        self.dispatcher = Dispatcher(settings)
        self.spent = 0
        self.passes: list[int] = []

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        """The same, timed."""
        begun = process_time_ns()
        commands = self.dispatcher.step(event, now)
        took = process_time_ns() - begun
        self.spent += took
        if isinstance(event, Decide):
            self.passes.append(took)
        return commands


def jobs(nodes: int, shapes: int, queued: int) -> list[Job]:
    """Running AppWrappers, one that needs half of the nodes, and those behind it."""
    random = Random(1)
    running = [
        Job(f"r{number}", 0, 1, cores(2), run, 2 * run)
        for number in range(nodes * CORES // 2)
        for run in (random.randrange(5 * MINUTE, 2 * HOUR),)
    ]
    gang = Job("gang", SECOND, nodes // 2, cores(CORES), 10 * MINUTE, HOUR)
    waiting = []
    for number in range(queued):
        random.seed(number % shapes)
        amount = (("cpu", random.randrange(1_000, 4_000)), ("pods", 1))
        run = random.randrange(5 * MINUTE, HOUR)
        pods = random.randrange(1, 8)
        waiting.append(Job(f"w{number}", 2 * SECOND, pods, amount, run, 2 * run))
    return [*running, gang, *waiting]


def measure(name: str, settings: Settings, size: tuple[int, int, int]) -> None:
    """One line of the table."""
    gc.enable()
    brain = Timed(settings)
    replay = Replay(jobs(*size), machines(size[0], CORES), brain=brain)
    replay.run(10 * SECOND)
    gc.collect()
    gc.freeze()
    gc.disable()
    brain.spent, brain.passes = 0, []
    replay.run(HOUR)
    gang = replay.life("gang")
    when = f"{(gang.starts[0] - gang.submitted) // SECOND} s" if gang.starts else "not"
    started = sum(bool(one.starts) for one in replay.lives.values())
    print(
        f"{name:14} {brain.spent / 1e9:8.2f} s {len(brain.passes):8} "
        f"{max(brain.passes) / 1e6:8.1f} ms {started:8} {when:>8}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--shapes", type=int, default=1000)
    parser.add_argument("--queued", type=int, default=20_000)
    given = parser.parse_args()
    size = (given.nodes, given.shapes, given.queued)
    print(f"{'':14} {'CPU':>10} {'passes':>8} {'longest':>11} {'started':>8} {'gang after':>8}")
    measure("none", Settings(protect_after=0), size)
    measure("protection", Settings(protect_after=600 * SECOND), size)
    measure("Backfill", Settings(policy=Policy.BACKFILL), size)


if __name__ == "__main__":
    main()
