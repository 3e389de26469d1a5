"""The smallest number that suffices, found by trying: what is returned was tried, and so was the
number next to it, which does not suffice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TRIED_MAX = 8
"""Numbers that are tried one after the other, where more need not be better."""


def smallest(suffices: Callable[[int], bool], first: int, last: int) -> int | None:
    """The first number from ``first`` to ``last`` that suffices, None if none of the first few
    does. What is more for all may go to another AppWrapper, so none is left out."""
    numbers = range(first, min(last, first + TRIED_MAX - 1) + 1)
    return next((number for number in numbers if suffices(number)), None)


def largest(suffices: Callable[[int], bool], first: int, last: int) -> int | None:
    """The largest number from ``first`` to ``last`` that suffices where less is better; None if not
    even ``first`` does."""
    if first > last or not suffices(first):
        return None
    return -_between(lambda n: suffices(-n), -(last + 1), -first)


def earliest(suffices: Callable[[int], bool], numbers: Sequence[int]) -> int | None:
    """The first of these rising numbers that suffices where more is better; None if not even the
    last does."""
    if not numbers or not suffices(numbers[-1]):
        return None
    return numbers[_between(lambda at: suffices(numbers[at]), -1, len(numbers) - 1)]


def _between(suffices: Callable[[int], bool], fails: int, does: int) -> int:
    """A number that suffices after one that does not, between one that fails and one that does."""
    while does - fails > 1:
        middle = (fails + does) // 2
        if suffices(middle):
            does = middle
        else:
            fails = middle
    return does
