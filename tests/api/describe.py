"""How ``kubectl describe`` prints an object that it knows nothing about: keys sorted, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


def describe(value: dict[str, Any]) -> list[str]:
    """``Label: value`` lines without indentation, as kubectl orders them."""
    return list(_lines(value))


def _lines(value: dict[str, Any]) -> Iterator[str]:
    for key in sorted(value):
        one = value[key]
        if isinstance(one, dict):
            yield f"{label(key)}:"
            yield from _lines(one)
        elif isinstance(one, list):
            yield f"{label(key)}:"
            for element in one:
                yield from _lines(element) if isinstance(element, dict) else [str(element)]
        else:
            shown = str(one).lower() if isinstance(one, bool) else one
            yield f"{label(key)}: {shown}"


def label(key: str) -> str:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", key)
    return " ".join(word[:1].upper() + word[1:] for word in words)


def squeezed(text: str) -> list[str]:
    """The lines of a document with single blanks and no indentation."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
