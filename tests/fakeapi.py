"""An API server for tests, behind the ``Api`` port; ``tests.serving`` puts it behind HTTP.

It keeps objects by plural, pages lists, serves watches from a history, and remembers each request.
It is honest by default. A fault is an answer instead, or an async function that gives one; one that
gives None has only looked, or waited. Faults are queued, or set for good, per method and path.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from mcad.kube import selectors
from mcad.kube.errors import ConnectionLost, api_error
from mcad.kube.port import Request, Response, nothing
from mcad.kube.resource import Resource

Json = dict[str, Any]
Chunks = AsyncGenerator[bytes, None]
Answer = Response | Chunks
Fault = Response | Callable[[Request], Awaitable[Answer | None]]

GROUP = "workload.codeflare.dev"
SERVED = (
    Resource("", "v1", "pods", "Pod"),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "events", "Event"),
    Resource("", "v1", "nodes", "Node", namespaced=False),
    Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("batch", "v1", "jobs", "Job"),
    Resource("batch", "v1", "cronjobs", "CronJob"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("events.k8s.io", "v1", "events", "Event"),
    Resource("quota.codeflare.dev", "v1alpha1", "quotasubtrees", "QuotaSubtree"),
    Resource("example.com", "v1", "gadgets", "Gadget"),
    Resource(GROUP, "v1alpha1", "dispatchpauses", "DispatchPause", namespaced=False),
    Resource(GROUP, "v1beta1", "appwrappers", "AppWrapper"),
    Resource(GROUP, "v1beta2", "appwrappers", "AppWrapper"),
)
_SELECTORS = {"labelSelector", "fieldSelector"}  # with one of them, the rest is not counted
CREATED = "2026-01-01T00:00:00Z"

_PATH = re.compile(
    r"/apis?/((?P<group>[^/]+\.[^/]+|apps|batch)/)?(?P<version>[^/]+)"
    r"(/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)"
    r"(/(?P<name>[^/]+)(/status)?)?"
)


@dataclass(frozen=True)
class Place:
    """A collection, or one object of it, that a request path names."""

    plural: str
    namespace: str
    name: str


@dataclass(eq=False)
class Stream:
    """One open watch; events come from any thread."""

    shows: Callable[[str, Json], bool]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def tell(self, line: bytes | None) -> None:
        self.loop.call_soon_threadsafe(self.lines.put_nowait, line)


@dataclass
class FakeApi:
    """State of the server; tests read and change it directly."""

    served: tuple[Resource, ...] = SERVED
    # plural -> (namespace, name) -> object; groups and versions share them, as they really do
    objects: dict[str, dict[tuple[str, str], Json]] = field(default_factory=dict)
    history: list[tuple[int, str, str, Json]] = field(default_factory=list)
    version: int = 1000
    compacted: int = 0  # watches from before this are 410
    tokens_to_expire: int = 0  # continue tokens that will be found too old
    requests: list[Request] = field(default_factory=list)
    faults: list[tuple[str, str, Fault]] = field(default_factory=list)
    always: list[tuple[str, str, Fault]] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    url: str = ""
    # A server behind this one, by the beginning of its paths.
    aggregated: dict[str, Callable[[Request], Awaitable[Response]]] = field(default_factory=dict)
    peer: Json | None = None  # the client certificate of the request that is being answered
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # -- what tests do to it ------------------------------------------------------------

    def put(self, plural: str, *objects: Json) -> Json:
        """Add or change objects on the server; return the last one."""
        assert objects
        for obj in objects:
            last = self._commit(plural, obj)
        return last

    def change(self, plural: str, name: str, change: Callable[[Json], None]) -> None:
        obj = _copy(self.named(plural, name))
        change(obj)
        self._commit(plural, obj)

    def remove(self, plural: str, name: str) -> None:
        self._commit(plural, self.named(plural, name), deleted=True)

    def named(self, plural: str, name: str) -> Json:
        """The object of that name, in any namespace."""
        return next(obj for (_, one), obj in self.objects[plural].items() if one == name)

    def names(self, plural: str) -> list[str]:
        return [name for _, name in self.objects.get(plural, {})]

    def fail(self, method: str, path: str, *faults: Fault) -> None:
        """Queue faults for requests; ``*`` is every method, ``WATCH`` and ``LIST`` are their own.

        ``path`` is a regular expression that is searched for.
        """
        self.faults += [(method, path, fault) for fault in faults]

    def fail_always(self, method: str, path: str, fault: Fault) -> None:
        """Until ``recover``."""
        self.always.append((method, path, fault))

    def deny(self, *plurals: str, method: str = "*") -> None:
        """Deny requests for these."""
        for plural in plurals:
            self.fail_always(method, f"/{plural}(/|$)", forbidden)

    def break_down(self) -> None:
        """Refuse all connections, and cut watches."""
        self.fail_always("*", "", reset)
        self.send(None)

    def recover(self) -> None:
        """Honest again."""
        self.always.clear()

    def compact(self) -> None:
        """Forget the history: watches from before now must list again."""
        self.version += 1
        self.compacted = self.version
        self.history.clear()

    def send(self, line: bytes | None) -> None:
        """Write a raw line into all open watches; None ends them."""
        for stream in self.streams:
            stream.tell(line)

    def bookmark(self) -> None:
        """Send a bookmark to all watches."""
        metadata = {"resourceVersion": str(self.version)}
        self.send(event("BOOKMARK", {"metadata": metadata}))

    def seen(self, method: str, path: str = "") -> list[Request]:
        """The matching requests so far."""
        return [one for one in self.requests if _is(one, method) and re.search(path, one.path)]

    # -- the port -----------------------------------------------------------------------

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        await asyncio.sleep(0)
        answer = await self.answer(request)
        assert isinstance(answer, Response)
        return answer

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> Chunks:
        answer = await self.answer(request)
        if isinstance(answer, Response):
            raise api_error(answer.status, answer.body)
        opened()
        async with aclosing(answer):
            async for line in answer:
                yield line.removesuffix(b"\n")

    async def answer(self, request: Request) -> Answer:
        """A response, or the chunks of a stream; ``ConnectionLost`` is one that breaks."""
        self.requests.append(request)
        for fault in self._faults(request):
            told = await fault(request) if callable(fault) else fault
            if told is not None:
                return told
        for prefix, server in self.aggregated.items():
            if request.path.startswith(prefix):
                return await server(request)
        return self._honest(request)

    # -- what it does -------------------------------------------------------------------

    def _faults(self, request: Request) -> Iterator[Fault]:
        """At most one of the queued ones, then those set for good."""
        queued = next((one for one in self.faults if _concerns(one, request)), None)
        if queued is not None:
            self.faults.remove(queued)
            yield queued[2]
        yield from [one[2] for one in self.always if _concerns(one, request)]

    def _honest(self, request: Request) -> Answer:
        if request.path == "/version":
            return answer({"gitVersion": "v1.36.0"})
        if request.path in ("/api", "/apis"):
            core = request.path == "/api"
            return answer(_discovery(one for one in self.served if (one.group == "") is core))
        if request.path.endswith("/selfsubjectaccessreviews"):
            return answer({"status": {"allowed": self._allows(request)}}, 201)
        place = self._place(request.path)
        if place is None:
            return refuse(404, "NotFound", "the server could not find the requested resource")
        if not place.name:
            if request.method == "POST":
                return self._create(request, place)
            return self._watch(request, place) if is_watch(request) else self._list(request, place)
        obj = self.objects.get(place.plural, {}).get((place.namespace, place.name))
        if obj is None:
            details = {"name": place.name, "kind": place.plural}
            return refuse(404, "NotFound", f'{place.plural} "{place.name}" not found', details)
        return answer(obj) if request.method == "GET" else self._write(request, place, obj)

    def _allows(self, request: Request) -> bool:
        """Whether what a review asks for, a create, would be answered honestly."""
        asked = Request("POST", f"/{content(request)['spec']['resourceAttributes']['resource']}")
        return not any(_concerns(one, asked) for one in self.always)

    def _place(self, path: str) -> Place | None:
        parts = _PATH.fullmatch(path)
        if parts is None:
            return None
        group, version, namespace, plural, name = (
            parts[key] or "" for key in ("group", "version", "namespace", "plural", "name")
        )
        served = [(one.group, one.version, one.plural) for one in self.served]
        known = (group, version, plural) in served
        return Place(plural, namespace, name) if known else None

    def _commit(self, plural: str, obj: Json, *, deleted: bool = False) -> Json:
        """Store an object, and send it to all watches."""
        with self._lock:
            self.version += 1
            given = {"uid": f"uid-{self.version}", "creationTimestamp": CREATED} | obj["metadata"]
            metadata = given | {"resourceVersion": str(self.version)}
            obj = _copy(obj | {"metadata": metadata})
            key = metadata.get("namespace", ""), metadata["name"]
            there = self.objects.setdefault(plural, {})
            kind = "DELETED" if deleted else "MODIFIED" if key in there else "ADDED"
            there[key] = obj
            if deleted:
                del there[key]
            self.history.append((self.version, plural, kind, obj))
            line = event(kind, obj)
            for stream in self.streams:
                if stream.shows(plural, obj):
                    stream.tell(line)
            return obj

    def _create(self, request: Request, place: Place) -> Response:
        obj = content(request)
        if place.namespace:
            obj["metadata"].setdefault("namespace", place.namespace)
        if (place.namespace, obj["metadata"]["name"]) in self.objects.get(place.plural, {}):
            return refuse(409, "AlreadyExists", "already exists")
        if "dryRun" not in request.params:
            obj = self._commit(place.plural, obj)
        return answer(obj, 201)

    def _write(self, request: Request, place: Place, obj: Json) -> Response:
        body, metadata = content(request), obj["metadata"]
        if request.method == "DELETE":
            if body.get("preconditions", {}).get("uid", metadata["uid"]) != metadata["uid"]:
                return refuse(409, "Conflict", "the uid does not match")
            self.remove(place.plural, place.name)
            return answer({"kind": "Status", "status": "Success"})
        fence = body.get("metadata", {}).pop("resourceVersion", metadata["resourceVersion"])
        if fence != metadata["resourceVersion"]:
            return refuse(409, "Conflict", "the object has been modified")
        if request.method == "PUT":  # of a status
            if body["metadata"].get("uid", metadata["uid"]) != metadata["uid"]:
                return refuse(409, "Conflict", "the uid does not match")
            return answer(self._commit(place.plural, obj | {"status": body["status"]}))
        return answer(self._commit(place.plural, _merged(obj, body)))

    def _list(self, request: Request, place: Place) -> Response:
        found = sorted(self.objects.get(place.plural, {}).items())
        items = [obj for _, obj in found if _selects(request, place, obj)]
        limit = int(request.params.get("limit", "0")) or len(items)
        start, version = 0, self.version
        if token := request.params.get("continue"):
            if self.tokens_to_expire:
                self.tokens_to_expire -= 1
                return refuse(410, "Expired", "the continue parameter is too old")
            start, version = map(int, token.split(":"))
        metadata = {"resourceVersion": str(version)}
        if start + limit < len(items):
            metadata["continue"] = f"{start + limit}:{version}"
            if not _SELECTORS & request.params.keys():
                metadata["remainingItemCount"] = len(items) - start - limit
        return answer({"kind": "List", "metadata": metadata, "items": items[start : start + limit]})

    def _watch(self, request: Request, place: Place) -> Answer:
        since = int(request.params["resourceVersion"])
        if since < self.compacted:
            return refuse(410, "Expired", "too old resource version")
        if since > self.version:
            return refuse(504, "Timeout", "Too large resource version")
        return self._follow(request, place, since)

    async def _follow(self, request: Request, place: Place, since: int) -> Chunks:
        stream = Stream(
            lambda plural, obj: plural == place.plural and _selects(request, place, obj)
        )
        with self._lock:
            for version, plural, kind, obj in self.history:
                if version > since and stream.shows(plural, obj):
                    stream.lines.put_nowait(event(kind, obj))
            self.streams.append(stream)
        try:
            while (line := await stream.lines.get()) is not None:
                yield line + b"\n"
        finally:
            self.streams.remove(stream)


def is_watch(request: Request) -> bool:
    return request.params.get("watch") == "true"


def content(request: Request) -> Json:
    """The body of a request, as a copy."""
    body = request.body
    found: Json = json.loads(body if isinstance(body, bytes) else json.dumps(body))
    return found


def event(kind: str, obj: Json) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode()


def _is(request: Request, method: str) -> bool:
    if method == "WATCH":
        return is_watch(request)
    if method == "LIST":
        return request.method == "GET" and not is_watch(request)
    return method in ("*", request.method)


def _concerns(planned: tuple[str, str, Fault], request: Request) -> bool:
    method, path, _ = planned
    return _is(request, method) and bool(re.search(path, request.path))


def _copy(obj: Json) -> Json:
    copied: Json = json.loads(json.dumps(obj))  # several times faster than deepcopy
    return copied


def _selects(request: Request, place: Place, obj: Json) -> bool:
    """By labels and fields."""
    matches = selectors.labels(request.params.get("labelSelector", ""))
    text = request.params.get("fieldSelector", "")
    wanted = [one.split("=") for one in text.split(",") if one]
    return (
        place.namespace in ("", obj["metadata"].get("namespace", ""))
        and matches(obj["metadata"].get("labels", {}))
        and all(_field(obj, path) == value for path, value in wanted)
    )


def _field(obj: Json, path: str) -> Any:
    """A field by its path; the source of an Event is the name of its component."""
    found: Any = obj
    for name in (*path.split("."), *(["component"] if path == "source" else ())):
        found = found.get(name, {})
    return found


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


def _discovery(served: Iterable[Resource]) -> Json:
    groups: dict[str, dict[str, list[Json]]] = {}
    for one in served:
        kind = {"resource": one.plural, "responseKind": {"kind": one.kind}}
        kind["scope"] = "Namespaced" if one.namespaced else "Cluster"
        groups.setdefault(one.group, {}).setdefault(one.version, []).append(kind)
    items = [
        {
            "metadata": {"name": group},
            "versions": [{"version": one, "resources": kinds} for one, kinds in versions.items()],
        }
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}


# -- faults -----------------------------------------------------------------------------


def answer(body: object, code: int = 200, content_type: str = "application/json") -> Response:
    """JSON, or exactly these bytes."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(code, raw, {"Content-Type": content_type})


