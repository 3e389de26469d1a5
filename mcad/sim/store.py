"""Objects, their versions, and the history that watches read.

One counter numbers every write of every kind, as etcd's revision does. Objects are never changed
in place, so an event and the store may share them, and a watcher needs no queue of its own: it
reads the history from where it stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from sortedcontainers import SortedDict

from mcad.kube.types import Json

Storage = tuple[str, str]  # group, plural
Key = tuple[str, str]  # namespace ("" for cluster-scoped kinds), name
EventType = Literal["ADDED", "MODIFIED", "DELETED"]

HISTORY = 20_000  # events kept per kind; a watch from before that is answered with 410
LINES_KEPT = 1_000  # of these, the encoded form that watches share


@dataclass(frozen=True, slots=True)
class Change:
    """One write. ``obj`` of a DELETED carries the version of the deletion."""

    version: int
    type: EventType
    key: Key
    obj: Json
    previous: Json | None
    encoded: dict[object, bytes] = field(default_factory=dict, compare=False)  # see server.py


Listener = Callable[[Change], None]


class TooOld(Exception):  # noqa: N818 - the words of the API
    """The history does not reach back that far."""


class _Shelf:
    """All of one kind."""

    def __init__(self, history: int) -> None:
        self.objects: SortedDict[Key, Json] = SortedDict()
        self.history: deque[Change] = deque(maxlen=history)
        self.first = 0  # position of the oldest change that is kept, counted from the beginning
        self.forgotten = 0  # version of the youngest change that is not kept any more
        self.listeners: list[Listener] = []

    def append(self, change: Change) -> None:
        if len(self.history) == self.history.maxlen:
            self.forgotten = self.history[0].version
            self.first += 1
        self.history.append(change)
        if len(self.history) > LINES_KEPT:
            self.history[-LINES_KEPT].encoded.clear()  # a late reader encodes it again
        for listener in tuple(self.listeners):
            listener(change)

    def forget_until(self, version: int) -> None:
        while self.history and self.history[0].version <= version:
            self.history.popleft()
            self.first += 1
        self.forgotten = max(self.forgotten, version)


class Store:
    """The objects of all kinds, and the history of their changes."""

    def __init__(self, history: int = HISTORY) -> None:
        """``history`` is in changes per kind."""
        self.version = 1
        self._history = history
        self._shelves: dict[Storage, _Shelf] = {}

    def get(self, storage: Storage, key: Key) -> Json | None:
        """The object, not to be changed."""
        obj: Json | None = self._shelf(storage).objects.get(key)
        return obj

    def items(
        self, storage: Storage, namespace: str | None = None, after: Key | None = None
    ) -> Iterator[tuple[Key, Json]]:
        """Objects in the order of namespace and name, those behind ``after`` only."""
        objects = self._shelf(storage).objects
        start = (namespace, "") if namespace else None
        if after is not None:
            start = (after[0], after[1] + "\0")
        for key in objects.irange(start):
            if namespace and key[0] != namespace:
                return
            yield key, objects[key]

    def snapshot(
        self, storage: Storage, version: int, namespace: str | None = None, after: Key | None = None
    ) -> Iterator[tuple[Key, Json]]:
        """``items`` as they were at ``version``; raises TooOld.

        The later pages of a list, and reads of a stale server, are answered with it.
        """
        shelf = self._shelf(storage)
        if version < shelf.forgotten:
            raise TooOld(f"too old resource version: {version} ({shelf.forgotten})")
        before: dict[Key, Json | None] = {}
        for change in reversed(shelf.history):
            if change.version <= version:
                break
            before[change.key] = change.previous
        if not before:
            yield from self.items(storage, namespace, after)
            return
        present = dict(self.items(storage, namespace, after))
        for key, obj in before.items():
            in_range = not (namespace and key[0] != namespace) and not (after and key <= after)
            if obj is None:
                present.pop(key, None)
            elif in_range:
                present[key] = obj
        yield from sorted(present.items(), key=lambda item: item[0])

    def count(self, storage: Storage) -> int:
        return len(self._shelf(storage).objects)

    def put(self, storage: Storage, key: Key, obj: Json) -> Json:
        """Write; the result is ``obj`` with its new ``metadata.resourceVersion``."""
        shelf = self._shelf(storage)
        previous = shelf.objects.get(key)
        written = self._stamp(obj)
        shelf.objects[key] = written
        kind: EventType = "ADDED" if previous is None else "MODIFIED"
        shelf.append(Change(self.version, kind, key, written, previous))
        return written

    def remove(self, storage: Storage, key: Key) -> Json:
        """Delete; the result is what was there, with the new version."""
        shelf = self._shelf(storage)
        previous = shelf.objects.pop(key)
        written = self._stamp(previous)
        shelf.append(Change(self.version, "DELETED", key, written, previous))
        return written

    def recast(self, storage: Storage, change: Callable[[Json], Json]) -> None:
        """Let all objects of a kind be read differently from now on; no write, no event."""
        objects = self._shelf(storage).objects
        for key, obj in objects.items():
            objects[key] = change(obj)

    def listen(self, storage: Storage, listener: Listener) -> Callable[[], None]:
        """Call back at every change, within the write; the result ends it."""
        listeners = self._shelf(storage).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def position(self, storage: Storage, version: int) -> int:
        """Where in the history a watch from behind ``version`` begins; raises TooOld."""
        shelf = self._shelf(storage)
        if version < shelf.forgotten:
            raise TooOld(f"too old resource version: {version} ({shelf.forgotten})")
        later = 0
        for change in reversed(shelf.history):
            if change.version <= version:
                break
            later += 1
        return shelf.first + len(shelf.history) - later

    def changes(self, storage: Storage, position: int) -> tuple[list[Change], int]:
        """The changes from ``position`` on, and the position behind them; raises TooOld."""
        shelf = self._shelf(storage)
        end = shelf.first + len(shelf.history)
        if position < shelf.first:
            raise TooOld(f"too old resource version: {shelf.forgotten}")
        if position == end:
            return [], end
        if end - position == 1:  # islice would walk the whole history for the one that is new
            return [shelf.history[-1]], end
        newest_first = islice(reversed(shelf.history), end - position)
        return list(newest_first)[::-1], end

    def compact(self) -> None:
        """Forget all history, as etcd does every five minutes; watches from before get a 410."""
        for shelf in self._shelves.values():
            shelf.forget_until(self.version)

    def _shelf(self, storage: Storage) -> _Shelf:
        shelf = self._shelves.get(storage)
        if shelf is None:
            shelf = self._shelves[storage] = _Shelf(self._history)
        return shelf

    def _stamp(self, obj: Json) -> Json:
        self.version += 1
        metadata = obj["metadata"] | {"resourceVersion": str(self.version)}
        return obj | {"metadata": metadata}
