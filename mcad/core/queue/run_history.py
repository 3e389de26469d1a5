"""How long AppWrappers ran, by shape: all that is known of those that declare nothing.

Start time estimates for people rest on it, and for how long room is kept where no limit is
declared; no promise does. It is rebuilt from the Completed AppWrappers that a new leader finds, so
it needs no store of its own; one that failed or was taken back says nothing of how long such a one
runs, and is left out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.state.units import Duration, Instant

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape

RUNS_MAX = 64
"""Of one shape the last ones count: what people run changes."""

SHAPES_MAX = 1_000
"""Shapes that are remembered; beyond, the one goes of which nothing was heard for longest."""

RUNS_MIN = 5
"""Of fewer runs nothing is concluded."""


class _Runs(NamedTuple):
    """When they ended, in order, and how long each of them ran; and all these times in order."""

    ended: array[int]
    ran: array[int]
    times: array[int]


class History:
    """Run times from dispatch to completion, in microseconds."""

    def __init__(self) -> None:
        self._by_shape: dict[Shape, _Runs] = {}

    def note(self, shape: Shape, begun: Instant, ended: Instant) -> None:
        """One of this shape was dispatched and finished. The order of reports does not matter."""
        runs = self._by_shape.pop(shape, None) or _Runs(*(array("q") for _ in range(3)))
        self._by_shape[shape] = runs
        at, ran = bisect_right(runs.ended, ended), max(0, ended - begun)
        runs.ended.insert(at, ended)
        runs.ran.insert(at, ran)
        insort(runs.times, ran)
        if len(runs.ended) > RUNS_MAX:
            del runs.times[bisect_left(runs.times, runs.ran[0])]
            del runs.ended[0], runs.ran[0]
        if len(self._by_shape) > SHAPES_MAX:
            del self._by_shape[next(iter(self._by_shape))]

    def __len__(self) -> int:
        return len(self._by_shape)

    def quantile(self, shape: Shape, percent: int, over: Duration = 0) -> Duration:
        """The shortest time within which ``percent`` (1 to 100) of those finished that ran for more
        than ``over``; 0 if too few did to tell."""
        runs = self._by_shape.get(shape)
        if runs is None:
            return 0
        shorter = bisect_right(runs.times, over)
        longer = len(runs.times) - shorter
        if longer < RUNS_MIN:
            return 0
        return runs.times[shorter - (-percent * longer // 100) - 1]
