"""Keeps a sink informed of all objects of one kind: list in pages, then watch, for ever.

It remembers which version of which object the sink knows, never the objects
themselves, so after a relist it tells the difference only. It must not interpret objects, and
whatever the server or the network does, it neither crashes, nor loops hot, nor loses an object
in silence: when in doubt it lists again.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Generic, NoReturn, Protocol, TypeVar

from mcad.kube.client import EVERYTHING, WATCH_S, Client, Selection
from mcad.kube.decode import Line, decode, take_line
from mcad.kube.document import HEAD, Document, Picks
from mcad.kube.errors import ApiError, BadAnswer, KubeError, RequestTimeout, status_error
from mcad.kube.resource import Resource
from mcad.kube.retry import WATCH_PACE, Backoff, Pace
from mcad.kube.types import Json
from mcad.kube.versions import is_older, reaches

EARLY_S = 1.0  # before the time for which it was asked, a watch that ends has still lasted for it
SETTLED_S = 5.0  # a watch that lived this long is followed by the next one without a pause
AT_ONCE = 25  # objects of a page between two turns of the loop: some 10 ms at most
LOOKED_AT_ONCE = 200  # of those that a list did not tell: each may be gone, which costs as much
FRUITLESS_MAX = 3  # watches in a row without an event before their version is given up
SILENT_WEIGHT = 2  # a watch that was silent for its whole idle time counts for so many of these
ABSENT_S = 30.0  # of nothing but 404 before objects that we know count as gone with their kind
FEW = 500  # objects of a kind that are sooner listed, in a page, than a watch tells its bookmark
CATCH_UP_S = 6.0  # to catch up with the present by watches; after that the kind is listed
CATCH_UP_WATCH_S = 3  # of each of them: the server sends a bookmark 2 s before a watch ends
ABSENT_PACE = Pace(first_s=5.0, max_s=60.0, jitter=0.2)  # a kind that may be installed some day

_Key = tuple[str, str]
"""Namespace and name."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """What a reflector reports. Calls come from the event loop and must neither block nor raise."""

    def listing(self) -> None:
        """A list begins, read consistently: it tells at least what was answered before now.

        So if it tells an older version of an object than was known, that one no longer counts:
        the server was restored from a backup.
        """
        ...

    def upserted(self, obj: T_contra) -> None:
        """An object is new or has another resourceVersion than before."""
        ...

    def gone(self, uid: str, namespace: str, name: str, last: T_contra | None) -> None:
        """An object vanished; ``last`` is its final state if the watch had it."""
        ...

    def synced(self, *, relist: bool) -> None:
        """A list is complete: everything that existed when it was taken has been reported."""
        ...

    def alive(self, at: float) -> None:
        """Something came from the server; ``at`` is ``Clock.monotonic()`` seconds.

        A watch that is opened is a sign of life before its first event: from there on nothing is
        missed.
        """
        ...

    def failing(self, error: KubeError) -> None:
        """A list or watch failed and will be tried again.

        404 means that the server does not serve the kind. If that lasts, its objects are gone.
        """
        ...


async def _at_once() -> None:
    """The default: a kind is listed at once."""


class Reflector(Generic[T]):
    """One kind of one server. ``slim`` turns a document into what the sink is given.

    ``resource`` may be set to another version of the kind between two runs. Five more may be set
    before the first one: ``fields`` are those that ``slim`` picks, to be read at once, and
    ``new_fields`` the same of a list while nothing is known, with only new objects. ``ready`` is
    awaited before the first list, and again before the next one after the server denied that it
    serves the kind. ``watch_s`` is the least and the most seconds for which a watch is asked: one
    without events in all of that time is checked (ADR 43). ``at_once`` is how many objects of a
    page are read between two turns of the event loop.
    """

    fields: Picks
    new_fields: Picks | None
    ready: Callable[[], Awaitable[None]]
    watch_s: tuple[int, int]
    at_once: int

    def __init__(
        self,
        client: Client,
        resource: Resource,
        sink: Sink[T],
        slim: Callable[[Document], T],
        selection: Selection = EVERYTHING,
    ) -> None:
        """``slim`` may raise ``BadAnswer``, as its argument does, and nothing else."""
        self._client = client
        self.resource = resource
        self.fields = HEAD
        self.new_fields = None
        self.ready = _at_once
        self.watch_s = WATCH_S
        self.at_once = AT_ONCE
        self._sink = sink
        self._slim = slim
        self._selection = selection
        self._clock = client.clock
        self._backoff = Backoff(client.clock, client.rng, WATCH_PACE)
        self._absent_backoff = Backoff(client.clock, client.rng, ABSENT_PACE)
        self._known: dict[_Key, tuple[str, str]] = {}  # -> uid, version
        self._version = ""  # to watch from; empty: list first
        self._lists = 0
        self._is_listing = False
        self._is_early = False  # the list under way, for what is expected of it
        self._is_served = False  # as far as we know
        self._absent_since: float | None = None
        self._is_mute = False  # the present watch was opened and has had no event so far
        self._fruitless = 0
        self._count = 0  # of objects, at the check that led to the next list
        self._unlisted = 0  # so many of them a list then did not have: servers may miscount

    async def run(self, *, resume: bool = False) -> NoReturn:
        """List and watch until cancelled. Run again after that, it starts with a fresh list.

        With ``resume`` it catches up by a watch from where it was, and lists only if it cannot or
        there is little to list: ``synced`` means as much as after a list that began with this run
        (ADR 55).
        """
        if not (resume and await self._has_caught_up()):
            self._version = ""
        while True:
            await self._clock.sleep(await self._round())

    def expect_more(self) -> bool:
        """A list that is under way begins too early for ``synced``: it is read to its end, and
        followed by what ``resume`` does. False if none is under way."""
        self._is_early = self._is_listing
        return self._is_listing

    def forget(self) -> None:
        """The sink has forgotten all objects: the next list, with ``run``, reports every one."""
        self._known.clear()
        self._version = ""

    async def _has_caught_up(self) -> bool:
        """Watch until nothing is missing that a list made now would tell; False if that cannot be
        known in time: the watch is late, the version is too old, the server was restored."""
        if not self._version or len(self._known) < FEW:
            return False
        try:
            async with asyncio.timeout(CATCH_UP_S):
                present, count = await self._look()
                is_current = await self._reaches(present, count)
        except (KubeError, TimeoutError):
            return False
        if is_current:
            self._fruitless = 0
            self._sink.alive(self._clock.monotonic())
            self._sink.synced(relist=False)
        return is_current

    async def _reaches(self, present: str, count: int | None) -> bool:
        """Watch until this version is reached; whether nothing is missing then. As many objects
        are known as the server has, unless the watch reports more: then their number says
        nothing."""
        if is_older(present, self._version) or not reaches(present, present):
            return False  # the server was restored; or its versions are no numbers
        is_news = False
        while not reaches(self._version, present):
            lines = self._watch_lines(CATCH_UP_WATCH_S)
            async with aclosing(lines):
                async for line in lines:
                    event = _event(line)
                    is_news = is_news or event.type != "BOOKMARK"
                    self._receive(event)
                    if reaches(self._version, present):
                        break
                else:
                    await self._clock.sleep(self._backoff.delay())
        return is_news or not self._misses(count)

    async def _round(self) -> float:
        """List if need be and watch as long as it lasts; the pause to make then, in seconds."""
        started: float | None = None
        self._is_mute = False
        try:
            if not self._version and not await self._list():
                return self._absent_backoff.delay()
            if not self._version:
                return 0.0
            started = self._clock.monotonic()
            seconds = self._client.rng.randint(*self.watch_s)
            await self._watch(seconds)
            lasted = self._clock.monotonic() - started
            if self._is_mute and lasted >= seconds - EARLY_S:
                await self._check()
        except KubeError as error:
            return self._failed(error, watching=started is not None)
        if lasted >= SETTLED_S:
            return 0.0
        self._watched_in_vain()
        return self._backoff.delay()

    def _failed(self, error: KubeError, *, watching: bool) -> float:
        expired = watching and isinstance(error, ApiError) and error.gone
        if not expired:  # which is routine
            self._sink.failing(error)
        if watching and isinstance(error, ApiError) and not error.transient:
            self._version = ""  # too old, not served any more, not allowed: a list will tell
        elif watching and isinstance(error, ApiError | BadAnswer):
            self._watched_in_vain()
        elif self._is_mute and isinstance(error, RequestTimeout):
            self._watched_in_vain(SILENT_WEIGHT)
        if watching and isinstance(error, RequestTimeout):
            return 0.0  # it has waited for long enough; a pause too would count as more silence
        return self._backoff.delay(error.retry_after)

    def _watched_in_vain(self, weight: int = 1) -> None:
        """The server answered, but without any event. It may not accept our version: it was
        restored from a backup, say, or something in between swallows streams.
        """
        self._fruitless += weight
        if self._fruitless >= FRUITLESS_MAX:
            self._version = ""

    async def _list(self) -> bool:
        """List everything and report the difference; whether the kind exists."""
        if not self._is_served:
            await self.ready()
        self._sink.listing()
        self._is_listing, self._is_early = True, False
        try:
            await self._list_pages()
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.not_found):
                self._absent_since = None
                raise
            self._is_served = False
            if self._known and not self._is_absent():
                raise  # a server that is just starting may deny a kind that it does serve
            await self._forget_others(set())
            self._sink.failing(error)
            return False
        finally:
            self._is_listing = False
        self._is_served, self._absent_since = True, None
        self._lists += 1
        self._sink.alive(self._clock.monotonic())
        if not self._is_early:
            self._sink.synced(relist=self._lists > 1)
        elif not await self._has_caught_up():
            self._version = ""
        return True

    def _is_absent(self) -> bool:
        now = self._clock.monotonic()
        if self._absent_since is None:
            self._absent_since = now
        return now - self._absent_since >= ABSENT_S

    async def _list_pages(self) -> None:
        seen: set[_Key] = set()
        version = ""
        fields = self.fields if self._known else self.new_fields or self.fields
        listed = self._client.list_pages(
            self.resource, self._selection, retry_first_page=False, ahead=True
        )
        async with aclosing(listed) as pages:
            async for page in pages:
                if page.first:
                    seen = set()
                version = page.resource_version
                for number, document in enumerate(page.documents(fields), 1):
                    seen.add(self._upsert(document))
                    if number % self.at_once == 0:
                        await self._clock.sleep(0)
        if not version:
            raise BadAnswer(f"a list of {self.resource.plural} without a resourceVersion")
        await self._forget_others(seen)
        self._version, self._fruitless = version, 0
        self._unlisted = self._count - len(self._known) if self._count else 0
        self._count = 0

    async def _forget_others(self, seen: set[_Key]) -> None:
        """What is known and was not seen is gone; all that was seen is known."""
        if len(seen) == len(self._known):
            return
        for number, key in enumerate(list(self._known), 1):
            if key not in seen:
                uid, _ = self._known.pop(key)
                self._sink.gone(uid, *key, None)
            if number % LOOKED_AT_ONCE == 0:
                await self._clock.sleep(0)

    async def _check(self) -> None:
        """A watch had no event for as long as it was asked for: list again if one object and the
        count of the others show that there was something to tell.

        That it ended in time is a sign of life: an API server that has seen no event of the kind
        since its start sends no bookmarks.
        """
        self._sink.alive(self._clock.monotonic())
        version, count = await self._look()
        if self._misses(count):
            self._count, self._version = count or 0, ""
        if is_older(version, self._version):
            self._version = ""

    async def _look(self) -> tuple[str, int | None]:
        """The server's version of now, and how many objects there are, None if it does not count
        them: a consistent list of one object."""
        pages = self._client.list_pages(self.resource, self._selection, limit=1)
        async with aclosing(pages):
            page = await anext(pages)
        is_counted = page.last or page.remaining is not None
        return page.resource_version, len(page.texts) + (
            page.remaining or 0
        ) if is_counted else None

    def _misses(self, count: int | None) -> bool:
        """Whether so many objects are not those that are known; a list may have explained it."""
        return count is not None and count - len(self._known) not in (0, self._unlisted)

    async def _watch(self, seconds: int) -> None:
        """Report events until the server ends the stream; raises ``KubeError`` for other ends."""
        lines = self._watch_lines(seconds)
        async with aclosing(lines):
            async for line in lines:
                self._is_mute = False
                self._receive(_event(line))
                self._fruitless = 0
                self._sink.alive(self._clock.monotonic())

    def _watch_lines(self, seconds: int) -> AsyncGenerator[bytes, None]:
        return self._client.watch(
            self.resource, self._version, self._selection, self._open, seconds
        )

    def _open(self) -> None:
        self._is_mute = True
        self._sink.alive(self._clock.monotonic())

    def _receive(self, event: Line) -> None:
        if event.type == "BOOKMARK":
            self._version = _version(_object(event))
            return
        document = Document(event.object, self.resource, self.fields)
        if event.type in {"ADDED", "MODIFIED"}:
            self._upsert(document)
        elif event.type == "DELETED":
            self._delete(document)
        else:
            raise BadAnswer(f"a watch event of the unknown type {event.type!r}")
        self._version = document.identity.version

    def _upsert(self, document: Document) -> _Key:
        """Report it if it is news; the key that it is known by."""
        identity = document.identity
        key = (identity.namespace, identity.name)
        uid, version = self._known.get(key, ("", ""))
        if version == identity.version and uid == identity.uid:
            return key
        if uid and uid != identity.uid:
            self._sink.gone(uid, *key, None)
        slimmed = self._slim(document)
        self._known[key] = (identity.uid, identity.version)
        self._sink.upserted(slimmed)
        return key

    def _delete(self, document: Document) -> None:
        identity = document.identity
        key = (identity.namespace, identity.name)
        uid, _ = self._known.get(key, (identity.uid, ""))
        self._sink.gone(identity.uid, *key, self._slim(document))
        if uid != identity.uid:
            self._version = ""
            raise BadAnswer(f"{self.resource.kind} {key}: deletion of another uid than is known")
        self._known.pop(key, None)


def _event(line: bytes) -> Line:
    """The type and object of a watch line. Raises ``BadAnswer``, or the in-band ``ApiError``."""
    try:
        event = take_line(line)
    except ValueError as error:
        raise _no_event(line) from error
    if event.type == "ERROR":
        raise status_error(_object(event))
    return event


def _no_event(line: bytes) -> KubeError:
    try:
        value = decode(line)
    except ValueError as error:
        return BadAnswer(f"a watch line that is no JSON: {error}")
    if isinstance(value, dict) and value.get("kind") == "Status":
        return status_error(value)
    return BadAnswer("a watch line without type or object")


def _object(event: Line) -> Json:
    try:
        value = decode(event.object)
    except ValueError as error:
        raise BadAnswer(f"a watch line that is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadAnswer("a watch line without an object")
    return value


def _version(obj: Json) -> str:
    metadata = obj.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not version:
        raise BadAnswer("a bookmark without resourceVersion")
    return version
