"""The addresses of the page: GET only, on loopback, with the rights of the user."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from importlib.resources import files

from aiohttp import web

from mcad.client.errors import McadError
from mcad.controller.http_server import Server
from mcad.kube.client import Client
from mcad.ui.board import Board, Moment
from mcad.ui.details import read_answer, read_details, read_told
from mcad.ui.guard import NAMES, Guard, add_headers
from mcad.ui.manifest import read_manifest
from mcad.ui.pages import Pages
from mcad.ui.pods import read_pod, read_pods
from mcad.ui.rows import Query
from mcad.ui.stream import events

STATIC = {
    "htmx.min.js": "text/javascript",
    "htmx-ext-sse.min.js": "text/javascript",
    "ui.js": "text/javascript",
    "ui.css": "text/css",
}


class Ui:
    """Answers requests; ``application`` is to be served."""

    def __init__(self, board: Board, guard: Guard) -> None:
        self.board = board
        self.pages = Pages()
        self.guard = guard
        self._answering = asyncio.Lock()  # each takes a copy of the dispatcher: one at a time
        self._streams: set[asyncio.Task[None]] = set()
        folder = files("mcad.ui") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC}

    def application(self) -> web.Application:
        """The application with all of its addresses."""
        app = web.Application(middlewares=[self.guard.middleware])
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self.end_streams)
        app.router.add_get("/", self._page)
        app.router.add_get("/appwrappers/{namespace}/{name}", self._appwrapper)
        app.router.add_get("/appwrappers/{namespace}/{name}/why", self._why)
        app.router.add_get("/appwrappers/{namespace}/{name}/facts", self._facts)
        app.router.add_get("/appwrappers/{namespace}/{name}/events", self._told)
        app.router.add_get("/appwrappers/{namespace}/{name}/pods", self._pods)
        app.router.add_get("/appwrappers/{namespace}/{name}/pods/{pod}", self._pod)
        app.router.add_get("/appwrappers/{namespace}/{name}/yaml", self._yaml)
        app.router.add_get("/events", self._events)
        app.router.add_get("/static/{name}", self._file)
        return app

    async def _page(self, request: web.Request) -> web.Response:
        """The page: queue, capacity and quota."""
        moment, query = await self._latest(), Query.of(request.query)
        try:
            parts = await self.pages.parts(moment, query)
        except McadError as error:  # of the filter by quota
            return self._failure(502, error.message)
        return _html(self.pages.page(moment, query, parts))

    async def _appwrapper(self, request: web.Request) -> web.Response:
        """The page with the drawer of one AppWrapper."""
        moment, query = await self._latest(), Query.of(request.query)
        title = request.match_info["namespace"], request.match_info["name"]
        try:
            details = await read_details(self.board, moment, *title)
            if request.headers.get("HX-Request") == "true":
                return _html(self.pages.drawer(moment, query, details))
            parts = await self.pages.parts(moment, query)
        except McadError as error:
            return self._failure(502, error.message)
        status = 200 if details.detail is not None else 404
        return _html(self.pages.page(moment, query, parts, details), status)

    async def _facts(self, request: web.Request) -> web.Response:
        """The facts of one AppWrapper, for its drawer."""
        moment, query = await self._latest(), Query.of(request.query)
        title = request.match_info["namespace"], request.match_info["name"]
        try:
            details = await read_details(self.board, moment, *title)
        except McadError as error:
            return self._failure(502, error.message)
        return _html(self.pages.facts(moment, query, details))

    async def _told(self, request: web.Request) -> web.Response:
        """The latest Events about one AppWrapper."""

        async def read(namespace: str, name: str) -> str:
            moment = await self._latest()
            return self.pages.told(await read_told(self.board, moment, namespace, name))

        return await self._read(request, "Events of", read)

    async def _pods(self, request: web.Request) -> web.Response:
        """The pods of one AppWrapper."""

        async def read(namespace: str, name: str) -> str:
            async with self._client(namespace) as client:
                found = await read_pods(client, namespace, name)
            return self.pages.pods({"namespace": namespace, "name": name}, found)

        return await self._read(request, "Pods of", read)

    async def _pod(self, request: web.Request) -> web.Response:
        """A pod of one AppWrapper, with the end of a log."""
        pod, container = request.match_info["pod"], request.query.get("container", "")

        async def read(namespace: str, name: str) -> str:
            async with self._client(namespace) as client:
                found = await read_pod(client, (namespace, name), pod, container)
            return self.pages.pod({"namespace": namespace, "name": name}, found)

        return await self._read(request, f"Pod {pod} of", read)

    async def _yaml(self, request: web.Request) -> web.Response:
        """One AppWrapper as YAML."""

        async def read(namespace: str, name: str) -> str:
            async with self._client(namespace) as client:
                text, is_cut = await read_manifest(client, namespace, name)
            return self.pages.manifest(text, is_cut=is_cut)

        return await self._read(request, "YAML of", read)

    @asynccontextmanager
    async def _client(self, namespace: str) -> AsyncIterator[Client]:
        """The API server with the rights of the caller; raises ``McadError`` where the page shows
        another namespace only."""
        board = self.board
        if board.source.server:
            raise McadError("Omit --server to see this: it is in the cluster.")
        if (await self._latest()).namespace not in (None, namespace):
            raise McadError(f"This page does not show namespace {namespace}.")
        async with board.environment.connect(board.source.target, watches=False) as session:
            yield session.client

    async def _read(
        self, request: web.Request, what: str, read: Callable[[str, str], Awaitable[str]]
    ) -> web.Response:
        """A part about one AppWrapper, or why it cannot be read."""
        title = request.match_info["namespace"], request.match_info["name"]
        try:
            text = await read(*title)
        except McadError as error:
            text = self.pages.problem(error.message)
        return self._part_or_page(request, f"{what} {'/'.join(title)}", text)

    async def _why(self, request: web.Request) -> web.Response:
        """Why one AppWrapper waits, and what would start it."""
        title = request.match_info["namespace"], request.match_info["name"]
        try:
            async with self._answering:
                told = await read_answer(await self._latest(), *title)
        except McadError as error:
            text = self.pages.answer(None, error.message)
        else:
            text = self.pages.answer(
                told, "" if told is not None else "It does not exist any more."
            )
        return self._part_or_page(request, "/".join(title), text)

    def _part_or_page(self, request: web.Request, title: str, text: str) -> web.Response:
        if request.headers.get("HX-Request") == "true":
            return _html(text)
        return _html(self.pages.single(title, text, is_html=True))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """A stream of changes (server-sent events)."""
        seen = request.query.get("seen", "")
        number = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 16 else -1
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        sending = asyncio.ensure_future(self._send(answer, Query.of(request.query), number))
        self._streams.add(sending)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await sending
        finally:
            sending.cancel()
            self._streams.discard(sending)
        return answer

    async def _send(self, answer: web.StreamResponse, query: Query, seen: int) -> None:
        stream_of = events(self.board, self.pages, query, seen)
        async with self.board.watched(), aclosing(stream_of) as stream:
            async for one in stream:
                await answer.write(one)

    async def end_streams(self, _: web.Application | None = None) -> None:
        """Streams have no end of their own, and closing waits for open requests."""
        for one in self._streams:
            one.cancel()

    async def _file(self, request: web.Request) -> web.Response:
        """Scripts and styles."""
        name = request.match_info["name"]
        if name not in self._static:
            raise web.HTTPNotFound(text=f"There is no {name}.\n")
        return web.Response(body=self._static[name], content_type=STATIC[name], charset="utf-8")

    async def _latest(self) -> Moment:
        return await self.board.now()

    def _failure(self, status: int, text: str) -> web.Response:
        return _html(self.pages.single("Not shown", text), status)


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(
        text=text, status=status, content_type="text/html", headers={"Vary": "HX-Request"}
    )


@asynccontextmanager
async def served(
    board: Board, port: int, on_used: Callable[[str], None] | None = None
) -> AsyncIterator[Ui]:
    """Serve on loopback until the end of the block; yields what has the address."""
    ui = Ui(board, Guard(on_used))
    server = Server(ui.application())
    try:
        try:
            ui.guard.serve_at(await server.start(NAMES[0], port))
        except OSError as error:
            raise McadError(
                f"cannot listen on {NAMES[0]}:{port}: {os.strerror(error.errno or 0)}; choose "
                "another --port"
            ) from error
        yield ui
    finally:
        await server.close()
