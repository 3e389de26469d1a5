"""The former versions, one for each shape of what is stored, and the stories that they lived.

A story that a version cannot tell as the present one does (no resets, no quota trees, no evictions
yet) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.faults.scenarios import (
    BORROWED,
    COMPLETED,
    DELETED,
    IN_TURN,
    KEPT,
    KEPT_AND_CLEARED,
    LATE,
    PREEMPTED,
    PROTECTED,
    RECLAIMED,
    REQUEUED,
    RESET,
    ROLLED_BACK,
    SUSPENDED,
)

JOURNALS = Path(__file__).parent / "journals"

STORIES = {
    "in-turn": IN_TURN,
    "completed": COMPLETED,
    "rolled-back": ROLLED_BACK,
    "deleted": DELETED,
    "suspended": SUSPENDED,
    "finalizer": KEPT,
    "reset": RESET,
    "late": LATE,
    "kept": KEPT_AND_CLEARED,
    "requeued": REQUEUED,
    "borrowed": BORROWED,
    "preempted": PREEMPTED,
    "reclaimed": RECLAIMED,
    "protected": PROTECTED,
}


@dataclass(frozen=True, slots=True)
class Version:
    """A version that people may upgrade from."""

    name: str
    commit: str  # the last one that stored this shape
    stored: str  # what came with it
    stories: tuple[str, ...]
    has_lease: bool = True

    @property
    def journal(self) -> Path:
        """Where its journals are."""
        return JOURNALS / f"{self.name}.xz"


PATIENT = ("in-turn", "completed", "rolled-back")
"""Stories in which users may wait until a Lease is over."""

_FIRST = ("in-turn", "completed", "rolled-back", "deleted", "suspended", "finalizer")
_LIVES = (*_FIRST, "reset", "late", "kept", "requeued")
_SHARES = (*_LIVES, "borrowed")
_EVICTIONS = (*_SHARES, "preempted", "reclaimed", "protected")

VERSIONS = (
    Version("1-intent", "679795a", "intent, inventory, epoch; no Lease", _FIRST, has_lease=False),
    Version("2-lease", "4e2afe6", "a Lease", _FIRST),
    Version("3-lives", "442775d", "phaseTime, finished, resettingCount", _LIVES),
    Version("4-quota", "5f1bb78", "quota, pendingpodconditions", _SHARES),
    Version("5-claims", "bbe74a8", "claim, eviction, preemptor", _EVICTIONS),
    Version("6-format", "57989d3", "format", _EVICTIONS),
    Version("7-limit", "4c0ef99", "limitSince", _EVICTIONS),
    Version("8-reservation", "2a282b7b", "reservation instead of claim, domains", _EVICTIONS),
)
