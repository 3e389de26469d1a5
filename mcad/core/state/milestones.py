"""What has happened to AppWrappers in a step, for figures: no decision rests on it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import Next


class Milestone(StrEnum):
    """What was passed."""

    SEEN = "seen"  # it became known, in whichever phase its status says
    MOVED = "moved"  # its phase changed
    PODS_READY = "pods-ready"  # it runs, and as many pods run or have succeeded as it has
    FORGOTTEN = "forgotten"  # it is not known any more, or is about to be read anew


class Passed(NamedTuple):
    """One milestone of an AppWrapper. ``before`` and ``after`` are phases, equal if it did not
    move."""

    milestone: Milestone
    entry: Entry
    before: Phase
    after: Phase


_UNDER_WAY = frozenset({Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING, Phase.KEEPING})

PENDING = frozenset({Phase.WAITING, Phase.INTENDING, Phase.PAUSING})
"""Phases without an attempt on record that is under way, of AppWrappers that have not ended."""


def is_under_way(entry: Entry, phase: Phase) -> bool:
    """Whether an attempt is under way in this phase: recorded, and not over. Of one that was
    finished, the teardown after its time to live is not."""
    if phase in TEARING_DOWN:
        return entry.record.next is not Next.COMPLETED
    return phase in _UNDER_WAY
