"""JSON from an API server, whatever its depth: one object must not make a whole list unreadable.

The server stores objects of up to 10,000 levels; Python's decoder gives up at its recursion limit.
Only then is the text read a second time, and what is too deep becomes null. Whoever makes something
of an object has to refuse one that is so deep; metadata are always whole.
"""

import json
import re
from typing import Any

LEVELS_KEPT = 300
"""Well within Python's recursion limit of 1000, also for code that takes three frames a level."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def decode(raw: bytes) -> Any:
    """The value of a JSON text; raises ``ValueError``."""
    try:
        return json.loads(raw)
    except RecursionError:
        return json.loads(_cut(raw))


def _cut(raw: bytes) -> bytes:
    """The text with null in the place of every map and list below ``LEVELS_KEPT`` levels."""
    pieces: list[bytes] = []
    depth = kept = 0
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == LEVELS_KEPT + 1:
                    pieces += (raw[kept : token.start()], b"null")
            case b"}" | b"]":
                if depth == LEVELS_KEPT + 1:
                    kept = token.end()
                depth -= 1
    if depth > LEVELS_KEPT:
        raise ValueError("it ends within a map or list")
    pieces.append(raw[kept:])
    return b"".join(pieces)
