"""The running dispatcher at the scale of the design: memory, CPU, and how long its loop is blocked.

    python -m benchmarks.at_scale [ROW ...] [--appwrappers 10000] [--nodes 5000]

The whole controller on a port that makes bytes (fakecluster.py), whose CPU time is subtracted.
Every row is a process of its own, with bytecode at hand, as the image has it.
``blocked`` is the most CPU time that the loop's thread spent between two turns of a task that asks
for one every millisecond: other processes of the machine do not show in it.

On 2 cores beside other work (load 15), 10,000 AppWrappers, 5,000 nodes, 50,000 pods, two runs;
goals in brackets. The tree before the columns, by turns: RSS 243 MB (numpy is 25), one dispatch
1.04-1.14, GET one AppWrapper 73-80.

    start: CPU to the first write, s        4.9, 4.9 (5)
    start: loop blocked, ms                 41, 50 (50)
    start: RSS, MB                          268, 268 (300)
    event of a foreign pod, us              47, 48
    event that only echoes an AppWrapper    41, 42
    one dispatch, ms                        0.90, 0.99
    GET /api/v1/queue, blocked, ms          21, 29 (50)
    GET one AppWrapper: CPU / blocked, ms   47 / 19, 52 / 20 (50)
    GET /metrics, blocked, ms               5, 6 (50)
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from aiohttp import web

from benchmarks.fakecluster import FakeCluster
from benchmarks.measuring import rss_mb
from mcad.api.config import Config
from mcad.controller import http_port
from mcad.controller.gc_tuning import freeze_while_listing
from mcad.controller.runtime import Controller
from mcad.kube.client import Client
from mcad.kube.clock import RealClock


class Ticker:
    """Asks for a turn every millisecond and remembers how much CPU time went by in between."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.worst_s = 0.0

    async def run(self) -> None:
        """For ever."""
        own = time.thread_time() - self._cluster.spent_s
        while True:
            await asyncio.sleep(0.001)
            before, own = own, time.thread_time() - self._cluster.spent_s
            self.worst_s = max(self.worst_s, own - before)


class Bench:
    """One controller on one cluster, and its figures."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.ticker = Ticker(cluster)
        client = Client(cluster, RealClock(), Random(1))
        self.controller = Controller(client, Config(), identity="bench")
        self.reset()

    def reset(self) -> None:
        """CPU time and blocked stretches count from here."""
        self._from = time.process_time() - self.cluster.spent_s
        self.ticker.worst_s = 0.0

    def cpu_s(self) -> float:
        """Our own CPU time since ``reset``."""
        return time.process_time() - self.cluster.spent_s - self._from

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait; a poll every 5 ms costs next to nothing."""
        while not done():
            self.controller.raise_failure()
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(cluster: FakeCluster, *, ticking: bool = True) -> AsyncIterator[Bench]:
    """A controller at work until the end of the block; ``ticking`` costs 3 % of CPU."""
    bench, stop = Bench(cluster), asyncio.Event()
    ticks = asyncio.create_task(bench.ticker.run() if ticking else stop.wait())
    work = asyncio.create_task(bench.controller.run(stop))
    freezing = asyncio.create_task(freeze_while_listing(_leading(bench.controller)))
    yield bench
    freezing.cancel()
    stop.set()
    ticks.cancel()
    await work


async def start(args: argparse.Namespace) -> None:
    """From process start to the first dispatch; memory at its peak and at rest."""
    cluster = FakeCluster(appwrappers=args.appwrappers, nodes=args.nodes, roomy=1)
    first: list[float] = []
    async with running(cluster, ticking=False) as bench:
        cluster.wrote = lambda _: first.append(time.process_time() - cluster.spent_s)
        await bench.until(lambda: bool(first))
        await asyncio.sleep(3)
        print(
            f"start, {args.appwrappers} AppWrappers: CPU to the first write {first[0]:.1f} s, "
            f"RSS peak {rss_mb('VmHWM'):.0f} MB, settled {rss_mb():.0f} MB"
        )


async def blocked(args: argparse.Namespace) -> None:
    """The longest time of a start in which no other task had a turn."""
    cluster = FakeCluster(appwrappers=args.appwrappers, nodes=args.nodes, roomy=1)
    async with running(cluster) as bench:
        await bench.until(lambda: bool(cluster.writes))
        await asyncio.sleep(3)
        print(f"start: blocked for {1000 * bench.ticker.worst_s:.0f} ms at most")


