"""Delta debugging: of the parts of a run that fails, few that fail alone (Zeller, ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
TRIES = 150


def shrink(
    parts: Sequence[T], fails: Callable[[Sequence[T]], bool], tries: int = TRIES
) -> Sequence[T]:
    """The parts without those that the failure does not need, after so many tries at most.

    ``fails`` plays some of the parts. With enough tries no single part of the result can go.
    """
    size = len(parts)
    while parts and tries > 0:
        size = min(size, len(parts))
        begin = 0
        is_smaller = False
        while begin < len(parts) and tries > 0:
            rest = [*parts[:begin], *parts[begin + size :]]
            tries -= 1
            if fails(rest):
                parts, is_smaller = rest, True
            else:
                begin += size
        if size == 1 and not is_smaller:
            break
        size = max(1, size // 2)
    return parts
