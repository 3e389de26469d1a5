"""Streams of watched objects: objects go to the controller, health to the barrier."""

import logging
from asyncio import ensure_future
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from mcad.kube.errors import ApiError, KubeError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_COUNTED = ("upserted", "gone", "lists", "relists", "errors")

_log = logging.getLogger(__name__)

FAILURES_BORNE = 1  # a connection breaks now and then, and the next one is there at once
SILENCE_S = 75.0  # bookmarks come every 60 s; the server keeps events for 75 s (protocol P14)


class Held(Protocol[T_contra]):
    """Objects that are held back from the core; see initial_lists.py.

    ``is_due_listed``: only whole lists can be fed, because they are sorted.
    """

    is_due_listed: bool

    def put(self, document: T_contra, /) -> None:
        """Hold a new or changed object."""
        ...

    def drop(self, uid: str) -> bool:
        """Remove a deleted object. True if the core did not know it."""
        ...

    async def feed(self) -> None:
        """Feed all held objects, and those that are put meanwhile."""
        ...


@dataclass(slots=True, eq=False)
class Stream(Generic[T]):
    """One watched kind: where its objects go, and whether it can be trusted.

    It may have several parts (one per namespace). It is synced, for good, once all parts are
    listed; ``error`` is why it cannot be trusted at present, or "". ``changed`` is called when one
    of the two changes. ``first`` holds objects back until it is fed by a task of ``spawn``: then
    every object goes to ``seen``, and the stream can be synced. While it ``stands_by`` everything
    is held back, and nothing is synced. ``listing`` gets the namespace of each list that begins.
    ``now`` is ``Clock.monotonic``.
    """

    name: str
    seen: Callable[[T], None]
    lost: Callable[[str], None]
    changed: Callable[["Stream[T]"], None]
    now: Callable[[], float]
    first: Held[T] | None = None
    spawn: Callable[[Coroutine[Any, Any, None]], object] = ensure_future
    listing: Callable[[str], None] = lambda _: None
    absence: str = "it is not installed"
    stands_by: bool = False
    is_synced: bool = False
    error: str = ""
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    _parts: list["Part[T]"] = field(default_factory=list)
    _is_feeding: bool = False
    _is_fed: bool = False
    _told: tuple[bool, str, bool] = (False, "", False)

    def part(self, namespace: str = "") -> "Part[T]":
        """A sink for one more reflector; all parts are made before the first one runs."""
        part = Part(self, namespace)
        self._parts.append(part)
        return part

    @property
    def is_watched(self) -> bool:
        """Whether its objects are complete and current."""
        return self.is_synced and not self.error

    @property
    def is_absent(self) -> bool:
        """Whether the server does not serve the kind."""
        return any(part.is_absent for part in self._parts)

    def is_silent(self, now: float) -> bool:
        """Whether nothing came for so long that the connection may be dead."""
        return now - self.alive_at > SILENCE_S

    @property
    def alive_at(self) -> float:
        """The last sign of life of all parts, in monotonic seconds."""
        return min((part.alive_at for part in self._parts), default=float("-inf"))

    @property
    def is_copied(self) -> bool:
        """Whether a standby has all of its objects, or cannot have them."""
        return all(part.is_synced or part.is_refused for part in self._parts)

    def begin_anew(self) -> None:
        """The objects that are held back were forgotten, or have to catch up with the present."""
        for part in self._parts:
            part.begin_anew()

    def lead(self) -> None:
        """What was held back while it stood by goes on to the core. It is synced when each part
        has caught up or was listed anew (P11)."""
        self.stands_by, self.error, self._told = False, "", (False, "", False)
        self.begin_anew()
        if self.first is not None and not self.first.is_due_listed:
            self._feed_soon(self.first)

    def take(self, obj: T) -> None:
        """An object is new or changed."""
        if self.first is not None and not self._is_fed:
            self.first.put(obj)
        else:
            self.seen(obj)

    def lose(self, uid: str) -> None:
        """An object was deleted; the core does not get those that were held back."""
        was_held = self.first is not None and not self._is_fed and self.first.drop(uid)
        if not (was_held or self.stands_by):
            self.lost(uid)

    def judge(self) -> None:
        """Check whether the stream has become synced, and whether it can be trusted."""
        self.error = next((part.error for part in self._parts if part.error), "")
        if not self.is_synced and all(part.is_synced for part in self._parts):
            self._sync()
        state = (self.is_synced, self.error, self.stands_by and self.is_copied)
        if state != self._told:
            self._told = state
            self.changed(self)

    def _sync(self) -> None:
        if self.stands_by:
            return
        if self.first is None or self._is_fed:
            self.is_synced = True
        else:
            self._feed_soon(self.first)

    def _feed_soon(self, first: Held[T]) -> None:
        if not self._is_feeding:
            self._is_feeding = True
            self.spawn(self._feed(first))

    async def _feed(self, first: Held[T]) -> None:
        await first.feed()
        self._is_fed = True
        self.judge()


