"""Colours of the output: on a terminal only, and never if NO_COLOR is set.

A colour repeats what the word beside it says, so the output can be read without.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from msgspec import Struct

AUTO, ALWAYS, NEVER = "auto", "always", "never"
CHOICES = (AUTO, ALWAYS, NEVER)

GREEN, YELLOW, RED, CYAN, DIM, BOLD, REVERSE = "32", "33", "31", "36", "2", "1", "7"

_STATES = {
    "Pending": YELLOW,
    "Running": GREEN,
    "RunningHoldCompletion": GREEN,
    "Completed": CYAN,
    "Failed": RED,
    "Deleted": DIM,
}
_CONDITIONS = {"Backoff": YELLOW, "Failed": RED}  # those that are no good news when True
_TRUTH = {"True": GREEN, "False": DIM, "Unknown": YELLOW}
_EVENTS = {"Warning": YELLOW}
_DENIALS = {"no": YELLOW, "deleting": YELLOW}

_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "?") | {9: " ", 10: " ", 13: " "}


class Palette(Struct, frozen=True):
    """Paints if ``enabled``."""

    enabled: bool = False

    def paint(self, text: str, *codes: str) -> str:
        """The text in these SGR codes, as it is if colours are off."""
        if not self.enabled or not text or not any(codes):
            return text
        return f"\x1b[{';'.join(filter(None, codes))}m{text}\x1b[0m"

    def state(self, text: str) -> str:
        """A state, or a text that begins with one."""
        return self.paint(text, _STATES.get(text.partition(" ")[0], ""))


PLAIN = Palette()


def style(title: str, row: Mapping[str, str]) -> str:
    """The SGR code of a cell, by its column and its row; empty for most."""
    cell = row[title]
    match title:
        case "STATE":
            return _STATES.get(cell, "")
        case "STATUS":
            known = _CONDITIONS.get(row.get("TYPE", "")) if cell == "True" else None
            return known or _TRUTH.get(cell, "")
        case "TYPE":
            return _EVENTS.get(cell, "")
        case "EXISTS":
            return _DENIALS.get(cell, "")
        case "FREE" if cell.startswith("-"):
            return RED
        case "MISSING" if cell != "0":
            return RED
    return ""


def palette(choice: str, stream: TextIO | None = None) -> Palette:
    """The palette for --color; ``stream`` is stdout unless given.

    ``auto`` is no colour without a terminal, with TERM=dumb, or with NO_COLOR set to anything
    (https://no-color.org).
    """
    if choice != AUTO:
        return Palette(choice == ALWAYS)
    stream = sys.stdout if stream is None else stream
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Palette(wanted and stream.isatty())


def printable(text: str) -> str:
    """Replace control characters: texts from a cluster must not control the terminal."""
    return text if text.isprintable() else text.translate(_CONTROLS)
