"""How many AppWrappers wait, run and have ended."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mcad.cli.pages.colours import printable
from mcad.client.figures.row import is_in_line, is_waiting

Json = dict[str, Any]

_WORDS = {  # of states of AppWrappers that do not wait, in this order
    "Running": "running",
    "RunningHoldCompletion": "half completed",
    "Completed": "completed",
    "Failed": "failed",
    "Pending": "being created or deleted",
}


def state_counts(rows: list[Json]) -> str:
    """``2 in line, 0 on hold, 1 running``."""
    waiting = [row for row in rows if is_waiting(row)]
    in_line = sum(map(is_in_line, waiting))
    states = Counter(row["state"] for row in rows if not is_waiting(row))
    told = [f"{in_line} in line", f"{len(waiting) - in_line} on hold"]
    told += [f"{states[one]} {word}" for one, word in _WORDS.items() if states[one]]
    told += [f"{states[one]} {printable(one)}" for one in sorted(states.keys() - _WORDS.keys())]
    return ", ".join(told)
