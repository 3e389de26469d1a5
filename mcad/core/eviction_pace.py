"""How many AppWrappers may be evicted in a time, on the whole cluster (``maxEvictionsPerMinute``).

A switch that is turned at a restart (quota, preemption, a share) may give many a right to evict at
once; each right is good, and all of them together stop the cluster's work. It is a bucket of as
many evictions as a minute has, which fills evenly (GCRA, ITU-T I.371). A set of victims that is
larger than the bucket is evicted whole when the bucket is full, and the next one waits longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcad.core.units import SECOND, Duration, Instant, format_clock

MINUTE: Duration = 60 * SECOND

_SETTING = "(maxEvictionsPerMinute)"


class Turn(NamedTuple):
    """The preemptor (a uid) that is next, with so many victims, and when that is."""

    preemptor: str
    victims: int
    at: Instant


class EvictionPace:
    """When the next evictions may begin, and for which preemptor."""

    def __init__(self, per_minute: int) -> None:
        """``per_minute`` 0 is no limit."""
        self._per_minute = per_minute
        self._each = MINUTE // per_minute if per_minute else 0
        self._full_at: Instant = 0  # the bucket
        self.turn: Turn | None = None

    def recall(self, evictions: Iterable[Instant]) -> None:
        """Evictions that are on record: a restart does not fill the bucket."""
        for at in sorted(evictions):
            self._full_at = max(self._full_at, at) + self._each

    def may_begin(self, preemptor: str, victims: int, now: Instant) -> bool:
        """Whether so many may be evicted now; if not, the preemptor is next, and none before it."""
        at = self._ready_at(victims)
        self.turn = None if at <= now else Turn(preemptor, victims, at)
        return self.turn is None

    def spend(self, victims: int, now: Instant) -> None:
        """So many are evicted now."""
        self._full_at = max(self._full_at, now) + victims * self._each

    def explain(self, preemptor: str) -> str:
        """What a preemptor that has to wait for its turn is told, "" for all others."""
        if self.turn is None or self.turn.preemptor != preemptor:
            return ""
        what = "eviction is" if self.turn.victims == 1 else f"{self.turn.victims} evictions are"
        return (
            f"Its {what} due at {format_clock(self.turn.at)}: at most {self._per_minute} a minute"
            f" are permitted {_SETTING}."
        )

    def _ready_at(self, victims: int) -> Instant:
        return self._full_at - max(0, MINUTE - victims * self._each)


def tells_of_turn(message: str) -> bool:
    """Whether a message says when evictions are due."""
    return _SETTING in message
