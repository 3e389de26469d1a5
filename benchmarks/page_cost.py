"""What the page of ``mcad ui`` costs per update with ten pages open, in CPU time.

    python -m benchmarks.page_cost [--appwrappers 100 2000 10000] [--updates 5]

AppWrappers of a thousand shapes wait on 200 nodes, and one of them changes. *update* is all that
follows: figures, the parts of ten pages (five with filters of their own) and their events. *page*
is a whole page of the same moment. *share* is of one core, with the pause that the page makes after
each update; while no page is open, it makes none.

The *dispatcher* makes the answer. On two busy cores, milliseconds of CPU:

    AppWrappers   update   page   share   every   dispatcher  cold
            100       19      5   1.2 %   1.6 s        31       31
           2000       30      6   0.4 %   6.8 s        67       66
          10000       27      5   0.7 %   4.2 s        93       91

A dispatcher makes its list at most once in 25 times the time that it takes, for the pages of all
users, and rows only for what they show; here it makes a list for each update, of six different
pages. *cold* is its first answer after a pause, *dispatcher* the same made again at once: in a
virtual machine, memory that rested costs time when it is touched. Other work ran on both cores (a
load of 10); with less of it, the last row took 79 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from statistics import median
from time import process_time, thread_time
from types import SimpleNamespace
from typing import Any

from benchmarks.measuring import cpu_ms
from mcad.api.list_page import PageQuery
from mcad.api.wire import to_json
from mcad.cli.commands.ui import spare_the_collector
from mcad.client.scope import Scope, Source
from mcad.controller.leader_figures import LeaderFigures
from mcad.controller.paged_list import page_answer
from mcad.kube.clock import RealClock
from mcad.kube.port import Request, Response
from mcad.ui.board import Board
from mcad.ui.pages import PARTS, Pages
from mcad.ui.rows import Query
from mcad.ui.stream import events
from tests.cli.cluster import (
    DECADES_S,
    appwrapper,
    condition,
    deployment,
    lease,
    node,
    pod,
)
from tests.cli.conftest import FakeEnvironment
from tests.cli.dispatcher import NOW_US, Onlooker
from tests.fakeapi import FakeApi, answer
from tests.serving import answering

Json = dict[str, Any]

NODES = 200
QUERIES = [Query()] * 5 + [Query(namespace=f"team-{number}") for number in range(5)]


def cluster(count: int) -> FakeApi:
    """Nodes that are full but for 2 CPUs, and so many AppWrappers that lack room."""
    api = FakeApi()
    api.put("leases", lease(leaseDurationSeconds=DECADES_S))
    for number in range(NODES):
        name = f"node-{number:04}"
        api.put("nodes", node(name, cpu="16", memory="64Gi"))
        api.put("pods", pod(f"other-{number}", "kube-system", cpu="14", memory="8Gi", on=name))
    for number in range(count):
        api.put("appwrappers", _waiting(number))
    return api


def _waiting(number: int) -> Json:
    name = f"aw-{number:05}"
    item = deployment(
        name, replicas=1 + number % 7, cpu=str(3 + number % 11), memory=f"{1 + number % 13}Gi"
    )
    status = {
        "state": "Pending",
        "queuejobstate": "Backoff",
        "controllerfirsttimestamp": f"2027-01-15T0{number % 7}:{number // 7 % 60:02}:00.000000Z",
        "conditions": [
            condition("Init", "07:00:00"),
            condition("Queueing", "07:00:00", "AwaitingHeadOfLine"),
            condition("Backoff", "07:00:00", "AppWrapperNotRunnable.", "cpu: 3 requested."),
        ],
    }
    space = f"team-{number % 10}"
    return appwrapper(name, f"uid-{number}", "00:00:00", item, status=status, namespace=space)


class Later(RealClock):
    """The machine's clock, in the time of the cluster in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_us = NOW_US - super().now_us()

    def now_us(self) -> int:
        return super().now_us() + self._ahead_us


