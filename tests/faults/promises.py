"""Who has a claim, by what is stored alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.api.wire import parse_instant
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.meddling import STORAGE

Json = dict[str, Any]


def claim_of(obj: Json) -> Json | None:
    """What its status says that it is promised."""
    found: Json | None = (obj.get("status") or {}).get("claim")
    return found


class Promises:
    """Watches every status.

    A claim stands until its deadline, or an edit of whoever has it. Both may end it before its
    status says so: what others do from then on is not held against them.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: dict[str, tuple[str, int]] = {}  # uid -> since when, and of which generation
        registry.store.listen(STORAGE, self._heard)

    def standing(self) -> Iterator[Json]:
        """The AppWrappers with a claim."""
        now = self._registry.clock.now_us()
        for _, obj in self._registry.store.items(STORAGE):
            claim, meta = claim_of(obj), obj["metadata"]
            if claim is None or parse_instant(claim["until"]) <= now:
                continue
            if self._made[meta["uid"]] == (claim["since"], meta["generation"]):
                yield obj

    def _heard(self, change: Change) -> None:
        obj, claim = change.obj, claim_of(change.obj)
        uid, generation = obj["metadata"]["uid"], obj["metadata"]["generation"]
        if claim is not None and self._made.get(uid, ("", 0))[0] != claim["since"]:
            self._made[uid] = claim["since"], generation
