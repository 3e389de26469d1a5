"""An API server that is behind: late watches, first lists of the past, undiscovered groups.

It stands before the simulated one, for one life of a process; weather.py says how bad it is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from mcad.kube.errors import KubeError
from mcad.kube.port import Request, Response, nothing
from mcad.sim.serving.discovery import AGGREGATED
from mcad.sim.serving.server import SimApi
from tests.faults.weather import Weather

Json = dict[str, Any]
MINUTES_S = 60.0  # a lag from which on a kind counts as minutes behind
STEP_S = 1e-5  # between two lines that are due at once, so that they keep their order


class StaleServer:
    """Implements the port; ``after_failover`` says that a process led before this one."""

    def __init__(self, inner: SimApi, weather: Weather, *, after_failover: bool) -> None:
        self._inner = inner
        self._weather = weather
        self._after_failover = after_failover
        self._listed: set[str] = set()

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One exchange."""
        if refusal := self._undiscovered_group(request):
            await asyncio.sleep(0)
            return refusal
        old = self._aged(request)
        response = await self._inner.request(old or request, timeout)
        if old is not None and _versions(response) != _versions(self._inner.answer(request)):
            self._weather.occurred["stale first list"] += 1
        return self._partial(response)

    def answer(self, request: Request) -> Response:
        """The answer to what is on its way when its sender has gone."""
        return self._inner.answer(request)

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """A watch, each line by its lag late."""
        belt = _Belt(request, self._weather)
        pump = asyncio.ensure_future(belt.fill(self._inner.stream(request, idle_timeout, opened)))
        try:
            while True:
                line = await belt.lines.get()
                if isinstance(line, KubeError):
                    raise line
                if line is None:
                    return
                yield line
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    # -- lists -----------------------------------------------------------------------------------

    def _aged(self, request: Request) -> Request | None:
        """The first list of a kind after a fail-over, as one of the past; None: as it is."""
        plural = request.path.rpartition("/")[2]
        if not self._after_failover or request.method != "GET" or request.path in self._listed:
            return None
        now_s = asyncio.get_running_loop().time()
        version = self._weather.old_version(plural, now_s)
        if version is None or "continue" in request.params:
            return None
        self._listed.add(request.path)
        exact = {"resourceVersion": str(version), "resourceVersionMatch": "Exact"}
        return replace(request, params={**request.params, **exact})

    # -- discovery -------------------------------------------------------------------------------

    def _undiscovered_group(self, request: Request) -> Response | None:
        """The answer to a read of one group that is not discovered now."""
        parts = request.path.strip("/").split("/")
        if len(parts) != 3 or parts[0] != "apis" or request.method != "GET":
            return None
        if parts[1] not in self._undiscovered():
            return None
        self._weather.occurred["partial discovery"] += 1
        words = {"kind": "Status", "code": 503, "reason": "ServiceUnavailable"}
        return Response(503, words | {"message": "the server is currently unable to handle it"})

    def _partial(self, response: Response) -> Response:
        """Discovery of all groups, without what some of them serve."""
        body, groups = response.body, self._undiscovered()
        if not groups or not isinstance(body, dict) or body.get("kind") != AGGREGATED:
            return response
        items = [
            _stale(one) if one["metadata"].get("name") in groups else one for one in body["items"]
        ]
        if items != body["items"]:
            self._weather.occurred["partial discovery"] += 1
        return replace(response, body=body | {"items": items})

    def _undiscovered(self) -> set[str]:
        return self._weather.undiscovered(asyncio.get_running_loop().time())


class _Belt:
    """What a watch tells, on its way: each line arrives by its lag late, and none overtakes.

    Bookmarks are not late; they tell no version that has not arrived.
    """

    def __init__(self, request: Request, weather: Weather) -> None:
        self.lines: asyncio.Queue[bytes | KubeError | None] = asyncio.Queue()
        self._plural = request.path.rpartition("/")[2]
        self._weather = weather
        self._last = b""  # to arrive
        self._begin = request.params.get("resourceVersion", "")
        self._due_s = 0.0

    async def fill(self, lines: AsyncGenerator[bytes, None]) -> None:
        """Put every line on it, then how it ended."""
        try:
            async with aclosing(lines):
                async for line in lines:
                    self._put(line)
        except KubeError as error:
            self._put(error)
        else:
            self._put(None)

    def _put(self, line: bytes | KubeError | None) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        lag_s = self._weather.lag_of(self._plural, now_s)
        if isinstance(line, bytes) and line.startswith(b'{"type":"BOOKMARK"'):
            if lag_s or self._due_s > now_s:
                line = self._held_back(line)
            self.lines.put_nowait(line)
            return
        if not lag_s and self._due_s < now_s:
            self._arrive(line)
            return
        self._due_s = max(now_s + lag_s, self._due_s + STEP_S)
        name = "a kind minutes behind" if lag_s >= MINUTES_S else "slow stream"
        self._weather.occurred[name] += 1
        loop.call_at(self._due_s, self._arrive, line)

    def _arrive(self, line: bytes | KubeError | None) -> None:
        if isinstance(line, bytes):
            self._last = line
        self.lines.put_nowait(line)

    def _held_back(self, line: bytes) -> bytes:
        """The bookmark with the version of what arrived last."""
        bookmark = json.loads(line)
        version = self._begin
        if self._last:
            version = json.loads(self._last)["object"]["metadata"]["resourceVersion"]
        bookmark["object"]["metadata"]["resourceVersion"] = version
        return json.dumps(bookmark, separators=(",", ":")).encode()


def _stale(group: Json) -> Json:
    """A group as the aggregator tells of it when it could not ask it yet."""
    versions = [one | {"resources": [], "freshness": "Stale"} for one in group["versions"]]
    return group | {"versions": versions}


def _versions(response: Response) -> list[str]:
    return [one["metadata"]["resourceVersion"] for one in response.json().get("items") or ()]
