"""What one caller sees: answers to the requests of a browser, from the figures of that caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress

from aiohttp import web

from mcad.client.errors import McadError
from mcad.kube.client import Client
from mcad.ui.board import Board, BoardEndedError, Moment
from mcad.ui.details import read_answer, read_details, read_told
from mcad.ui.manifest import read_manifest
from mcad.ui.pages import Pages
from mcad.ui.pods import read_pod, read_pods
from mcad.ui.rows import Query
from mcad.ui.stream import events


class View:
    """Answers with what a board has; nothing is shared with the views of others."""

    def __init__(self, board: Board, user: str = "") -> None:
        """``user`` is the name of a caller with a login; "" is the owner of the kubeconfig."""
        self.board = board
        self.user = user
        self.pages = Pages(user)
        self._answering = asyncio.Lock()  # each takes a copy of the dispatcher: one at a time
        self._streams: set[asyncio.Task[None]] = set()

    async def page(self, request: web.Request) -> web.Response:
        """The page: queue, capacity and quota."""
        moment, query = await self._latest(), Query.of(request.query)
        try:
            parts = await self.pages.parts(moment, query)
        except McadError as error:  # of the filter by quota
            return self._failure(502, error.message)
        return html(self.pages.page(moment, query, parts))

    async def appwrapper(self, request: web.Request) -> web.Response:
        """The page with the drawer of one AppWrapper."""
        moment, query = await self._latest(), Query.of(request.query)
        title = request.match_info["namespace"], request.match_info["name"]
        try:
            details = await read_details(self.board, moment, *title)
            if request.headers.get("HX-Request") == "true":
                return html(self.pages.drawer(moment, query, details))
            parts = await self.pages.parts(moment, query)
        except McadError as error:
            return self._failure(502, error.message)
        status = 200 if details.detail is not None else 404
        return html(self.pages.page(moment, query, parts, details), status)

    async def facts(self, request: web.Request) -> web.Response:
        """The facts of one AppWrapper, for its drawer."""
        moment, query = await self._latest(), Query.of(request.query)
        title = request.match_info["namespace"], request.match_info["name"]
        try:
            details = await read_details(self.board, moment, *title)
        except McadError as error:
            return self._failure(502, error.message)
        return html(self.pages.facts(moment, query, details))

    async def told(self, request: web.Request) -> web.Response:
        """The latest Events about one AppWrapper."""

        async def read(namespace: str, name: str) -> str:
            moment = await self._latest()
            return self.pages.told(await read_told(self.board, moment, namespace, name))

        return await self._read(request, "Events of", read)

    async def pods(self, request: web.Request) -> web.Response:
        """The pods of one AppWrapper."""

        async def read(namespace: str, name: str) -> str:
            async with self._client(namespace) as client:
                found = await read_pods(client, namespace, name)
            return self.pages.pods({"namespace": namespace, "name": name}, found)

        return await self._read(request, "Pods of", read)

    async def pod(self, request: web.Request) -> web.Response:
        """A pod of one AppWrapper, with the end of a log."""
        pod, container = request.match_info["pod"], request.query.get("container", "")

        async def read(namespace: str, name: str) -> str:
            async with self._client(namespace) as client:
                found = await read_pod(client, (namespace, name), pod, container)
            return self.pages.pod({"namespace": namespace, "name": name}, found)

        return await self._read(request, f"Pod {pod} of", read)

    async def yaml(self, request: web.Request) -> web.Response:
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

    async def why(self, request: web.Request) -> web.Response:
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
            return html(text)
        return html(self.pages.single(title, text, is_html=True))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """A stream of changes (server-sent events)."""
        seen = self.pages.version_of(request.query.get("seen", ""))
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        sending = asyncio.ensure_future(self._send(answer, Query.of(request.query), seen))
        self._streams.add(sending)
        try:
            with suppress(ConnectionError, asyncio.CancelledError, BoardEndedError):
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

    @property
    def is_open(self) -> bool:
        """Whether a page is open."""
        return bool(self._streams)

    def end_streams(self) -> None:
        """Streams have no end of their own, and closing waits for open requests."""
        for one in self._streams:
            one.cancel()

    async def _latest(self) -> Moment:
        try:
            return await self.board.now()
        except BoardEndedError:  # the caller has logged out meanwhile
            raise web.HTTPServiceUnavailable(text="Reload the page.\n") from None

    def _failure(self, status: int, text: str) -> web.Response:
        return html(self.pages.single("Not shown", text), status)


VIEW = web.RequestKey("view", View)
"""The view of the caller of a request, which the guard puts there."""


def html(text: str, status: int = 200) -> web.Response:
    """An answer, whole or a part of a page."""
    return web.Response(
        text=text, status=status, content_type="text/html", headers={"Vary": "HX-Request"}
    )
