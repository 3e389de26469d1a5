"""Options of a write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Validation = Literal["Strict", "Warn", "Ignore"]


@dataclass(slots=True)
class Write:
    """Options of a write. ``warnings`` collects the warnings beside the answer."""

    dry_run: bool = False
    validation: Validation = "Warn"
    subresource: str = ""  # "status", or "" for the object itself
    trusted: bool = False  # by a simulated controller, whose objects need no schema
    warnings: list[str] = field(default_factory=list)


def by_controller() -> Write:
    """A write by one of the simulator's own controllers."""
    return Write(trusted=True)
