"""The page of ``mcad ui`` over HTTP, at a cluster in memory or at an embedded one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from mcad.client.scope import Scope, Source
from mcad.client.session import Environment
from mcad.ui.board import Board
from mcad.ui.guard import Guard
from mcad.ui.server import served
from mcad.ui.view import View
from tests.cli.conftest import FakeEnvironment
from tests.cli.test_submit_wait import TickingClock
from tests.fakeapi import FakeApi

Json = dict[str, Any]

PATIENCE_S = 20.0


@dataclass
class Page:
    """A browser with a session, as far as HTTP goes."""

    board: Board
    guard: Guard
    http: aiohttp.ClientSession
    printed: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.guard.address.partition("/?")[0]

    async def get(self, path: str, **headers: str) -> str:
        """The text of an answer."""
        async with self.http.get(self.url + path, headers=headers) as answer:
            return await answer.text()

    async def until(self, found: Callable[[str], bool], path: str = "/") -> str:
        """The text of the answer as soon as it is as wanted."""
        async with asyncio.timeout(PATIENCE_S):
            while not found(text := await self.get(path)):
                await asyncio.sleep(0.02)
        return text

    @asynccontextmanager
    async def events(self, path: str = "/") -> AsyncIterator[asyncio.Queue[tuple[str, str]]]:
        """Events that an open page of this address receives: (name, HTML)."""
        page = await self.get(path)
        connect = re.search(r'sse-connect="([^"]+)"', page)
        assert connect is not None
        queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        reading = asyncio.ensure_future(self._read(connect[1].replace("&amp;", "&"), queue))
        try:
            yield queue
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def _read(self, path: str, queue: asyncio.Queue[tuple[str, str]]) -> None:
        forever = aiohttp.ClientTimeout(total=None)
        async with self.http.get(self.url + path, timeout=forever) as answer:
            assert answer.content_type == "text/event-stream"
            name, data = "", []
            async for raw in answer.content:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name, data = line.removeprefix("event: "), []
                elif line.startswith("data: "):
                    data.append(line.removeprefix("data: "))
                elif not line and name:
                    queue.put_nowait((name, "\n".join(data)))
                    name = ""


@asynccontextmanager
async def opened_at(
    world: Environment, source: Source | None = None, scope: Scope | None = None
) -> AsyncIterator[Page]:
    """The page at a world, with a session."""
    everything = Scope(all_namespaces=True)
    board = Board(world, source or Source(), scope or everything, may_narrow=True)
    printed: list[str] = []
    guard = Guard(View(board), printed.append)
    async with board.followed(), served(guard, 0):
        jar = aiohttp.CookieJar(unsafe=True)  # keeps cookies of an address too
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            page = Page(board, guard, http, printed)
            async with http.get(guard.address) as answer:
                assert answer.status == 200, await answer.text()
            yield page


@asynccontextmanager
async def opened(api: FakeApi, **options: Any) -> AsyncIterator[Page]:
    """The page at a cluster in memory, whose time is quick."""
    world = FakeEnvironment(api)
    world.clock = TickingClock()
    async with opened_at(world, **options) as page:
        yield page
