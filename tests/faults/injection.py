"""What can go wrong between a dispatcher and its API server: with one write, with one event."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, NoReturn

from mcad.kube.errors import ApiError, ConnectionLost, RequestTimeout
from mcad.kube.port import Request, Response
from tests.faults.edits import Edit, Editor
from tests.faults.stale_server import StaleServer
from tests.faults.upheavals import GUESTS, Upheaval
from tests.faults.weather import Weather

Json = dict[str, Any]
SLOW_S = 1.0  # from a write to its answer, where another writer is quicker
LATE_S = 7.0  # after which a write that is not waited for any more is committed all the same


class Fault(Enum):
    """What happens to a write."""

    KILLED_BEFORE = "the process is killed before the request is sent"
    KILLED_AFTER = "the process is killed when the write is committed and before it hears of it"
    LOST_BEFORE = "the connection breaks before the request arrives"
    LOST_AFTER = "the connection breaks after the write is committed"
    LATE = "the answer does not come in time, and the write is committed after that"
    THROTTLED = "429 with Retry-After"
    BROKEN = "500"
    DENIED = "403, as a quota answers"
    UNAUTHORIZED = "401, as if the credential had just ended"
    NOT_FOUND = "404, of what is there"
    NOT_ALLOWED = "405"
    TIMED_OUT = "408"
    REDIRECTED = "307 to nowhere"
    CHANGED = "another writer changes the object just before"
    OVERTAKEN = "a user edits the AppWrapper after the write, and before its answer is heard"
    STOPPED_BEFORE = "the process is stopped before the request is sent, and goes on after long"
    STOPPED_AFTER = "the process is stopped when the write is committed, and goes on after long"
    CUT_OFF = "from this write on nothing that the process sends arrives, for long"
    BEQUEATHED = "the process is killed, and the write is committed when another one leads"


Befalling = Fault | Edit | Upheaval
"""Whatever can be made to happen at a write."""

SPELLS = (Fault.STOPPED_BEFORE, Fault.STOPPED_AFTER, Fault.CUT_OFF)
"""What happens to a process rather than to a write: it outlasts a lease."""

SPELL_S = 100.0
BEQUEATHED_S = 66.0  # a server that keeps a request for longer than 75 s is not believed in (ADR 7)

REFUSALS = {
    Fault.THROTTLED: (429, "TooManyRequests", {"Retry-After": "2"}),
    Fault.BROKEN: (500, "InternalError", {}),
    Fault.DENIED: (403, "Forbidden", {}),
    Fault.UNAUTHORIZED: (401, "Unauthorized", {}),
    Fault.NOT_FOUND: (404, "NotFound", {}),
    Fault.NOT_ALLOWED: (405, "MethodNotAllowed", {}),
    Fault.TIMED_OUT: (408, "Timeout", {}),
    Fault.REDIRECTED: (307, "", {"Location": "/nowhere"}),
}

DELAY_S = 12.0  # of one event and of all behind it


class Gap(Enum):
    """What happens to a watch when it should tell an event."""

    CUT = "the connection breaks"
    FORGOTTEN = "the connection breaks, and the server does not know the version any more"
    DELAYED = "the event and all behind it come late"
    DENIED = "the connection breaks, and for a while we may neither list nor watch the kind"
    UNSERVED = "the connection breaks, and for a while the server says that there is no such kind"


REFUSED_GAPS = {Gap.DENIED: (403, "Forbidden"), Gap.UNSERVED: (404, "NotFound")}
REFUSED_S = 25.0  # that long lists and watches of the kind are refused


class Moment(NamedTuple):
    """A write as it is sent: ``about`` is the AppWrapper that it is about, None if it is about
    none, and ``others`` are all other AppWrappers, each as it is then."""

    request: Request
    about: Json | None
    others: list[Json]


@dataclass(slots=True)
class Plan:
    """Which write and which event meets its fault; both are counted from 0, over all lives.

    Events (the objects) and renewals of a lease are not counted among the writes, and bookmarks not
    among the events of watches: nothing rests on one of them.
    """

    writes: Callable[[int], Befalling | None] = lambda number: None
    events: Callable[[int, bytes], Gap | None] = lambda number, line: None
    written: itertools.count[int] = field(default_factory=itertools.count)
    moments: list[Moment] = field(default_factory=list)
    told: itertools.count[int] = field(default_factory=itertools.count)
    of_guests: itertools.count[int] = field(default_factory=itertools.count)  # among the writes
    weather: Weather = field(default_factory=Weather)


class Wire:
    """Implements the port for one life of a process; ``plan`` says what goes wrong."""

    def __init__(
        self,
        inner: StaleServer,
        plan: Plan,
        *,
        killed: Callable[[], None],
        sending: Callable[[], None],
        editor: Editor,
    ) -> None:
        """``killed`` ends the process; ``sending`` looks at it before each write, also its last."""
        self._inner = inner
        self._plan = plan
        self._killed = killed
        self._sending = sending
        self._editor = editor
        self._forgetful: set[str] = set()
        self._refusals: dict[str, tuple[float, ApiError]] = {}  # by path, until when
        self._cut_until = 0.0
        self.going = asyncio.Event()  # cleared while the process is stopped
        self.going.set()
        self.is_dead = False
        self.writes: list[Request] = []

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One exchange, or what becomes of it."""
        if self.is_dead:
            await _forever()
        if refusal := self._refused(request):
            await asyncio.sleep(0)
            return Response(refusal.status, {"kind": "Status", "reason": refusal.reason})
        begun = asyncio.get_running_loop().time()
        fault = self._fault(request)
        if fault in REFUSALS:
            await asyncio.sleep(0)
            return _refusal(fault)
        match fault:
            case Fault.KILLED_BEFORE | Fault.STOPPED_BEFORE | Fault.CUT_OFF | Fault.BEQUEATHED:
                await self._befall(fault, request)
            case Fault.LOST_BEFORE:
                await asyncio.sleep(0)
                raise ConnectionLost("the connection was reset")
            case Fault.LATE:
                asyncio.get_running_loop().call_later(LATE_S, self._inner.answer, request)
                await asyncio.sleep(LATE_S - 2.0)
                raise RequestTimeout("no answer in time")
            case Fault.CHANGED:
                self._editor.touch(request)
            case Edit():
                self._editor.edit(request, fault)
            case Upheaval():
                self._editor.upset(request, fault)
            case _:
                pass
        await self._reach(begun, timeout, request)
        response = await self._inner.request(request, timeout)
        if fault is Fault.OVERTAKEN:
            self._editor.touch(request)
            await asyncio.sleep(SLOW_S)
        await self._answered(fault)
        return response

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        """A watch; one of a dead process hangs."""
        if refusal := self._refused(request):
            raise refusal
        if request.path in self._forgetful:
            self._forgetful.remove(request.path)
            raise ApiError(410, "Expired", "too old resource version")
        async for line in self._inner.stream(request, idle_timeout, opened):
            await self.going.wait()
            match self._gap(line):
                case Gap.CUT:
                    raise ConnectionLost("the connection was reset")
                case Gap.FORGOTTEN:
                    self._forgetful.add(request.path)
                    raise ConnectionLost("the connection was reset")
                case Gap.DELAYED:
                    await asyncio.sleep(DELAY_S)
                case Gap.DENIED | Gap.UNSERVED as gap:
                    until = asyncio.get_running_loop().time() + REFUSED_S
                    self._refusals[request.path] = until, ApiError(*REFUSED_GAPS[gap])
                    raise ConnectionLost("the connection was reset")
                case None:
                    pass
            if self.is_dead:
                await _forever()
            yield line

    def _refused(self, request: Request) -> ApiError | None:
        """The answer to lists and watches of a kind that is denied at present."""
        until, error = self._refusals.get(request.path, (0.0, None))
        late = asyncio.get_running_loop().time() >= until
        return None if late or request.method != "GET" else error

    async def _befall(self, fault: Fault, request: Request) -> None:
        """What happens to the process as it sends."""
        loop = asyncio.get_running_loop()
        match fault:
            case Fault.STOPPED_BEFORE:
                self._stop()
            case Fault.CUT_OFF:
                self._cut_until = loop.time() + SPELL_S
            case _:
                if fault is Fault.BEQUEATHED:
                    loop.call_later(BEQUEATHED_S, self._inner.answer, request)
                await self._die()

    async def _answered(self, fault: Befalling | None) -> None:
        """Return when the process hears of the answer, if it does."""
        if self.is_dead:  # killed by another request while this one was under way
            await _forever()
        if fault is Fault.STOPPED_AFTER:
            self._stop()
        await self.going.wait()
        if fault is Fault.KILLED_AFTER:
            await self._die()
        if fault is Fault.LOST_AFTER:
            raise ConnectionLost("the connection was reset")

    async def _reach(self, begun: float, timeout: float | None, request: Request) -> None:
        """Return when a request is sent; nothing is sent after its time."""
        loop = asyncio.get_running_loop()
        await self.going.wait()
        if timeout is not None and loop.time() - begun >= timeout:
            raise RequestTimeout("it was stopped meanwhile")
        if loop.time() < self._cut_until:
            if request in self.writes:
                self.writes.remove(request)  # it is no write of anybody's
            await asyncio.sleep(0)
            raise ConnectionLost("no route to host")

    def _stop(self) -> None:
        self.going.clear()
        asyncio.get_running_loop().call_later(SPELL_S, self.going.set)

    def _gap(self, line: bytes) -> Gap | None:
        if self.is_dead or line.startswith(b'{"type":"BOOKMARK"'):
            return None
        return self._plan.events(next(self._plan.told), line)

    def _fault(self, request: Request) -> Befalling | None:
        if not counts(request):
            return None
        self._sending()
        self.writes.append(request)
        about = self._editor.about(request)
        self._plan.moments.append(Moment(request, about, self._editor.others(about)))
        fault = self._plan.writes(next(self._plan.written))
        if about is not None and about["metadata"]["namespace"] == GUESTS:
            if self._plan.weather.ends_namespace(next(self._plan.of_guests)):
                return Upheaval.TERMINATED
        return fault

    async def _die(self) -> NoReturn:
        self.is_dead = True
        self._killed()
        await _forever()


def counts(request: Request) -> bool:
    """Whether it is one of the writes that something rests on."""
    aside = ("/apis/events.k8s.io/", "selfsubject", "/leases")
    return request.method != "GET" and not any(part in request.path for part in aside)


def _refusal(fault: Fault) -> Response:
    code, reason, headers = REFUSALS[fault]
    words = {"kind": "Status", "code": code, "reason": reason, "message": "injected"}
    return Response(code, words, headers)


async def _forever() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nothing sets it")
