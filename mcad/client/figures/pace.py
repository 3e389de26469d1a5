"""How much of the time figures may cost: the longer they take, the longer the pause after them."""

from __future__ import annotations

from msgspec import Struct


class Pace(Struct, frozen=True):
    """The share of the time that is spent on figures, and the longest pause between them.

    ``max_age_s`` is the age that answers of a dispatcher may have; it lets callers share them.
    """

    share: float
    pause_s_max: float
    max_age_s: int = 0

    def pause_s(self, spent_s: float) -> float:
        """The pause after figures that took so long."""
        return min(spent_s / self.share - spent_s, self.pause_s_max)


LIVELY = Pace(1 / 5, 10.0)
"""For rows that are watched while they are printed, such as ``mcad queue --watch``."""

PATIENT = Pace(1 / 30, 60.0)
"""For a page that stays open all day, by its own CPU time."""

SHARING = Pace(1 / 20, 60.0, 30)
"""For such a page that waits for a dispatcher: pages share the answers."""

AT_ONCE = Pace(1.0, 0.0)
"""For a page whose process does other work, which would count as its own."""