def refuse(
    code: int, reason: str = "", message: str = "", details: Json | None = None, **headers: str
) -> Response:
    """As Kubernetes words it; ``Retry_After='1'`` becomes a header."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = json.dumps(body | {"message": message, "details": details or {}}).encode()
    return Response(code, raw, {"Content-Type": "application/json"} | told)


async def forbidden(request: Request) -> Response:
    verb = {"POST": "create", "PATCH": "patch"}.get(request.method, "list")
    plural = request.path.rpartition("/")[2]
    words = f'User "ann" cannot {"watch" if is_watch(request) else verb} resource "{plural}"'
    return refuse(403, "Forbidden", f'{plural} is forbidden: {words} in API group ""')


async def hang(_: Request) -> None:
    """Take the request and never send a byte."""
    await asyncio.Event().wait()


async def reset(request: Request) -> None:
    """Cut the connection instead of answering."""
    raise ConnectionLost(f"{request.method} {request.path}: Connection refused")


def held(gate: asyncio.Event) -> Fault:
    """Answer honestly, but not before the gate is open."""

    async def fault(_: Request) -> None:
        await gate.wait()

    return fault


def stream(*steps: bytes | float, then: str = "end") -> Fault:
    """A streamed answer: bytes are written, numbers are pauses in seconds.

    ``then``: ``end`` properly, ``reset`` the connection, or be ``silent`` for ever.
    """

    async def chunks() -> Chunks:
        for step in steps:
            if isinstance(step, bytes):
                yield step
            else:
                await asyncio.sleep(step)
        if then == "silent":
            await asyncio.Event().wait()
        if then == "reset":
            raise ConnectionLost("reset")

    async def fault(_: Request) -> Chunks:
        return chunks()

    return fault


def in_band(code: int, reason: str, message: str = "") -> Fault:
    """A watch that begins with 200 and then says ERROR."""
    obj = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return stream(event("ERROR", obj) + b"\n")
