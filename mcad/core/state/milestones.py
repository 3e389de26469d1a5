"""The milestones that AppWrappers pass in a step, for figures: no decision rests on them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import Next


class Milestone(StrEnum):
    """The kinds of milestones."""

    SEEN = "seen"  # it became known, in the phase of its status
    MOVED = "moved"  # its phase changed
    PODS_READY = "pods-ready"  # it runs, and all of its pods run or have succeeded
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
"""Phases of AppWrappers that have not ended, without an attempt in progress on record."""


def is_under_way(entry: Entry, phase: Phase) -> bool:
    """Whether an attempt is in progress in this phase: recorded, and not over. The teardown of a
    finished attempt after its time to live does not count."""
    if phase in TEARING_DOWN:
        return entry.record.next is not Next.COMPLETED
    return phase in _UNDER_WAY
