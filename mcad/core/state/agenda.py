"""What the next passes look at, and when the next one is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcad.core.state.bounds import LOOKS, Look
from mcad.core.state.timers import Timer, Timers
from mcad.core.state.units import Duration, Instant

if TYPE_CHECKING:
    from mcad.core.state.entry import Entry


class Agenda:
    """The time of this step, the timers, and what observations leave for the next pass (R5).

    ``to_recover`` (attempts of an earlier leader), ``to_report`` (why it waits), ``to_judge`` (its
    objects and pods), ``to_resume`` (after a reset) and ``to_settle`` (its status) are ordered sets
    (dicts of None) of uids of AppWrappers.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.now: Instant = 0
        self.timers = Timers(entries)
        self.looked_at: dict[Look, Instant] = {}
        self.to_recover: dict[str, None] = {}
        self.to_report: dict[str, None] = {}
        self.to_judge: dict[str, None] = {}
        self.to_resume: dict[str, None] = {}
        self.to_settle: dict[str, None] = {}

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

    def is_time_for(self, look: Look) -> bool:
        """Whether it is time for this periodic look; if not, request a pass for when it is."""
        due_at = self.looked_at.get(look, 0) + LOOKS[look]
        if self.now < due_at:
            self.wake_at(due_at)
            return False
        self.looked_at[look] = self.now
        return True
