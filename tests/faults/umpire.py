"""Somebody who sees to it that nobody is evicted in vain, by what is stored alone.

Whoever is evicted for another one is never evicted for that one again, and the other one is
dispatched in the end, if it is there and may run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.meddling import STORAGE

Json = dict[str, Any]
GOES = ("creating", "dispatched")


class Umpire:
    """Watches every status; ``fouls`` are evictions that should not have been."""

    def __init__(self, registry: Registry) -> None:
        self.fouls: list[str] = []
        self.evictions = 0
        self._store = registry.store
        self._names: dict[str, str] = {}  # by uid, of all that ever were
        self._attempts: dict[tuple[str, str], int] = {}  # of the victim, by it and for whom
        self._owed: dict[str, str] = {}  # uid -> the name of a victim that left for it
        registry.store.listen(STORAGE, self._heard)

    def in_vain(self) -> Iterator[str]:
        """At rest: who has left for somebody who does not run."""
        for uid, victim in self._owed.items():
            if self._might_run(uid):
                yield f"{victim} is evicted for {self._names[uid]}, which was not dispatched"

    def _heard(self, change: Change) -> None:
        obj = change.obj
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        self._names[uid] = name
        dispatch = (obj.get("status") or {}).get("dispatch") or {}
        if change.type == "MODIFIED" and dispatch.get("phase") in GOES:
            self._owed.pop(uid, None)
        winner = dispatch.get("preemptor")
        if winner is None or dispatch["phase"] != "undeploying":
            return
        if winner not in self._names:
            self.fouls.append(f"{name} is evicted for nobody: {winner}")
        known = self._attempts.setdefault((uid, winner), dispatch["attempt"])
        if known != dispatch["attempt"]:
            self.fouls.append(f"{name} is evicted twice for {self._names[winner]}")
        was = ((change.previous or {}).get("status") or {}).get("dispatch") or {}
        if was.get("phase") != "undeploying":
            self.evictions += 1
            self._owed[winner] = name

    def _might_run(self, uid: str) -> bool:
        found = [obj for _, obj in self._store.items(STORAGE) if obj["metadata"]["uid"] == uid]
        return any(
            "deletionTimestamp" not in obj["metadata"] and not obj["spec"].get("suspend")
            for obj in found
        )
