"""Templates that a StatefulSet or a DaemonSet has had, kept as ControllerRevisions.

After ``pkg/controller/history`` and ``pkg/controller/daemon/update.go``.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.claims import claim
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.numbers import hash_of
from mcad.sim.controllers.pods import annotations_of, labels_of, reference_to
from mcad.sim.failures import Failure
from mcad.sim.registry import key_of

Json = dict[str, Any]

_NAME_MAX = 223
_TRIES = 100


def data_of(owner: Json) -> Json:
    """What is kept of an owner: a strategic merge patch that restores its template."""
    return {"spec": {"template": (owner["spec"].get("template") or {}) | {"$patch": "replace"}}}


def template_of(revision: Json) -> Json:
    """The template that a revision restores."""
    template = dict(((revision.get("data") or {}).get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    return template


class Revisions:
    """The history of owners of one kind."""

    def __init__(self, index: OwnedIndex, hash_label: str) -> None:
        """``index`` is that of ControllerRevisions; ``hash_label`` is put on new ones."""
        self.index = index
        self._label = hash_label

    def of(self, owner: Json) -> list[Json]:
        """All of this owner, the latest last."""
        found = claim(self.index, owner, owner["spec"].get("selector"))
        return sorted(found, key=_order)

    def hash(self, revision: Json) -> str:
        """The hash that its label says."""
        return labels_of(revision).get(self._label, "")

    def current(self, owner: Json, known: list[Json]) -> tuple[Json, int]:
        """The revision of the present template, made or moved to the end if need be.

        With it the number of names that were taken so far; raises Failure.
        """
        collisions = (owner.get("status") or {}).get("collisionCount") or 0
        data, number = data_of(owner), known[-1]["revision"] + 1 if known else 1
        equal = [one for one in known if one.get("data") == data]
        if equal and equal[-1] is known[-1]:
            return equal[-1], collisions
        if equal:
            moved = self.index.registry.patch(
                self.index.kind, key_of(equal[-1]), lambda live: live | {"revision": number}
            )
            return moved, collisions
        return self._create(owner, data, number, collisions)

    def _create(self, owner: Json, data: Json, number: int, collisions: int) -> tuple[Json, int]:
        registry, namespace = self.index.registry, owner["metadata"]["namespace"]
        for tried in range(collisions, collisions + _TRIES):
            hashed = hash_of(data, tried)
            name = f"{owner['metadata']['name'][:_NAME_MAX]}-{hashed}"
            labels = labels_of(owner["spec"].get("template") or {})
            metadata = {
                "name": name,
                "labels": labels | {self._label: hashed},
                "ownerReferences": [reference_to(owner)],
            }
            if annotations_of(owner):
                metadata["annotations"] = annotations_of(owner)
            body = {"metadata": metadata, "data": data, "revision": number}
            try:
                return registry.create(self.index.kind, namespace, body), tried
            except Failure as failure:
                if failure.reason != "AlreadyExists":
                    raise
                there = registry.get(self.index.kind, (namespace, name))
                if there.get("data") == data:
                    return there, tried
        raise RuntimeError(f"{_TRIES} names in a row are taken")  # pragma: no cover - 32-bit hashes

    def truncate(self, owner: Json, known: list[Json], live: set[str]) -> None:
        """Delete the oldest beyond ``revisionHistoryLimit``, but none whose name is ``live``."""
        limit: int = owner["spec"].get("revisionHistoryLimit", 10)
        dead = [one for one in known if one["metadata"]["name"] not in live]
        for one in dead[: max(len(dead) - limit, 0)]:
            self.index.registry.delete(self.index.kind, key_of(one))


def _order(revision: Json) -> tuple[int, str, str]:
    metadata = revision["metadata"]
    return revision.get("revision", 0), metadata["creationTimestamp"], metadata["name"]
