"""The fake API server over real HTTP on a free port of 127.0.0.1, and servers below HTTP."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial

from aiohttp import web

from mcad.kube.errors import ConnectionLost
from mcad.kube.port import Request, Response
from tests.cli.dispatcher import behold
from tests.fakeapi import FakeApi, Fault


@asynccontextmanager
async def serve(
    tls: ssl.SSLContext | None = None, api: FakeApi | None = None
) -> AsyncIterator[FakeApi]:
    """A running server, in this event loop."""
    api = behold(api or FakeApi())
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", partial(_exchange, api))
    runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    api.url = f"http{'s' * (tls is not None)}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()


@contextmanager
def served(api: FakeApi, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server in a thread of its own, for tests without an event loop."""
    started = threading.Event()
    ends: list[Callable[[], object]] = []

    async def run() -> None:
        async with serve(tls, api):
            stop, loop = asyncio.Event(), asyncio.get_running_loop()
            ends.append(lambda: loop.call_soon_threadsafe(stop.set))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert started.wait(20)
    try:
        yield api.url
    finally:
        ends[0]()
        thread.join(5)


@contextmanager
def answering(fault: Fault) -> Iterator[str]:
    """The URL of a server that gives every request this answer."""
    api = FakeApi()
    api.fail_always("*", "", fault)
    with served(api) as url:
        yield url


async def _exchange(api: FakeApi, asked: web.Request) -> web.StreamResponse:
    body = await asked.read()
    assert asked.transport is not None
    api.peer = asked.transport.get_extra_info("peercert")
    headers = dict(asked.headers)
    params = dict(asked.query)
    request = Request(asked.method, asked.path, params, body or None, headers=headers)
    try:
        answer = await api.answer(request)
        if isinstance(answer, Response):
            assert isinstance(answer.body, bytes)
            return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(asked)
        async with aclosing(answer):
            async for chunk in answer:
                await response.write(chunk)
        return response
    except ConnectionLost:
        asked.transport.abort()
        return web.Response()


@asynccontextmanager
async def serve_raw(
    handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server below HTTP, for answers that no HTTP library would send; yields its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The head and body of one HTTP request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return head + (await reader.readexactly(int(length[1])) if length else b"")


def free_port() -> int:
    """A port of 127.0.0.1 without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
