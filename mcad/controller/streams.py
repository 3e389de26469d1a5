"""What a reflector tells, split into its uses: objects to the controller, health to the barrier."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mcad.kube.errors import KubeError

T = TypeVar("T")

_COUNTED = ("upserted", "gone", "lists", "relists", "errors")

_log = logging.getLogger(__name__)

FAILURES_BORNE = 1  # a connection breaks now and then, and the next one is there at once
SILENCE_S = 75.0  # bookmarks come every 60 s; the server keeps events for 75 s (protocol P14)


@dataclass(slots=True, eq=False)
class Stream(Generic[T]):
    """One watched kind: where its objects go, and how it fares.

    It may be watched in parts (one per namespace) and is synced when all of them are. ``batch``
    takes the objects of the first lists at once, because only a whole list can be put in order;
    after that every object goes to ``seen``. ``changed`` is called when the stream becomes synced
    or fails to.
    """

    name: str
    seen: Callable[[T], None]
    lost: Callable[[str], None]
    changed: Callable[["Stream[T]"], None]
    batch: Callable[[list[T]], None] | None = None
    is_synced: bool = False
    error: str = ""
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    _parts: list["Part[T]"] = field(default_factory=list)
    _first: list[T] = field(default_factory=list)

    def part(self) -> "Part[T]":
        """A sink for one more reflector of this kind; all are made before the first runs."""
        part = Part(self)
        self._parts.append(part)
        return part

    def is_silent(self, now: float) -> bool:
        """Whether nothing came for so long that it may be a dead connection."""
        return now - self.alive_at > SILENCE_S

    @property
    def alive_at(self) -> float:
        """When every part had a sign of life, in monotonic seconds."""
        return min((part.alive_at for part in self._parts), default=float("-inf"))

    def take(self, obj: T) -> None:
        """An object is new or changed."""
        if self.batch is not None and not self.is_synced:
            self._first.append(obj)
        else:
            self.seen(obj)

    def judge(self) -> None:
        """Look whether the stream has become synced, or fails."""
        before = (self.is_synced, self.error)
        errors = [part.error for part in self._parts if part.error and not part.is_synced]
        self.error = errors[0] if errors else ""
        if not self.is_synced and all(part.is_synced for part in self._parts):
            self._sync()
        if before != (self.is_synced, self.error):
            self.changed(self)

    def _sync(self) -> None:
        if self.batch is not None:
            self.batch(self._first)
            self._first = []
        self.is_synced = True


class Part(Generic[T]):
    """The sink of one reflector."""

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream
        self.is_synced = False
        self.error = ""
        self.alive_at = float("-inf")
        self._failures = 0  # in a row, without a sign of life in between

    def upserted(self, obj: T) -> None:
        """An object is new or changed."""
        self._stream.counts["upserted"] += 1
        self._stream.take(obj)

    def gone(self, uid: str, namespace: str, name: str, last: T | None) -> None:  # noqa: ARG002
        """An object vanished."""
        self._stream.counts["gone"] += 1
        self._stream.lost(uid)

    def synced(self, *, relist: bool) -> None:
        """A list is complete."""
        self._stream.counts["relists" if relist else "lists"] += 1
        self.is_synced, self.error = True, ""
        self._stream.judge()

    def alive(self, at: float) -> None:
        """Something came from the server."""
        self.alive_at = at
        if self.is_synced and self._failures > FAILURES_BORNE:
            _log.info("watch works again kind=%s", self._stream.name)
        self._failures = 0

    def failing(self, error: KubeError) -> None:
        """A list or watch failed and will be tried again; said once until it works again.

        Before the first list is complete, that is for ``changed`` to tell.
        """
        self._stream.counts["errors"] += 1
        self.error = str(error)
        self._failures += 1
        if self.is_synced and self._failures == FAILURES_BORNE + 1:
            _log.warning("watch fails kind=%s error=%s", self._stream.name, error)
        self._stream.judge()
