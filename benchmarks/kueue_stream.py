"""A gang behind a stream of small workloads, with Kueue and with the dispatcher.

    python -m benchmarks.kueue_stream [--arms kueue kueue-strict mcad] [--seconds 180]
        [--protect-after 30]

One queue of 20 CPUs. Workloads of 4 CPUs that run for 5 s arrive a fifth faster than they can run.
Once some of them wait, a gang comes that needs all 20 CPUs, of the same priority. The stream goes
on for so many seconds. Reported are the wait of the gang, if it was admitted meanwhile, the use of
the 20 CPUs from its creation until then, and the longest wait of a small one that was admitted.

``kueue`` has the strategy BestEffortFIFO, ``kueue-strict`` StrictFIFO. ``--protect-after`` is the
setting ``protectAfter`` of the dispatcher in seconds, 600 by default.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import NamedTuple

from benchmarks.kueue_arms import Kueue, Mcad
from benchmarks.kueue_load import NOMINAL, Arm, Class, Load, Shape, Workload, connected
from benchmarks.kueue_queued import QUEUE
from benchmarks.kueue_shapes import prepared
from tests.controlplane.controlplane import ControlPlane

RUNS_S, SURPLUS = 5.0, 1.2
SMALL = Class("small", 1_000_000, RUNS_S / (NOMINAL / 4) / SURPLUS, 4, RUNS_S, 50)
GANG = Class("gang", 1, 0, NOMINAL, RUNS_S, 50, pods=5)
SHAPE = Shape("stream", 1, 1, (SMALL,))
FILLS_S, LOOK_S = 20.0, 0.2
ARMS = ("kueue", "kueue-strict", "mcad")


class Outcome(NamedTuple):
    """Of one run; seconds. ``gang_s`` is None if the gang was not admitted."""

    gang_s: float | None
    use: float
    small_p50_s: float
    small_most_s: float

    def __str__(self) -> str:
        gang = "not admitted" if self.gang_s is None else f"admitted after {self.gang_s:.1f} s"
        return (
            f"the gang: {gang}; use until then {100 * self.use:.0f} %; "
            f"small ones: p50 {self.small_p50_s:.1f} s, most {self.small_most_s:.1f} s"
        )


class Stream(Load):
    """A load that goes on until it is stopped, and the gang in it."""

    async def gang(self, seconds: float) -> Outcome:
        """Create the gang among the others, and watch it for so long."""
        work = Workload(GANG, QUEUE, "gang")
        resource, body = self._arm.written(work)
        course = self.expect(work)
        begun = course.created
        before = self._spent(begun)
        await self._client.create(resource, QUEUE, body)
        while not course.first and time.monotonic() - begun < seconds:
            await asyncio.sleep(LOOK_S)
        ended = course.first or time.monotonic()
        small = [one for one in self.courses.values() if one.work.of is SMALL and one.first]
        waits = [one.first - one.created for one in small if one.first >= begun]
        return Outcome(
            ended - begun if course.first else None,
            (self._spent(ended) - before) / (NOMINAL * (ended - begun)),
            statistics.median(waits),
            max(waits),
        )

    def _spent(self, now: float) -> float:
        """CPU seconds of the small ones until now."""
        small = [one for one in self.courses.values() if one.work.of is SMALL]
        running = sum(now - one.admitted for one in small if one.admitted)
        return sum(one.cpu_s for one in small) + SMALL.cpu * running


async def play(plane: ControlPlane, arm: Arm, seconds: float) -> Outcome:
    """One run."""
    async with connected(plane.admin_kubeconfig) as client:
        load = Stream(SHAPE, arm, client)
        running = asyncio.ensure_future(load.run())
        await asyncio.sleep(FILLS_S)
        outcome = await load.gang(seconds)
        running.cancel()
        return outcome


def main() -> None:
    """Run the arms one after the other, each on a control plane of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--protect-after", type=float, default=30.0)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    options = parser.parse_args()
    arms = {
        "kueue": Kueue(qps=0.0),
        "kueue-strict": Kueue(qps=0.0, strategy="StrictFIFO"),
        "mcad": Mcad(settings=(f"protectAfter={options.protect_after:g}",)),
    }
    for name in options.arms:
        arm = arms[name]
        with prepared(arm, SHAPE) as plane, arm.running(plane, SHAPE):
            print(f"{name}: {asyncio.run(play(plane, arm, options.seconds))}", flush=True)


if __name__ == "__main__":
    main()