class Dispatcher:
    """Answers as the HTTP port does; counts its CPU time."""

    def __init__(self, controller: Any) -> None:
        self._replica: Any = SimpleNamespace(controller=controller)
        self._figures = LeaderFigures(self._replica)
        self.cold_s = 0.0
        self.warm_s = 0.0
        self.spent_s = 0.0

    async def answer(self, request: Request) -> Response:
        """For ``tests.serving.answering``."""
        cold_s, body = await self._timed(request)
        again_s = 0.0
        if _begins_update(request):
            again_s, body = await self._timed(request)
        self.cold_s += cold_s
        self.warm_s += again_s or cold_s
        self.spent_s += cold_s + again_s
        return answer(body)

    async def _timed(self, request: Request) -> tuple[float, bytes]:
        begun = thread_time()
        if _begins_update(request):  # no update shares the list of another
            self._figures = LeaderFigures(self._replica)
        body = await self._body(request)
        return thread_time() - begun, body

    async def _body(self, request: Request) -> bytes:
        match request.path.removeprefix("/api/v1/"):
            case "capacity":
                return await self._figures.capacity()
            case "quota":
                return await self._figures.quota()
        query = PageQuery.of(request.params)
        assert query is not None
        rows, facts = await self._figures.page(to_json, query, with_starts=True, max_age_s=30)
        return page_answer(rows, facts)


def _begins_update(request: Request) -> bool:
    return PageQuery.of(request.params) == Query().asked(None)


@asynccontextmanager
async def following(board: Board, pages: Pages) -> AsyncIterator[list[asyncio.Event]]:
    """Ten pages that stay open; each has an event that is set after an update."""
    told = [asyncio.Event() for _ in QUERIES]

    async def read(query: Query, changed: asyncio.Event) -> None:
        async with board.watched(), aclosing(events(board, pages, query, -1)) as stream:
            async for one in stream:
                if one.startswith(b"event: changed"):
                    changed.set()

    async with board.followed():
        tasks = [asyncio.ensure_future(read(*one)) for one in zip(QUERIES, told, strict=True)]
        try:
            yield told
        finally:
            for task in tasks:
                task.cancel()


async def measure(count: int, updates: int) -> None:
    """Print a line."""
    env = FakeEnvironment(cluster(count))
    env.clock = Later()
    async with AsyncExitStack() as stack:
        dispatcher = Dispatcher(await Onlooker(env.api).controller())
        source = Source(server=stack.enter_context(answering(dispatcher.answer)))
        board, pages = Board(env, source, Scope(all_namespaces=True), may_narrow=False), Pages()
        told = await stack.enter_async_context(following(board, pages))
        spent, began = [], 0.0
        for number in range(updates + 1):
            before = process_time() - dispatcher.spent_s
            for one in told:
                await one.wait()
                one.clear()
            after = process_time() - dispatcher.spent_s
            if number:  # the first has everything to read
                spent.append(after - before)
            else:
                dispatcher.cold_s = dispatcher.warm_s = 0.0
                gc.collect()
                gc.freeze()
                began = env.clock.monotonic()
            env.api.change("appwrappers", f"aw-{number:05}", _raise_priority)
        every = (env.clock.monotonic() - began) / updates
        moment = await board.now()
        page = cpu_ms(lambda: pages.page(moment, Query(), dict.fromkeys(PARTS, "")))
    update = median(spent)
    made = f"{1000 * dispatcher.warm_s / updates:10.0f}{1000 * dispatcher.cold_s / updates:9.0f}"
    print(
        f"{count:15}{1000 * update:9.0f}{page:7.0f}"
        f"{100 * update / every:6.1f} %{every:6.1f} s{made}"
    )


def _raise_priority(obj: Json) -> None:
    obj["spec"]["priority"] = obj["spec"].get("priority", 0) + 1


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appwrappers", type=int, nargs="+", default=[100, 2000, 10_000])
    parser.add_argument("--updates", type=int, default=5)
    given = parser.parse_args()
    spare_the_collector()
    print("    AppWrappers   update   page   share   every   dispatcher  cold")
    for count in given.appwrappers:
        asyncio.run(measure(count, given.updates))


if __name__ == "__main__":
    main()
