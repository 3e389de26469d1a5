"""Errors of the dispatcher itself, as the steps find them (internal_errors.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.state.entry import Entry
from mcad.core.state.units import Instant


@dataclass(slots=True)
class Errors:
    """``raised`` are the errors of the present step, by uid of their AppWrapper."""

    about: str = ""  # the uid of the AppWrapper in progress, "" for none in particular
    raised: list[tuple[str, Exception]] = field(default_factory=list)
    suspect: Entry | None = None  # held since the books of the whole were compared
    compared_at: Instant = 0  # when the books were last compared
    broken: Exception | None = None  # the difference: the process ends
    broken_at: Instant = 0
