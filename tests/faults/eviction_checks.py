"""No AppWrapper is evicted in vain, by what is stored alone.

The preemptor is dispatched before long, unless others changed something. Only victims that the
settings permit are evicted: each has run for minRunTime, and for twice as long, at least a minute,
with each eviction before. No node is in two reservations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mcad.api.config import Config
from mcad.api.wire import parse_instant
from mcad.core.state.bounds import RUN_TIME_DOUBLED, RUN_TIME_DOUBLES_MAX
from mcad.core.state.units import SECOND
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.edits import STORAGE
from tests.faults.interference import Interference
from tests.faults.reservation_checks import ReservationChecks, dispatch_of, goes, nodes_of

Json = dict[str, Any]
SOON_S = 200.0
"""The preemptor is dispatched by then: that is longer than a spell of a process, and than two
leases that lapse."""
BEHIND_S = 200.0
"""What a dispatcher goes by is at most that old: a spell, a grace, or a gap in a watch."""
NEVER = "workload.codeflare.dev/never-preempt"


class _Rank(NamedTuple):
    """What an AppWrapper was like since then, as far as evictions ask for it."""

    since: float
    priority: int
    never: bool


class EvictionChecks:
    """Watches every status; ``faults`` are evictions that should not have been, and ``cases`` says
    how often what came up."""

    def __init__(
        self,
        registry: Registry,
        reservations: ReservationChecks,
        interference: Interference,
        settings: Sequence[Config],
    ) -> None:
        """``settings`` are those of all lives."""
        self.faults: list[str] = []
        self.cases: Counter[str] = Counter()
        self._reservations, self._interference, self._settings = (
            reservations,
            interference,
            settings,
        )
        self._store, self._clock = registry.store, registry.clock
        self._names: dict[str, str] = {}  # by uid, of all that ever were
        self._ranks: dict[str, list[_Rank]] = {}
        self._twice: dict[str, float] = {}  # node -> since when two reservations have it
        self._owed: dict[str, tuple[str, float]] = {}  # uid -> a victim that left for it, and when
        registry.store.listen(STORAGE, self._heard)

    @property
    def evictions(self) -> int:
        """How many there were."""
        return self.cases["evicted"]

    def in_vain(self) -> Iterator[str]:
        """At rest: victims of preemptors that do not run."""
        for uid in self._owed:
            if self._might_run(uid):
                yield self._vain(uid)

    def _heard(self, change: Change) -> None:
        obj, now = change.obj, self._clock.monotonic()
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        self._names[uid] = name
        self._note_rank(obj)
        if goes(change) or obj["spec"].get("suspend"):
            self._owed.pop(uid, None)
        for winner, (_, since) in list(self._owed.items()):
            if self._interference.since(winner, since):
                del self._owed[winner]
            elif now - since > SOON_S:
                self.faults.append(self._vain(winner))
                del self._owed[winner]
        self._compare_claims()
        winner = dispatch_of(obj).get("preemptor")
        if winner is None or dispatch_of(obj)["phase"] != "undeploying":
            return
        if winner not in self._names:
            self.faults.append(f"{name} is evicted for an unknown preemptor: {winner}")
        if dispatch_of(change.previous).get("phase") != "undeploying":
            self._evicted(obj, winner)

    def _evicted(self, obj: Json, winner: str) -> None:
        reason, name = obj["status"]["eviction"]["reason"], obj["metadata"]["name"]
        self.cases.update(("evicted", f"evicted: {reason}"))
        self._owed[winner] = name, self._clock.monotonic()
        if not any(self._permits(one, obj, winner, reason) for one in self._settings):
            self.faults.append(f"{name} may not be evicted for {self._names[winner]} ({reason})")

    def _permits(self, settings: Config, obj: Json, winner: str, reason: str) -> bool:
        """Whether it might be evicted by these settings; borrowing is not asked here."""
        lately = self._clock.monotonic() - BEHIND_S
        mine = self._ranks_since(obj["metadata"]["uid"], lately)
        ran = self._clock.now_us() - parse_instant(dispatch_of(obj)["intentTime"])
        shortest, before = settings.min_run_time * SECOND, obj["status"]["eviction"]["count"] - 1
        if before:
            doubles = min(before, RUN_TIME_DOUBLES_MAX)
            shortest = max(shortest, RUN_TIME_DOUBLED) * 2**doubles
        if ran < shortest:
            return False
        if settings.never_preempt and all(one.never for one in mine):
            return False
        if reason == "Reclaiming":
            return settings.reclaim and settings.quota_enabled
        highest = max(one.priority for one in self._ranks_since(winner, lately))
        return settings.preemption and min(one.priority for one in mine) < highest

    def _note_rank(self, obj: Json) -> None:
        known = self._ranks.setdefault(obj["metadata"]["uid"], [])
        notes = obj["metadata"].get("annotations") or {}
        priority, never = obj["spec"].get("priority") or 0, notes.get(NEVER) == "true"
        if not known or known[-1][1:] != (priority, never):
            known.append(_Rank(self._clock.monotonic(), priority, never))

    def _ranks_since(self, uid: str, then: float) -> list[_Rank]:
        """What it was like then, and all that it became."""
        known = self._ranks[uid]
        first = max((n for n, one in enumerate(known) if one.since <= then), default=0)
        return known[first:]

    def _compare_claims(self) -> None:
        """A new reservation may be told before the end of the one before, but not for long."""
        nodes = Counter(n for one in self._reservations.standing() for n in nodes_of(one))
        now = self._clock.monotonic()
        self._twice = {
            n: self._twice.get(n, now) for n, reservations in nodes.items() if reservations > 1
        }
        if long := [node for node, since in self._twice.items() if now - since > SOON_S]:
            self.faults.append(f"in two reservations: {long}")

    def _vain(self, uid: str) -> str:
        return f"{self._owed[uid][0]} is evicted for {self._names[uid]}, which was not dispatched"

    def _might_run(self, uid: str) -> bool:
        found = [obj for _, obj in self._store.items(STORAGE) if obj["metadata"]["uid"] == uid]
        return any(
            "deletionTimestamp" not in one["metadata"]
            and not self._interference.is_named_alike(one)
            for one in found
        )
