"""What is written to the status of each QuotaSubtree, and when each tree has its turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.state.bounds import QUOTA_INTERVAL, Tries
from mcad.core.state.quota_records import QuotaView
from mcad.core.state.units import Instant


@dataclass(slots=True)
class QuotaWrites:
    """One QuotaSubtree: what its status shows as far as we know, and what is being written."""

    shown: QuotaView | None = None
    flying: QuotaView | None = None
    serial: int = 0
    not_before: Instant = 0
    is_stale: bool = False  # there may be something else to say since it was written
    tries: Tries = field(default_factory=Tries)


class QuotaStatuses:
    """The writes of all QuotaSubtrees by uid, and when each tree is due."""

    def __init__(self) -> None:
        self.writes: dict[str, QuotaWrites] = {}
        self._due: dict[str, Instant] = {}
        self._not_before: dict[str, Instant] = {}

    def want(self, tree: str, at: Instant = 0) -> None:
        """The tree may have something to report, from this instant on."""
        self._due[tree] = min(at, self._due.get(tree, at))

    def next(self) -> tuple[Instant, str] | None:
        """The tree whose turn it is, and from when on."""
        turns = ((max(at, self._not_before.get(name, 0)), name) for name, at in self._due.items())
        return min(turns, default=None)

    def has_its_say(self, tree: str, now: Instant, *, exists: bool) -> None:
        """The tree reports now; one that still ``exists`` may do so again later."""
        del self._due[tree]
        self._not_before.pop(tree, None)
        if exists:
            self._not_before[tree] = now + QUOTA_INTERVAL
