"""What Kueue's performance harness does not ask, with Kueue and with the dispatcher.

    python -m benchmarks.kueue_queued [--count 10000] [--arms kueue mcad]

One queue of 20 CPUs. A workload that holds 15 of them runs; then COUNT come that do not fit beside
it, of 4,999 sizes, and behind them, one by one, workloads of one CPU that do fit. Reported
are the seconds of CPU until the arm has nothing to do any more, the time from the creation of each
workload behind them to its admission, the time from the end of the holder to the next admission,
and the time from the start of the arm, with all of them queued, to the admission of one that fits.
Both arms are ended with SIGTERM before that start.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.dispatch_rate import cpu_s
from benchmarks.kueue_arms import Kueue, Mcad
from benchmarks.kueue_load import Arm, Class, Shape, Sight, Workload, connected
from benchmarks.kueue_shapes import peak_mb, prepared
from mcad.kube.client import Client
from mcad.kube.decode import decode, take_line
from tests.controlplane.controlplane import ControlPlane

Json = dict[str, Any]

SHAPE = Shape("queued", 1, 1, ())
QUEUE = next(SHAPE.leaves())[1]
HOLDER = Class("holder", 1, 0, 15, 0, 50)
LARGE = Class("large", 1, 0, 10, 0, 50)
SMALL = Class("small", 1, 0, 1, 0, 50)
SMALLS = 20
CREATORS = 16
IDLE, LOOK_S, SETTLES_S = 0.05, 3.0, 900.0
"""Of a core, over so many seconds, is nothing to do; and after so many it is not waited for."""


class Watched:
    """When the generator's watch showed that a workload is admitted."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, Sight]] = {}
        self._changed = asyncio.Condition()

    async def follow(self, client: Client, arm: Arm, version: str) -> None:
        """Until cancelled."""
        async for line in client.watch(arm.watched, version):
            event = take_line(line)
            if event.type == "BOOKMARK":
                continue
            sight = arm.seen(event.type, decode(event.object))
            if sight.admitted and sight.key[1] not in self._seen:
                async with self._changed:
                    self._seen[sight.key[1]] = time.monotonic(), sight
                    self._changed.notify_all()

    async def admitted(self, name: str, patience_s: float = 600) -> tuple[float, Sight]:
        """When it was admitted; raises ``TimeoutError``."""
        async with asyncio.timeout(patience_s), self._changed:
            await self._changed.wait_for(lambda: name in self._seen)
            return self._seen[name]

    async def one_more(self, known: Iterable[str], patience_s: float = 600) -> float:
        """When the first one besides those known was admitted."""
        before = frozenset(known)
        async with asyncio.timeout(patience_s), self._changed:
            await self._changed.wait_for(lambda: self._seen.keys() - before)
            return min(at for name, (at, _) in self._seen.items() if name not in before)

    @property
    def names(self) -> frozenset[str]:
        """Those that were admitted."""
        return frozenset(self._seen)


class Steps:
    """The steps of a run."""

    def __init__(self, client: Client, arm: Arm, watched: Watched) -> None:
        self._client = client
        self._arm = arm
        self._watched = watched

    async def create(self, of: Class, name: str, milli: int = 0) -> float:
        """Create a workload, of this size if one is given; when the request was sent."""
        resource, body = self._arm.written(Workload(of, QUEUE, name))
        if milli:
            resize(body, f"{milli}m")
        begun = time.monotonic()
        await self._client.create(resource, QUEUE, body)
        return begun

    async def fill(self, count: int) -> None:
        """Create the large ones, of many sizes."""
        numbers = iter(range(count))

        async def some() -> None:
            for number in numbers:
                await self.create(LARGE, f"large-{number}", 10_001 + number % 4_999)

        await asyncio.gather(*(some() for _ in range(CREATORS)))

    async def behind(self, number: int) -> float:
        """Create one that fits; seconds until it was admitted. Then it ends."""
        begun = await self.create(SMALL, f"small-{number}")
        at, sight = await self._watched.admitted(f"small-{number}")
        await self._arm.finish(self._client, sight)
        return at - begun

    async def release(self) -> float:
        """End the holder; seconds until the next one was admitted."""
        _, sight = await self._watched.admitted("holder")
        before, begun = self._watched.names, time.monotonic()
        await self._arm.finish(self._client, sight)
        return await self._watched.one_more(before) - begun


def resize(value: Any, cpu: str) -> None:
    """Set what the pods of a manifest request."""
    if isinstance(value, dict):
        if "requests" in value:
            value["requests"]["cpu"] = cpu
        for one in value.values():
            resize(one, cpu)
    elif isinstance(value, list):
        for one in value:
            resize(one, cpu)


@asynccontextmanager
async def steps_of(plane: ControlPlane, arm: Arm) -> AsyncIterator[Steps]:
    """The steps, and a watch beside them."""
    async with connected(plane.admin_kubeconfig) as client:
        _, version = await client.list_all(arm.watched)
        watched = Watched()
        following = asyncio.ensure_future(watched.follow(client, arm, version))
        yield Steps(client, arm, watched)
        following.cancel()


async def settled(pid: int) -> tuple[float, bool]:
    """Wait until the process has nothing to do; its CPU time meanwhile, and whether it was so."""
    first, begun = cpu_s(pid), time.monotonic()
    while True:
        before = cpu_s(pid)
        await asyncio.sleep(LOOK_S)
        if cpu_s(pid) - before < IDLE * LOOK_S:
            return cpu_s(pid) - first, True
        if time.monotonic() - begun > SETTLES_S:
            return cpu_s(pid) - first, False


async def first_life(steps: Steps, pid: int, count: int) -> None:
    """All until the restart."""
    await steps.create(HOLDER, "holder")
    begun, before = time.monotonic(), cpu_s(pid)
    await steps.fill(count)
    print(
        f"  {count} created in {time.monotonic() - begun:.0f} s, CPU of the arm meanwhile", end=""
    )
    print(f" {cpu_s(pid) - before:.1f} s; the first behind them", end=" ", flush=True)
    print(f"after {await steps.behind(0):.3f} s", flush=True)
    spent, is_idle = await settled(pid)
    print(f"  then {spent:.1f} s of CPU until {'idle' if is_idle else 'now, not idle yet'}")
    waits = [await steps.behind(number) for number in range(1, SMALLS + 1)]
    print(f"  behind all of them: p50 {statistics.median(waits):.3f} s, most {max(waits):.3f} s")
    print(f"  after the holder's end the next one: {await steps.release():.3f} s", flush=True)


async def play(plane: ControlPlane, arm: Kueue | Mcad, count: int) -> None:
    """One run."""
    async with steps_of(plane, arm) as steps:
        with arm.running(plane, SHAPE) as pid:
            await first_life(steps, pid, count)
        begun = time.monotonic()
        with arm.running(plane, SHAPE) as pid:
            await steps.behind(SMALLS + 1)
            print(
                f"  a restart: one that fits is admitted after {time.monotonic() - begun:.1f} s, "
                f"CPU of the arm {cpu_s(pid):.1f} s, peak {peak_mb(pid):.0f} MB",
                flush=True,
            )


def main() -> None:
    """Run the arms one after the other, each on a control plane of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--arms", nargs="+", choices=("kueue", "mcad"), default=["kueue", "mcad"])
    options = parser.parse_args()
    arms = {"kueue": Kueue(qps=0.0), "mcad": Mcad()}
    for name in options.arms:
        print(f"{name}, {options.count} that do not fit", flush=True)
        with prepared(arms[name], SHAPE) as plane:
            asyncio.run(play(plane, arms[name], options.count))


if __name__ == "__main__":
    main()
