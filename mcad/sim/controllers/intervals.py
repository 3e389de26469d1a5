"""Sets of completion indexes, as a Job's status writes them: ``1,3-5,7``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

_BEYOND = 1 << 62
Interval = tuple[int, int]  # first and last, both within


class Indexes:
    """An immutable set of numbers, in intervals."""

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        """``intervals`` in any order; they may overlap."""
        merged: list[Interval] = []
        for first, last in sorted(intervals):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        self._intervals = tuple(merged)

    @classmethod
    def parse(cls, text: str, below: int) -> Indexes:
        """Those of the text that are below a limit; what cannot be read is left out."""
        found = []
        for part in text.split(",") if text else ():
            first, _, last = part.partition("-")
            if first.isdecimal() and (last or first).isdecimal() and int(first) < below:
                found.append((int(first), min(int(last or first), below - 1)))
        return cls(found)

    def union(self, numbers: Iterable[int]) -> Indexes:
        """With more numbers."""
        return Indexes([*self._intervals, *((one, one) for one in numbers)])

    def __iter__(self) -> Iterator[int]:
        """In increasing order."""
        return (number for first, last in self._intervals for number in range(first, last + 1))

    def __len__(self) -> int:
        """How many numbers."""
        return sum(last - first + 1 for first, last in self._intervals)

    def __contains__(self, number: object) -> bool:
        """Whether it is one of them."""
        if not isinstance(number, int):
            return False
        at = bisect_right(self._intervals, (number, _BEYOND)) - 1
        return at >= 0 and number <= self._intervals[at][1]

    def __str__(self) -> str:
        """Two neighbours are written apart, as the real controller does."""
        parts = []
        for first, last in self._intervals:
            mark = "," if last == first + 1 else "-"
            parts.append(str(first) if first == last else f"{first}{mark}{last}")
        return ",".join(parts)
