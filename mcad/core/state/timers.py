"""What waits for a time: a timer per AppWrapper and purpose, plain wishes, and one wake-up for all.

The controller is told of the earliest instant only, and of the next one when that has come: however
many wait, one wake-up is under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from mcad.core.state.units import SECOND, Duration, Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.state.entry import Entry


class Timer(StrEnum):
    """What a timer of an AppWrapper is for; each runs by itself, whatever the others do."""

    STATUS = "status"  # a status write that was refused is repeated
    STEP = "step"  # a create, deletion or look that failed is repeated
    HOLD = "hold"  # a hold is over
    CEILING = "ceiling"  # its priorityslope has brought it as high as it may climb
    RESTATE = "restate"  # a refusal may be rewritten
    PLACEMENT = "placement"  # pods have been without a node for too long (C6)
    RESERVATION = "reservation"  # what was declared and never came is given up (C4)
    ITEMS = "items"  # an item that no watch has told of is read live (again)
    HEALTH = "health"  # what is broken has been borne for long enough
    LIMIT = "limit"  # it has run for too long, or with too few pods
    KEEP = "keep"  # what failed has been kept for long enough
    PAUSE = "pause"  # the pause after a reset is over
    UNSCHEDULED = "unscheduled"  # pods without a node may be reported (again)
    COUNTS = "counts"  # pod counts have been in status for long enough to be written anew
    TTL = "ttl"  # what succeeded has been kept for long enough
    TOMBSTONE = "tombstone"  # the remains of a deleted AppWrapper are looked at again


HORIZON: Duration = 3600 * SECOND
"""The controller is woken at least this often while anything runs: it keeps what it is asked for,
and a time to live is a week."""

_LINES_MIN = 64

OF_PHASE = frozenset(Timer) - {Timer.STATUS, Timer.COUNTS}
"""Timers that end with the phase in which they were started."""


class Timers:
    """Every timer that runs. One that was stopped or started anew leaves a stale line behind."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """``entries`` are the AppWrappers by uid; timers of those that left it are stale."""
        self._entries = entries
        self._lines: list[tuple[Instant, str, str]] = []
        self._wishes: set[Instant] = set()
        self._woken_at: Instant = 0  # the wake-up under way, 0 if there is none
        self._swept_at = _LINES_MIN  # lines at which stale ones are looked for

    @property
    def lines(self) -> int:
        """How many lines are kept, stale ones included."""
        return len(self._lines)

    def start(self, entry: Entry, timer: Timer, at: Instant) -> None:
        """Let the timer end at this instant; the latest call for it counts."""
        entry.timers[timer] = at
        if len(self._lines) >= self._swept_at:
            self._sweep()
        heappush(self._lines, (at, entry.uid, timer))

    def wish(self, at: Instant) -> None:
        """Wake up at this instant, for none in particular."""
        if at not in self._wishes:
            self._wishes.add(at)
            heappush(self._lines, (at, "", ""))

    def expired(self, now: Instant) -> Iterator[tuple[Entry, Timer]]:
        """The timers that have run out, first to last; not those that an earlier one stopped."""
        if self._woken_at <= now:
            self._woken_at = 0
        lines = []
        while self._lines and self._lines[0][0] <= now:
            lines.append(heappop(self._lines))
        for at, uid, name in lines:
            entry = self._entries.get(uid)
            if entry is None:
                self._wishes.discard(at)
            elif entry.timers.get(name) == at:
                del entry.timers[name]
                yield entry, Timer(name)

    def next_wake_up(self, now: Instant) -> Instant | None:
        """The one wake-up to request, however many timers run (ADR 4); None if that is under way
        already, or if nothing runs."""
        while self._lines and self._is_stale(*self._lines[0]):
            heappop(self._lines)
        if not self._lines:
            return None
        at = min(self._lines[0][0], now + HORIZON)
        if 0 < self._woken_at <= at:
            return None
        self._woken_at = at
        return at

    def _sweep(self) -> None:
        """Drop the stale lines: an AppWrapper that is deleted may have had a week to live."""
        self._lines = [line for line in self._lines if not self._is_stale(*line)]
        heapify(self._lines)
        self._swept_at = max(_LINES_MIN, 2 * len(self._lines))

    def _is_stale(self, at: Instant, uid: str, name: str) -> bool:
        if not uid:
            return False
        entry = self._entries.get(uid)
        return entry is None or entry.timers.get(name) != at

    def check(self) -> None:
        """Each timer that runs has its line; raises ``InvariantViolated``. O(all)."""
        lines = set(self._lines)
        for uid, entry in self._entries.items():
            for name, at in entry.timers.items():
                check((at, uid, name) in lines, "timers-have-lines", f"{entry.title}: {name}")
        for at in self._wishes:
            check((at, "", "") in lines, "wishes-have-lines", str(at))
