"""A small API server over real HTTP on loopback, honest by default, with faults on demand.

It keeps objects of any kind by path, pages lists, serves watches from a history, and logs each
request. A fault is an async function that answers instead; faults are queued per method and path.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Logged:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def watch(self) -> bool:
        return self.query.get("watch") == "true"

    def json(self) -> Json:
        return json.loads(self.body)


@dataclass
class FakeServer:
    """State of the server; tests read and change it directly."""

    url: str = ""
    objects: dict[str, dict[str, Json]] = field(default_factory=dict)  # collection -> name -> obj
    history: list[tuple[int, str, str, Json]] = field(default_factory=list)
    version: int = 1000
    compacted: int = 0  # watches from before this are 410
    tokens_to_expire: int = 0  # continue tokens that will be found too old
    requests: list[Logged] = field(default_factory=list)
    faults: list[tuple[str, str, Fault]] = field(default_factory=list)
    always: list[tuple[str, str, Fault]] = field(default_factory=list)
    streams: set[asyncio.Queue[bytes | None]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    # -- what tests do to it ------------------------------------------------------------

    def fail(self, method: str, path: str, *faults: Fault) -> None:
        """Queue faults for matching requests; ``WATCH`` and ``LIST`` are methods of their own."""
        self.faults += [(method, path, fault) for fault in faults]

    def fail_always(self, method: str, path: str, fault: Fault) -> None:
        self.always.append((method, path, fault))

    def put(self, collection: str, obj: Json) -> Json:
        """Add or change an object behind the clients' backs."""
        name = obj["metadata"]["name"]
        known = self.objects.setdefault(collection, {})
        kind = "MODIFIED" if name in known else "ADDED"
        return self._commit(collection, kind, obj)

    def remove(self, collection: str, name: str) -> None:
        self._commit(collection, "DELETED", self.objects[collection].pop(name))

    def compact(self) -> None:
        """Forget the history: whoever watches from before now must list again."""
        self.compacted = self.version + 1
        self.version += 1
        self.history.clear()

    def send(self, line: bytes | None) -> None:
        """Write a raw line into all open watches; None ends them."""
        for stream in self.streams:
            stream.put_nowait(line)

    def bookmark(self) -> None:
        self.version += 1
        metadata = {"resourceVersion": str(self.version)}
        self.send(json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode())

    def seen(self, method: str, path: str = "") -> list[Logged]:
        """The matching requests so far."""
        return [r for r in self.requests if _is(r, method) and re.search(path, r.path)]

    # -- what it does -------------------------------------------------------------------

    def _commit(self, collection: str, kind: str, obj: Json) -> Json:
        self.version += 1
        metadata = {"uid": f"uid-{self.version}", **obj["metadata"]}
        obj = {**obj, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        if kind != "DELETED":
            self.objects.setdefault(collection, {})[metadata["name"]] = obj
        self.history.append((self.version, collection, kind, obj))
        self.changed.set()
        self.changed = asyncio.Event()
        return obj

    async def handle(self, request: web.Request) -> web.StreamResponse:
        logged = Logged(
            request.method,
            request.path,
            dict(request.query),
            dict(request.headers),
            await request.read(),
        )
        self.requests.append(logged)
        for index, (method, path, fault) in enumerate(self.faults):
            if _is(logged, method) and re.search(path, logged.path):
                del self.faults[index]
                return await fault(request)
        for method, path, fault in self.always:
            if _is(logged, method) and re.search(path, logged.path):
                return await fault(request)
        return await self._honest(request, logged)

    async def _honest(self, request: web.Request, logged: Logged) -> web.StreamResponse:
        if logged.watch:
            return await self._watch(request)
        collection, _, name = logged.path.rpartition("/")
        if logged.path in self.objects:
            return self._collection(request, logged)
        if name == "status":
            collection, _, name = collection.rpartition("/")
        obj = self.objects.get(collection, {}).get(name)
        if obj is None:
            return status(404, "NotFound", f"{logged.path} not found")
        if request.method == "GET":
            return web.json_response(obj)
        return self._change(logged, collection, obj)

    def _collection(self, request: web.Request, logged: Logged) -> web.Response:
        if request.method == "POST":
            obj = logged.json()
            if obj["metadata"]["name"] in self.objects[logged.path]:
                return status(409, "AlreadyExists", "already exists")
            return web.json_response(self._commit(logged.path, "ADDED", obj), status=201)
        return self._list(request)

    def _change(self, logged: Logged, collection: str, obj: Json) -> web.Response:
        body, metadata = logged.json(), obj["metadata"]
        if logged.method == "DELETE":
            fence = body.get("preconditions", {})
            if fence.get("uid", metadata["uid"]) != metadata["uid"]:
                return status(409, "Conflict", "the uid does not match")
            self.remove(collection, metadata["name"])
            return web.json_response({"kind": "Status", "status": "Success"})
        fence = body.get("metadata", {}).pop("resourceVersion", metadata["resourceVersion"])
        if fence != metadata["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified")
        return web.json_response(self._commit(collection, "MODIFIED", _merged(obj, body)))

    def _list(self, request: web.Request) -> web.Response:
        names = sorted(self.objects[request.path])
        limit = int(request.query.get("limit", "0")) or len(names) or 1
        start, version = 0, self.version
        if token := request.query.get("continue"):
            if self.tokens_to_expire:
                self.tokens_to_expire -= 1
                return status(410, "Expired", "the continue parameter is too old")
            start, version = map(int, token.split(":"))
        metadata = {"resourceVersion": str(version)}
        if start + limit < len(names):
            metadata["continue"] = f"{start + limit}:{version}"
        items = [self.objects[request.path][name] for name in names[start : start + limit]]
        return web.json_response({"kind": "List", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self.compacted:
            return status(410, "Expired", "too old resource version")
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.streams.add(lines)
        feeding = asyncio.ensure_future(self._feed(request.path, version, lines))
        try:
            response = await stream_response(request)
            while (line := await lines.get()) is not None:
                await response.write(line + b"\n")
            return response
        finally:
            self.streams.discard(lines)
            feeding.cancel()

    async def _feed(self, path: str, version: int, lines: "asyncio.Queue[bytes | None]") -> None:
        while True:
            changed = self.changed
            for at, collection, kind, obj in self.history:
                if at > version and collection == path:
                    lines.put_nowait(json.dumps({"type": kind, "object": obj}).encode())
            version = max(version, self.version)
            await changed.wait()


def _is(request: Logged, method: str) -> bool:
    if method == "WATCH":
        return request.watch
    if method == "LIST":
        return request.method == "GET" and not request.watch
    return method == request.method


def _merged(target: Json, patch: Json) -> Json:
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merged(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged


# -- faults -----------------------------------------------------------------------------


def status(code: int, reason: str = "", message: str = "", **headers: str) -> web.Response:
    """A refusal as Kubernetes words it; ``Retry_After='1'`` becomes a header."""
    body = {"kind": "Status", "status": "Failure", "code": code}
    return web.json_response(
        {**body, "reason": reason, "message": message},
        status=code,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def refuse(code: int, reason: str = "", message: str = "", **headers: str) -> Fault:
    async def fault(_: web.Request) -> web.StreamResponse:
        return status(code, reason, message, **headers)

    return fault


def say(body: bytes, code: int = 200, content_type: str = "application/json") -> Fault:
    """Answer with exactly these bytes."""

    async def fault(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=code, content_type=content_type)

    return fault


def answer(body: object) -> Fault:
    return say(json.dumps(body).encode())


async def hang(_: web.Request) -> web.StreamResponse:
    """Take the request and never send a byte."""
    await asyncio.Event().wait()
    raise AssertionError


async def reset(request: web.Request) -> web.StreamResponse:
    """Cut the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def stream(*steps: bytes | float, then: str = "end") -> Fault:
    """A streamed answer: bytes are written, numbers are pauses in seconds.

    ``then``: ``end`` properly, ``reset`` the connection, or be ``silent`` for ever.
    """

    async def fault(request: web.Request) -> web.StreamResponse:
        response = await stream_response(request)
        for step in steps:
            if isinstance(step, bytes):
                await response.write(step)
            else:
                await asyncio.sleep(step)
        if then == "silent":
            await asyncio.Event().wait()
        if then == "reset":
            assert request.transport is not None
            request.transport.abort()
        return response

    return fault


def in_band(code: int, reason: str, message: str = "") -> Fault:
    """A watch that begins with 200 and then says ERROR."""
    obj = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return stream(json.dumps({"type": "ERROR", "object": obj}).encode() + b"\n")


async def stream_response(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


# -- serving ----------------------------------------------------------------------------


@asynccontextmanager
async def serve(ssl_context: Any = None) -> AsyncIterator[FakeServer]:
    """A running server on a free port of 127.0.0.1."""
    server = FakeServer()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context)
    await site.start()
    scheme = "https" if ssl_context else "http"
    server.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


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
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