class Part(Generic[T]):
    """The sink of one reflector.

    Its ``error`` is set until the first list is complete; later, if the server refuses or does not
    know the kind, or if it fails for longer than ``SILENCE_S``.
    """

    def __init__(self, stream: Stream[T], namespace: str) -> None:
        self._stream = stream
        self._title = f"{stream.name} namespace={namespace}" if namespace else stream.name
        self._namespace = namespace
        self.is_synced = False
        self.is_absent = False
        self.error = ""
        self.alive_at = float("-inf")
        self.is_refused = False  # until a list is complete: nothing else shows that it works again
        self._failures = 0  # in a row, without a sign of life in between
        self._failing_since = float("inf")
        self._is_told = False

    def begin_anew(self) -> None:
        """What was listed or refused before says nothing of now."""
        self.is_synced = self.is_absent = self.is_refused = False
        self.error = ""
        self._failures, self._failing_since = 0, float("inf")

    def listing(self) -> None:
        """A list begins."""
        self._stream.listing(self._namespace)

    def upserted(self, obj: T) -> None:
        """An object is new or changed."""
        self._stream.counts["upserted"] += 1
        self._stream.take(obj)

    def gone(self, uid: str, namespace: str, name: str, last: T | None) -> None:  # noqa: ARG002
        """An object vanished."""
        self._stream.counts["gone"] += 1
        self._stream.lose(uid)

    def synced(self, *, relist: bool) -> None:
        """A list is complete; an earlier error ends when the following watch is open."""
        self._stream.counts["relists" if relist else "lists"] += 1
        self.is_synced, self.is_absent, self.is_refused = True, False, False
        self._stream.judge()

    def alive(self, at: float) -> None:
        """The server sent something."""
        self.alive_at = at
        self._failures, self._failing_since = 0, float("inf")
        if self.is_synced and not self.is_refused:
            self._works()

    def failing(self, error: KubeError) -> None:
        """A list or watch failed; the reflector retries."""
        self._stream.counts["errors"] += 1
        self._failures += 1
        if _is_refusal(error):
            self._refused(error)
            return
        now = self._stream.now()
        self._failing_since = min(self._failing_since, now)
        if self.error or not self.is_synced or now - self._failing_since > SILENCE_S:
            self.error = str(error)
        if self._failures > FAILURES_BORNE:
            self._log_once(str(error))
        self._stream.judge()

    def _refused(self, error: KubeError) -> None:
        self.is_absent = isinstance(error, ApiError) and error.not_found
        self.error = self._stream.absence if self.is_absent else str(error)
        self.is_refused = True
        self._log_once(self.error)
        self._stream.judge()

    def _works(self) -> None:
        if self._is_told:
            self._is_told = False
            _log.info("watch works again kind=%s", self._title)
        self.error = ""
        self._stream.judge()

    def _log_once(self, why: str) -> None:
        """Log a failure once until the stream works again."""
        if not self._is_told:
            self._is_told = True
            _log.warning("watch fails kind=%s error=%s", self._title, why)


def _is_refusal(error: KubeError) -> bool:
    """Whether the server refuses the request, so that a quick retry cannot help.

    An outdated version is routine, and credentials are renewed.
    """
    if not isinstance(error, ApiError) or error.transient:
        return False
    return not (error.gone or error.unauthorized)
