"""What the controller keeps of each AppWrapper beside the core: versions and manifests.

It decides nothing. Manifests are compressed text (a dict costs five times as much memory as text),
and of the status only a digest is kept, which is enough to see whether a write would change it.
"""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from msgspec import Struct

from mcad.api.defaults import may_have_defaults
from mcad.api.wire import to_json, without_nulls
from mcad.core.state.model import Workload
from mcad.kube.versions import is_older

Json = dict[str, Any]

PACKING = 1  # the level of zlib: the others save little more, and take longer


@dataclass(slots=True, kw_only=True)
class Versioned:
    """The versions and the status digest of an object whose status the controller writes.

    ``version`` is the latest known resourceVersion: the fence of the next write. Observations
    older than ``floor`` are outdated (protocol P13); it is equal to ``version``, or "" after a list
    began. ``expected`` is the digest of a running write, whose echo may come before its answer.
    """

    version: str
    status_mark: bytes
    expected: bytes = b""
    floor: str = ""

    def precedes(self, version: str) -> bool:
        """Whether an observation of this version is outdated or known."""
        return version == self.version or is_older(version, self.floor)

    def reached(self, version: str) -> None:
        """Remember the latest version."""
        self.version = self.floor = version

    def shows_status(self, status: bytes) -> bool:
        """Whether a status is known or expected."""
        return status in (self.status_mark, self.expected)

    def written(self, version: str, mark: bytes) -> None:
        """Remember the version that our status write returned."""
        if not is_older(version, self.floor):
            self.reached(version)
            self.status_mark, self.expected = mark, b""


class Manifests(Struct, frozen=True):
    """The manifests of an AppWrapper, compressed: they are wanted when it is dispatched, and take
    most of the memory of those that wait. ``may_have_defaults`` is what is asked of all of them."""

    packed: tuple[bytes, ...]
    may_have_defaults: bool

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Self:
        """Compress them, each by itself: they are wanted one by one."""
        packed = tuple(zlib.compress(one, PACKING) for one in texts)
        return cls(packed, may_have_defaults(texts))

    def text(self, item: int) -> bytes:
        """The manifest of an item as compact JSON."""
        return zlib.decompress(self.packed[item])

    def texts(self) -> tuple[bytes, ...]:
        """The manifests of all items."""
        return tuple(map(zlib.decompress, self.packed))


@dataclass(slots=True)
class Reflection(Versioned):
    """One AppWrapper: its workload, manifests and versions, and the fields of its status that are
    not ours: a status is replaced as a whole."""

    workload: Workload
    manifests: Manifests
    spec_mark: bytes
    others: Json = field(default_factory=dict)

    def whole(self, status: Json) -> Json:
        """A status of ours with the fields of others, as it is stored."""
        return {**self.others, **status}

    def shows(self, spec: bytes, status: bytes) -> bool:
        """Whether an observation contains nothing new."""
        return spec == self.spec_mark and self.shows_status(status)


class Mirror:
    """All AppWrappers by uid."""

    def __init__(self) -> None:
        self._seats: dict[str, Reflection] = {}

    def get(self, uid: str) -> Reflection | None:
        """The known AppWrapper, None if it does not exist."""
        return self._seats.get(uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._seats

    def __len__(self) -> int:
        return len(self._seats)

    def all(self) -> Iterator[Reflection]:
        """Every AppWrapper."""
        return iter(self._seats.values())

    def put(self, uid: str, reflection: Reflection) -> None:
        """Store a new or changed AppWrapper."""
        self._seats[uid] = reflection

    def drop(self, uid: str) -> None:
        """Remove a deleted AppWrapper."""
        self._seats.pop(uid, None)

    def written(self, uid: str, version: str, mark: bytes) -> None:
        """Remember the version that our status write returned."""
        seat = self._seats.get(uid)
        if seat is not None:
            seat.written(version, mark)

    def rewind(self, namespace: str) -> None:
        """A list of a namespace, or of all (""), begins: its versions are accepted even if older.

        A consistent list is never older than what was known when it began, unless the server was
        restored from a backup. Our writes during the list are newer.
        """
        for seat in self._seats.values():
            if namespace in ("", seat.workload.namespace):
                seat.floor = ""


def spec_mark(obj: Json) -> bytes:
    """A digest of everything except the status that parsing depends on."""
    metadata = obj["metadata"]
    return _digest(
        [
            metadata.get("generation"),
            metadata.get("deletionTimestamp"),
            metadata.get("labels"),
            metadata.get("annotations"),
            metadata.get("finalizers"),
        ]
    )


def status_mark(status: object) -> bytes:
    """A digest of a status; nulls equal absent fields."""
    if not status or not isinstance(status, dict):
        return _NOTHING
    text = to_json(status)
    return _hash(text) if b"null" not in text else _digest(without_nulls(status))


def _digest(value: object) -> bytes:
    return _hash(to_json(value))


def _hash(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


_NOTHING = _digest({})
