"""Somebody who sees to it that nobody is evicted in vain, by what is stored alone.

Whoever is evicted for another one is never evicted for that one again once it went, and it is
dispatched in the end, unless it went away meanwhile: it is deleted before long, or was suspended,
and then in line again like anybody else. No node is in two claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.meddling import STORAGE
from tests.faults.promises import Promises, claim_of

Json = dict[str, Any]
GOES = ("creating", "dispatched")
SOON_S = 120.0
"""Whoever others left for is dispatched by then: that is longer than any spell of a process."""


class Umpire:
    """Watches every status; ``fouls`` are evictions that should not have been."""

    def __init__(self, registry: Registry, promises: Promises) -> None:
        self.fouls: list[str] = []
        self.evictions = 0
        self._promises = promises
        self._store, self._clock = registry.store, registry.clock
        self._names: dict[str, str] = {}  # by uid, of all that ever were
        self._attempts: dict[tuple[str, str], int] = {}  # of the victim, by it and for whom
        self._met: set[tuple[str, str]] = set()  # of these, for whom that one went since
        self._owed: dict[str, tuple[str, float]] = {}  # uid -> a victim that left for it, and when
        registry.store.listen(STORAGE, self._heard)

    def in_vain(self) -> Iterator[str]:
        """At rest: who has left for somebody who does not run."""
        for uid in self._owed:
            if self._might_run(uid):
                yield self._vain(uid)

    def _heard(self, change: Change) -> None:
        obj = change.obj
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        self._names[uid] = name
        dispatch = (obj.get("status") or {}).get("dispatch") or {}
        goes = change.type == "MODIFIED" and dispatch.get("phase") in GOES
        if goes:
            self._met.update(pair for pair in self._attempts if pair[1] == uid)
        if goes or obj["spec"].get("suspend"):
            self._owed.pop(uid, None)
        if change.type == "DELETED" and uid in self._owed:
            if self._clock.monotonic() - self._owed[uid][1] > SOON_S:
                self.fouls.append(self._vain(uid))
        if claim_of(obj) is not None:
            self._compare_claims()
        winner = dispatch.get("preemptor")
        if winner is None or dispatch["phase"] != "undeploying":
            return
        if winner not in self._names:
            self.fouls.append(f"{name} is evicted for nobody: {winner}")
        pair, attempt = (uid, winner), dispatch["attempt"]
        known, self._attempts[pair] = self._attempts.get(pair), attempt
        if pair in self._met and known != attempt:
            self.fouls.append(f"{name} is evicted twice for {self._names[winner]}")
        was = ((change.previous or {}).get("status") or {}).get("dispatch") or {}
        if was.get("phase") != "undeploying":
            self.evictions += 1
            self._owed[winner] = name, self._clock.monotonic()

    def _compare_claims(self) -> None:
        nodes = Counter(n for one in self._promises.standing() for n in claim_of(one)["nodes"])
        if twice := [node for node, claims in nodes.items() if claims > 1]:
            self.fouls.append(f"in two claims: {twice}")

    def _vain(self, uid: str) -> str:
        return f"{self._owed[uid][0]} is evicted for {self._names[uid]}, which was not dispatched"

    def _might_run(self, uid: str) -> bool:
        found = [obj for _, obj in self._store.items(STORAGE) if obj["metadata"]["uid"] == uid]
        return any("deletionTimestamp" not in obj["metadata"] for obj in found)
