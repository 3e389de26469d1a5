"""The smallest number, or set, that suffices, found by trying: the result was tried, and so was the
next smaller one, which does not suffice."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence


def largest(suffices: Callable[[int], bool], first: int, last: int) -> int | None:
    """The largest number from ``first`` to ``last`` that suffices where less is better; None if
    even ``first`` does not."""
    if first > last or not suffices(first):
        return None
    more = range(first + 1, last + 1)
    return first + bisect_left(more, True, key=lambda number: not suffices(number))


def earliest(suffices: Callable[[int], bool], numbers: Sequence[int]) -> int | None:
    """The first of these rising numbers that suffices where more is better; None if even the last
    does not."""
    if not numbers or not suffices(numbers[-1]):
        return None
    return numbers[bisect_left(numbers, True, hi=len(numbers) - 1, key=suffices)]


def irreducible(
    suffice: Callable[[tuple[str, ...]], bool], members: tuple[str, ...]
) -> tuple[str, ...]:
    """The members that cannot be left out. Less room may keep out another AppWrapper ahead, so
    needed members are tested again when a member is left out."""
    before, left = None, members
    while left != before:
        before = left
        for one in before:
            fewer = tuple(each for each in left if each != one)
            if suffice(fewer):
                left = fewer
    return left
