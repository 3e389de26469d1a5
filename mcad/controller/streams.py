"""What a reflector tells, split into its uses: objects to the controller, health to the barrier."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mcad.kube.errors import KubeError

T = TypeVar("T")

SILENCE_S = 75.0  # bookmarks come every 60 s; the server keeps events for 75 s (protocol P14)


@dataclass(slots=True)
class Stream(Generic[T]):
    """One watched kind: a Sink that remembers how it fares.

    ``batch`` takes the objects of the first list at once, because only a whole list can be put in
    order; after that every object goes to ``seen``. ``changed`` is called when the state of the
    stream itself changes.
    """

    name: str
    seen: Callable[[T], None]
    lost: Callable[[str], None]
    changed: Callable[["Stream[T]"], None]
    batch: Callable[[list[T]], None] | None = None
    is_synced: bool = False
    error: str = ""
    alive_at: float = float("-inf")
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    _first: list[T] = field(default_factory=list)

    def upserted(self, obj: T) -> None:
        """An object is new or changed."""
        self.counts["upserted"] += 1
        if self.batch is not None and not self.is_synced:
            self._first.append(obj)
        else:
            self.seen(obj)

    def gone(self, uid: str, namespace: str, name: str, last: T | None) -> None:  # noqa: ARG002
        """An object vanished."""
        self.counts["gone"] += 1
        self.lost(uid)

    def synced(self, *, relist: bool) -> None:
        """A list is complete."""
        self.counts["relists" if relist else "lists"] += 1
        if not self.is_synced and self.batch is not None:
            self.batch(self._first)
            self._first = []
        before = (self.is_synced, self.error)
        self.is_synced, self.error = True, ""
        if before != (True, ""):
            self.changed(self)

    def alive(self, at: float) -> None:
        """Something came from the server."""
        self.alive_at = at

    def failing(self, error: KubeError) -> None:
        """A list or watch failed and will be tried again."""
        self.counts["errors"] += 1
        if not self.is_synced and str(error) != self.error:
            self.error = str(error)
            self.changed(self)

    def is_silent(self, now: float) -> bool:
        """Whether nothing came for so long that it may be a dead connection."""
        return now - self.alive_at > SILENCE_S


_COUNTED = ("upserted", "gone", "lists", "relists", "errors")
