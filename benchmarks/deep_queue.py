"""A deep queue of mixed shapes on many nodes: what one admission costs the core. No cluster.

    python -m benchmarks.deep_queue [--nodes 1300] [--depth 536] [--gangs 2000]

The shape of a report from production: 1,300 nodes, 536 workloads in line, teams with fair shares;
Kueue admitted 9.6 of them a minute in 25 cycles (kubernetes-sigs/kueue#14477). Here six teams share
nodes of 8 GPUs; gangs are those of the mix *ray* in ``benchmarks/gangs.py``, three priorities. At
first the cluster fills and DEPTH gangs wait, then as many arrive as end. Topology, which that
cluster had as well, is measured by ``bench_core_topology``. Reported are the depth, the CPU time of
the core for each admission with all events that belong to it (pods, nodes, status), and the longest
step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from random import Random

from benchmarks.builders import machines
from benchmarks.gangs import CPUS, GPU, GPUS, Gang, drawn
from benchmarks.model_gangs import job
from benchmarks.replay import HOUR, Job, Replay
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.settings import Fairness, Settings
from mcad.core.state.units import Duration, Instant

TEAMS, PRIORITIES, RUNS_H = 6, 3, 3
SETTINGS = Settings(fairness=Fairness.NAMESPACE)


class Measured:
    """A dispatcher, and the CPU time of its steps in seconds."""

    def __init__(self, settings: Settings) -> None:
        self.dispatcher = Dispatcher(settings)
        self.spent_s = self.longest_s = 0.0
        self.depths: list[int] = []

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        """A step of the dispatcher."""
        begun = time.process_time()
        commands = self.dispatcher.step(event, now)
        took = time.process_time() - begun
        self.spent_s += took
        self.longest_s = max(self.longest_s, took)
        self.depths.append(len(self.dispatcher.cluster.waiting.queue))
        return commands

    def begin(self) -> None:
        """What was before does not count."""
        self.spent_s = self.longest_s = 0.0
        self.depths.clear()


def jobs(gangs: list[Gang], gpus: int, depth: int, rng: Random) -> list[Job]:
    """So many that the GPUs are in use and DEPTH wait come at once, the others as others end."""
    runs = [round(rng.uniform(0.3, 1.7) * RUNS_H * HOUR) for _ in gangs]
    full = _until(gangs, gpus)
    every = round(RUNS_H * HOUR / full)
    found = []
    for number, (gang, run) in enumerate(zip(gangs, runs, strict=True)):
        at: Duration = max(0, number - full - depth) * every
        team = f"team-{rng.randrange(TEAMS)}"
        one = job(number, gang, at, run)
        found.append(one._replace(team=team, priority=rng.randrange(PRIORITIES)))
    return found


def _until(gangs: list[Gang], gpus: int) -> int:
    """How many of the first gangs use all GPUs."""
    used = 0
    for number, gang in enumerate(gangs):
        used += gang.gpus
        if used > gpus:
            return number
    return len(gangs)


def main() -> None:
    """One run; counted from when the cluster is full."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1300)
    parser.add_argument("--depth", type=int, default=536)
    parser.add_argument("--gangs", type=int, default=2000, help="that arrive once it is full")
    options = parser.parse_args()
    rng, gpus = Random(1), options.nodes * GPUS
    gangs = [drawn("ray", rng) for _ in range(options.gangs + options.depth + gpus)]
    gangs = gangs[: _until(gangs, gpus) + options.depth + options.gangs]
    measured = Measured(SETTINGS)
    nodes = machines(options.nodes, CPUS, **{GPU: GPUS})
    planned = jobs(gangs, gpus, options.depth, rng)
    replay = Replay(planned, nodes, brain=measured)
    replay.run(0)
    begun = _dispatches(replay)
    measured.begin()
    replay.run(planned[-1].at)
    replay.check()
    made = _dispatches(replay) - begun
    print(
        f"{options.nodes} nodes, depth p50 {statistics.median(measured.depths):.0f} "
        f"(at least {min(measured.depths)}): {made} admissions, "
        f"{1000 * measured.spent_s / made:.1f} ms of CPU each, which is "
        f"{60 * made / measured.spent_s:.0f} a minute; "
        f"longest step {1000 * measured.longest_s:.0f} ms"
    )


def _dispatches(replay: Replay) -> int:
    return sum(life.dispatches for life in replay.lives.values())


if __name__ == "__main__":
    main()