async def events(args: argparse.Namespace) -> None:
    """Foreign pods whose status changes in a way that is not ours to know; status echoes."""
    cluster = FakeCluster(appwrappers=1000, nodes=1000)
    async with running(cluster) as bench:
        await bench.until(lambda: bench.controller.watches.is_synced)
        await asyncio.sleep(1)
        for plural, many in (("pods", 5000), ("appwrappers", 1000)):
            stream = next(
                s for (_, kind), s in bench.controller.watches.streams.items() if kind == plural
            )
            until = stream.counts["upserted"] + many
            lines = [cluster.event(plural, number) for number in range(many)]
            bench.reset()
            for begin in range(0, many, 100):
                for line in lines[begin : begin + 100]:
                    cluster.send(plural, line)
                await asyncio.sleep(0.01)
            await bench.until(lambda s=stream, u=until: s.counts["upserted"] >= u)
            await asyncio.sleep(0.1)
            print(f"event of {plural}: {1e6 * bench.cpu_s() / many:.0f} us")


async def dispatch(args: argparse.Namespace) -> None:
    """AppWrappers that fit at once, with the echoes of our status writes."""
    count = 400
    cluster = FakeCluster(appwrappers=count, nodes=200, roomy=200, queued=False, shapes=1)
    confirmed: list[str] = []

    def wrote(what: str) -> None:
        if what.endswith("/status"):
            confirmed.append(what)

    cluster.wrote = wrote
    async with running(cluster) as bench:
        await bench.until(lambda: bench.controller.watches.is_synced)
        bench.reset()
        await bench.until(lambda: len(confirmed) >= 2 * count)
        await asyncio.sleep(0.3)
        print(f"dispatch: {1000 * bench.cpu_s() / count:.2f} ms, {len(cluster.writes)} writes")


async def queries(args: argparse.Namespace) -> None:
    """What the HTTP port is asked for, with every AppWrapper waiting in a shape of its own."""
    count = args.appwrappers
    cluster = FakeCluster(appwrappers=count, nodes=1000, shapes=count)
    async with running(cluster) as bench:
        await bench.until(lambda: bench.controller.watches.is_synced)
        await asyncio.sleep(5)
        port = http_port.application(_leading(bench.controller))
        asked: dict[str, Callable[[], Awaitable[object]]] = {}
        for path in ("/api/v1/queue", "/metrics", "/api/v1/appwrappers/team-042/aw-000042"):
            asked[path] = _ask(port, path)
        for path, ask in asked.items():
            await ask()
            await asyncio.sleep(0.005)
            bench.reset()
            await ask()
            await asyncio.sleep(0.005)
            cpu, worst = bench.cpu_s(), bench.ticker.worst_s
            print(f"GET {path}: {1000 * cpu:.0f} ms of CPU, blocked {1000 * worst:.0f} ms")


def _leading(controller: Controller) -> Any:
    """As much of a replica as the HTTP port asks for."""
    return SimpleNamespace(controller=controller, lease=None)


def _ask(app: web.Application, path: str) -> Callable[[], Awaitable[object]]:
    from aiohttp.test_utils import make_mocked_request  # noqa: PLC0415 - no part of a start

    async def ask() -> object:
        request = make_mocked_request("GET", path, app=app)
        found = await app.router.resolve(request)
        request._match_info = found
        answer = await found.handler(request)
        assert answer.status == 200, answer.text
        return answer

    return ask


ROWS = {one.__name__: one for one in (start, blocked, events, dispatch, queries)}


def main() -> None:
    """Each row in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []])
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        logging.disable()
        asyncio.run(ROWS[args.rows[0]](args))
        return
    command = [sys.executable, "-m", "benchmarks.at_scale"]
    sizes = ["--appwrappers", str(args.appwrappers), "--nodes", str(args.nodes)]
    with TemporaryDirectory() as bytecode:
        env = os.environ | {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([*command, "--help"], env=env, stdout=subprocess.DEVNULL, check=True)
        for row in args.rows or ROWS:
            subprocess.run([*command, "--here", row, *sizes], env=env, check=True)


if __name__ == "__main__":
    main()
