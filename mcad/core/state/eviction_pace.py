"""How many AppWrappers may be evicted in a time, on the whole cluster (``maxEvictionsPerMinute``).

A setting that changes at a restart (quota, preemption, a share) may give many AppWrappers a right
to evict at once. A token bucket of one minute bounds that: it fills evenly (GCRA, ITU-T I.371). A
set of victims that is larger than the bucket is evicted whole when the bucket is full, and the next
set waits longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcad.core.state.units import SECOND, Duration, Instant, format_clock

MINUTE: Duration = 60 * SECOND

_SETTING = "(maxEvictionsPerMinute)"


class NextEvictions(NamedTuple):
    """The next preemptor (a uid), how many victims it has, and when they are due."""

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
        self.next: NextEvictions | None = None

    def recall(self, evictions: Iterable[Instant]) -> None:
        """Count recorded evictions: a restart does not fill the bucket."""
        for at in sorted(evictions):
            self._full_at = max(self._full_at, at) + self._each

    def may_begin(self, preemptor: str, victims: int, now: Instant) -> bool:
        """Whether this many victims may be evicted now; if not, the preemptor is next."""
        at = self._full_at - max(0, MINUTE - victims * self._each)
        self.next = None if at <= now else NextEvictions(preemptor, victims, at)
        return self.next is None

    def spend(self, victims: int, now: Instant) -> None:
        """Count the evictions of this many victims."""
        self._full_at = max(self._full_at, now) + victims * self._each

    def explain(self, preemptor: str) -> str:
        """The message for the next preemptor, "" for all others."""
        if self.next is None or self.next.preemptor != preemptor:
            return ""
        what = "eviction is" if self.next.victims == 1 else f"{self.next.victims} evictions are"
        return (
            f"Its {what} due at {format_clock(self.next.at)}: at most {self._per_minute} a minute"
            f" are permitted {_SETTING}."
        )


def reports_due_evictions(message: str) -> bool:
    """Whether a message says when evictions are due."""
    return _SETTING in message
