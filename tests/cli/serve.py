"""The API server in memory behind a real port, in a thread of its own, for real processes.

Watches tell what the test changes and what others write, through ``FakeApi.stream``.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path

import yaml
from aiohttp import web

from mcad.kube.errors import ConnectionLost
from mcad.kube.port import Request, nothing
from tests.cli.fakeapi import FakeApi


@contextmanager
def served(api: FakeApi) -> Iterator[str]:
    """The URL under which the API answers."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", partial(_answer, api))
    with in_thread(app) as url:
        yield url


@contextmanager
def in_thread(app: web.Application, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Any application on a free port of 127.0.0.1, until the end of the block."""
    ready: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []
    started = threading.Event()

    async def serve() -> None:
        runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        stop = asyncio.Event()
        url = f"http{'s' * (context is not None)}://127.0.0.1:{runner.addresses[0][1]}"
        ready.append((url, asyncio.get_running_loop(), stop))
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    url, loop, stop = ready[0]
    try:
        yield url
    finally:
        call: Callable[[], object] = stop.set
        loop.call_soon_threadsafe(call)
        thread.join(5)


def kubeconfig(folder: Path, url: str, namespace: str = "default") -> str:
    """The path of a kubeconfig for a server without credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "ann", "user": {}}],
        "contexts": [
            {"name": "fake", "context": {"cluster": "fake", "user": "ann", "namespace": namespace}}
        ],
        "current-context": "fake",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def _answer(api: FakeApi, request: web.Request) -> web.StreamResponse:
    if request.query.get("watch") == "true":
        return await _watch(api, request)
    body = await request.read()
    if api.broken:
        return _hang_up(request)
    answer = await api.request(
        Request(
            request.method,
            request.path,
            dict(request.query),
            json.loads(body) if body else None,
            headers=dict(request.headers),
        )
    )
    return web.json_response(answer.json(), status=answer.status)


def _hang_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _watch(api: FakeApi, request: web.Request) -> web.StreamResponse:
    if api.cut:
        return _hang_up(request)
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    watch = Request("GET", request.path, dict(request.query))
    lines = api.stream(watch, idle_timeout=60, opened=nothing)
    async with aclosing(lines):
        try:
            async for line in lines:
                await response.write(line + b"\n")
        except ConnectionLost:
            return _hang_up(request)
    return response
