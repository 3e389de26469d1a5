"""The work of the next passes, and when the next pass is due: a timer per AppWrapper and purpose,
plain wishes, and one wake-up for all.

The controller knows only the earliest instant, and the next one when that has come: one wake-up is
pending for any number of timers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import islice
from operator import itemgetter
from zlib import crc32

from mcad.core.state.bounds import LOOKS, TIMERS_PER_PASS, WORK_PER_PASS, Look
from mcad.core.state.entry import Entry
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration, Instant
from mcad.core.state.violations import check

HORIZON: Duration = 3600 * SECOND
"""The controller is woken at least this often while a timer runs: it keeps every request, and a
time to live is a week."""

_LINES_MIN = 64

_HEAPS = 8
"""Timers are kept in this many heaps by the uid of their AppWrapper, so that a sweep of stale lines
covers an eighth of them at a time: each of 100,000 AppWrappers may have several."""

_Line = tuple[Instant, str, str]


class Timers:
    """All running timers. A timer that was stopped or started anew leaves a stale line behind."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """``entries`` are the AppWrappers by uid; timers of removed AppWrappers are stale."""
        self._entries = entries
        self._heaps: list[list[_Line]] = [[] for _ in range(_HEAPS)]
        self._wishes: set[Instant] = set()
        self._woken_at: Instant = 0  # the pending wake-up, 0 if there is none
        self._may_be_earlier = False  # whether timers started since may end before the wake-up
        # The lengths at which heaps are swept: they differ, so that no two are swept together.
        self._swept_at = [_LINES_MIN + _LINES_MIN * number // _HEAPS for number in range(_HEAPS)]

    @property
    def lines(self) -> int:
        """How many lines are kept, including stale lines."""
        return sum(map(len, self._heaps))

    def start(self, entry: Entry, timer: Timer, at: Instant) -> None:
        """Let the timer end at this instant; the latest call for a timer counts."""
        entry.timers[timer] = at
        self._may_be_earlier = True
        number = crc32(entry.uid.encode()) % _HEAPS
        if len(self._heaps[number]) >= self._swept_at[number]:
            self._sweep(number)
        heappush(self._heaps[number], (at, entry.uid, timer))

    def wish(self, at: Instant) -> None:
        """Wake up at this instant, for no timer in particular."""
        if at not in self._wishes:
            self._may_be_earlier = True
            self._wishes.add(at)
            heappush(self._heaps[0], (at, "", ""))

    def expired(self, now: Instant) -> Iterator[tuple[Entry, Timer]]:
        """The timers that have run out, first to last, without timers stopped by an earlier one.
        The next pass takes the rest after ``TIMERS_PER_PASS``."""
        if self._woken_at <= now:
            self._woken_at, self._may_be_earlier = 0, True
        lines: list[_Line] = []
        while (heap := self._next()) and heap[0][0] <= now and len(lines) < TIMERS_PER_PASS:
            lines.append(heappop(heap))
        for at, uid, name in lines:
            entry = self._entries.get(uid)
            if entry is None:
                self._wishes.discard(at)
            elif entry.timers.get(name) == at:
                del entry.timers[name]
                yield entry, Timer(name)

    def _next(self) -> list[_Line]:
        """The heap with the first line; an empty one if there is no line."""
        return min(filter(None, self._heaps), key=itemgetter(0), default=[])

    def next_wake_up(self, now: Instant) -> Instant | None:
        """The one wake-up to request for all timers (ADR 4); None if it is pending already, or if
        no timer runs."""
        if not self._may_be_earlier:
            return None
        self._may_be_earlier = False
        while (heap := self._next()) and self._is_stale(*heap[0]):
            heappop(heap)
        if not heap:
            return None
        at = min(heap[0][0], now + HORIZON)
        if 0 < self._woken_at <= at:
            return None
        self._woken_at = at
        return at

    def _sweep(self, number: int) -> None:
        """Drop the stale lines: a deleted AppWrapper may have had a week to live."""
        heap = [line for line in self._heaps[number] if not self._is_stale(*line)]
        heapify(heap)
        self._heaps[number] = heap
        self._swept_at[number] = max(self._swept_at[number], 2 * len(heap))

    def _is_stale(self, at: Instant, uid: str, name: str) -> bool:
        if not uid:
            return False
        entry = self._entries.get(uid)
        return entry is None or entry.timers.get(name) != at

    def check(self) -> None:
        """Check that each running timer has its line; raises ``InvariantViolated``. O(all)."""
        lines = {line for heap in self._heaps for line in heap}
        for uid, entry in self._entries.items():
            for name, at in entry.timers.items():
                check((at, uid, name) in lines, "timers-have-lines", f"{entry.title}: {name}")
        for at in self._wishes:
            check((at, "", "") in lines, "wishes-have-lines", str(at))


class Agenda:
    """The time of this step, the timers, and the work that observations leave for the next pass
    (R5).

    ``to_recover`` (attempts of an earlier leader; ``recovering`` are the sorted ones), ``to_rank``
    (its place in quota trees), ``to_report`` (why it waits), ``to_report_later`` (the same, with a
    lasting verdict), ``to_judge`` (its objects and pods), ``to_resume`` (after a reset) and
    ``to_settle`` (its status) are ordered sets (dicts of None) of uids of AppWrappers. ``spent`` is
    the work of this pass so far, in steps of one to five microseconds.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.now: Instant = 0
        self.spent = 0
        self.timers = Timers(entries)
        self.looked_at: dict[Look, Instant] = {}
        self.to_recover: dict[str, None] = {}
        self.recovering: dict[str, None] = {}
        self.to_rank: dict[str, None] = {}
        self.to_report: dict[str, None] = {}
        self.to_report_later: dict[str, None] = {}
        self.to_judge: dict[str, None] = {}
        self.to_resume: dict[str, None] = {}
        self.to_settle: dict[str, None] = {}

    @property
    def is_behind(self) -> bool:
        """Whether some observations are not taken into account: nothing is judged or dispatched."""
        return bool(self.recovering or self.to_rank)

    @property
    def is_spent(self) -> bool:
        """Whether this pass has done its work: long steps are left for the next pass."""
        return self.spent >= WORK_PER_PASS

    def has_work_for(self, steps: int, after: int = 0) -> bool:
        """Whether this pass has work left for ``steps`` after ``after`` other steps. A step longer
        than a whole pass may begin while half of the pass is left."""
        return self.spent + after + min(steps, WORK_PER_PASS // 2) <= WORK_PER_PASS

    def forget(self, uid: str) -> None:
        """Drop all work for this AppWrapper."""
        for uids in (
            *(self.to_recover, self.recovering, self.to_rank, self.to_report),
            *(self.to_report_later, self.to_judge, self.to_resume, self.to_settle),
        ):
            uids.pop(uid, None)

    def take(self, uids: dict[str, None], most: int) -> list[str]:
        """Take the first members out of an ordered set; the rest is for the next pass."""
        taken = list(islice(uids, most))
        for uid in taken:
            del uids[uid]
        if uids:
            self.carry_over()
        return taken

    def carry_over(self) -> None:
        """Request another pass at once. It comes a microsecond later, because timers of this
        instant may still come, and all that run out by then are handled together."""
        self.wake_at(self.now + 1)

    def wake_in(self, entry: Entry, timer: Timer, delay: Duration) -> None:
        """Start a timer of the AppWrapper."""
        self.timers.start(entry, timer, self.now + delay)

    def set_timer(self, entry: Entry, timer: Timer, at: Instant) -> None:
        """Let a timer of the AppWrapper end at this instant, now if that is past; 0 stops it."""
        if not at:
            entry.stop(timer)
        elif entry.timers.get(timer) != at:
            self.timers.start(entry, timer, max(at, self.now))

    def wake_at(self, at: Instant) -> None:
        """Request a pass at this instant."""
        self.timers.wish(at)

    def look_again(self, look: Look) -> None:
        """Note an interrupted look: the next pass goes on with it."""
        self.looked_at[look] = 0
        self.carry_over()

    def is_time_for(self, look: Look) -> bool:
        """Whether it is time for this periodic look; if not, request a pass for that time."""
        due_at = self.looked_at.get(look, 0) + LOOKS[look]
        if self.now < due_at:
            self.wake_at(due_at)
            return False
        self.looked_at[look] = self.now
        return True
