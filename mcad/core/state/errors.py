"""Errors of the dispatcher itself, as the steps find them (internal_errors.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.state.entry import Entry
from mcad.core.state.units import Instant


@dataclass(slots=True)
class Errors:
    """``raised`` are those of the present step, by uid of the AppWrapper that each is about."""

    about: str = ""  # the uid of the AppWrapper that is worked on, "" if it is none in particular
    raised: list[tuple[str, Exception]] = field(default_factory=list)
    suspect: Entry | None = None  # held since the books of the whole were compared
    compared_at: Instant = 0  # when that was
    broken: Exception | None = None  # how they differ: the process ends
    broken_at: Instant = 0
