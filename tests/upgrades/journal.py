"""A journal: every change of the store in the life of a dispatcher, with a mark at each of its
writes. Replayed up to a mark it is what a process leaves behind that is killed there.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path

from mcad.kube.types import Json
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Storage

LEFT_OUT = {("", "events"), ("events.k8s.io", "events")}
"""Kinds that nothing rests on."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A kill point: the write is committed, and the process does not hear of it."""

    request: str  # method and path
    changes: int  # of the journal, up to here
    at_us: int  # wall clock
    since_s: float  # the beginning of the story
    done: int  # acts of users that were done by then
    gist: str  # a digest: two of one gist differ in names and times only


@dataclass(slots=True)
class Journal:
    """Of one story: changes in their order, an object that is deleted by its name alone."""

    changes: list[tuple[str, str, Json]] = field(default_factory=list)  # type, "group/plural", obj
    marks: list[Mark] = field(default_factory=list)

    def keep(self, registry: Registry) -> None:
        """Write down what changes from now on."""
        for storage in sorted({kind.storage for kind in registry.kinds.all()} - LEFT_OUT):
            registry.store.listen(storage, lambda change, at=storage: self._note(at, change))

    def mark(self, request: str, at_us: int, since_s: float, done: int, gist: str) -> None:
        """A write was committed."""
        digest = blake2b(gist.encode(), digest_size=8).hexdigest()
        self.marks.append(Mark(request, len(self.changes), at_us, since_s, done, digest))

    def closed(self) -> Journal:
        """The same without what comes after the last mark."""
        return Journal(self.changes[: self.marks[-1].changes], self.marks)

    def replay(self, registry: Registry, mark: Mark) -> None:
        """Bring an empty store to where it was at a mark."""
        for happened, at, obj in self.changes[: mark.changes]:
            group, _, plural = at.partition("/")
            key = obj["metadata"].get("namespace") or "", obj["metadata"]["name"]
            if happened == "DELETED":
                registry.store.remove((group, plural), key)
            else:
                registry.store.put((group, plural), key, obj)

    def _note(self, storage: Storage, change: Change) -> None:
        obj = change.obj
        if change.type == "DELETED":
            namespace, name = change.key
            obj = {"metadata": {"namespace": namespace, "name": name}}
        self.changes.append((change.type, "/".join(storage), obj))


def write(path: Path, journals: Mapping[str, Journal]) -> None:
    """Those of one version, by story."""
    told = {story: asdict(one) for story, one in journals.items()}
    text = json.dumps(told, separators=(",", ":"), sort_keys=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9))


def read(path: Path) -> dict[str, Journal]:
    """What ``write`` has written."""
    told = json.loads(lzma.decompress(path.read_bytes()))
    return {story: _read(one) for story, one in told.items()}


def _read(told: Json) -> Journal:
    changes = [(happened, at, obj) for happened, at, obj in told["changes"]]
    return Journal(changes, [Mark(**mark) for mark in told["marks"]])
