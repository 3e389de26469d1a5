"""A month of churn in virtual time: does a process that lasts stay as small and as fast as it was?

Each day some 36 AppWrappers, pods, nodes, names, shapes and host ports come that were never there
before, and go again (tests/faults/growth.py): jobs that complete, deployments that are edited and
suspended, what never fits, what waits for a name, what is refused or orphaned. At the end of each
day nothing is left of it.

    python -m benchmarks.sim_month [--days N] [--episodes N]

For the days it prints what the process holds (objects of ours and elements in their containers),
the memory that its own code allocated (the simulator keeps a history, which is no figure of the
dispatcher), the events that the core took, and their cost in CPU time of ``step`` alone,
about twice what it is without the tracing of memory; at the end, what it holds more of than after a
third of the time. The gate: no AppWrapper and no pod is left. What is kept within a bound
(what was said of the last 10,000 objects, 64 pools...) grows to its bound; ``tests/faults/
test_growth.py`` sets all bounds to almost nothing and asserts that nothing grows.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from random import Random

import mcad
from benchmarks.sim_day import SELDOM
from mcad.api.config import Config
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.units import Instant
from mcad.kube.kinds import APPWRAPPERS, PODS
from mcad.sim.clock import VirtualClock, run_virtually
from tests.faults.growth import grown, held, live_a_day

OURS = Path(mcad.__file__).parent
PARTS = ("core", "controller", "kube", "api")


@dataclass(slots=True)
class Meter:
    """Events of the core and the CPU time that they took."""

    events: int = 0
    cpu_s: float = 0.0

    def take(self) -> tuple[int, float]:
        """Both since the last time."""
        taken = (self.events, self.cpu_s)
        self.events, self.cpu_s = 0, 0.0
        return taken


def metered(meter: Meter) -> None:
    """Have every dispatcher of this process measured."""
    step = Dispatcher.step

    def measured(self: Dispatcher, event: Event, now: Instant) -> tuple[Command, ...]:
        begun = time.process_time()
        commands = step(self, event, now)
        meter.cpu_s += time.process_time() - begun
        meter.events += 1
        return commands

    Dispatcher.step = measured  # type: ignore[method-assign]


def own_kib() -> int:
    """Memory that code of the dispatcher allocated and that is not freed, in KiB."""
    traces = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.Filter(True, f"{OURS}/{part}/*") for part in PARTS]
    )
    return sum(one.size for one in traces.statistics("filename")) // 1024


async def live_a_month(days: int, episodes: int, meter: Meter) -> None:
    """The month, a line a day."""
    clock = VirtualClock()
    counts = []
    async with embedded_cluster(clock, Random(1)) as cluster:
        for number in range(4):
            cluster.add_node(f"node-{number}", cpu="4")
        async with dispatching(cluster, Config(leaderElection=SELDOM), Random(2)) as user:
            print("day   objects   elements   memory/KiB   events   us/event")
            for day in range(days):
                meter.take()
                await live_a_day(cluster, user, day, episodes)
                events, cpu_s = meter.take()
                counts.append(held())
                objects = sum(n for name, n in counts[-1].items() if "." not in name)
                elements = sum(n for name, n in counts[-1].items() if "." in name)
                print(
                    f"{day + 1:3} {objects:9} {elements:10} {own_kib():12}"
                    f" {events:8} {cpu_s / events * 1e6:10.0f}",
                    flush=True,
                )
            for kind in (APPWRAPPERS, PODS):
                assert not (await user.list_all(kind))[0], f"the month left {kind.plural}"
    print(
        f"more than after day {days // 3 + 1}: {grown(counts[days // 3], counts[-1]) or 'nothing'}"
    )


def main() -> None:
    """Print the figures of one run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=4, help="of each kind and day")
    args = parser.parse_args()
    meter = Meter()
    metered(meter)
    tracemalloc.start()
    run_virtually(live_a_month(args.days, args.episodes, meter))


if __name__ == "__main__":
    main()
