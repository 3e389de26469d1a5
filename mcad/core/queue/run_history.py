"""How long AppWrappers ran, by shape: the only estimate for AppWrappers that declare nothing.

Start time estimates for users rest on it, and how long room is kept where no limit is declared; no
promise does. It is rebuilt from the Completed AppWrappers that a new leader finds, so it needs no
store of its own. A failed or deleted attempt says nothing about run times, and is left out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.state.units import Duration, Instant

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape

RUNS_MAX = 64
"""How many latest runs of one shape count: workloads change."""

SHAPES_MAX = 1_000
"""How many shapes are remembered; the shape with the oldest last run is dropped first."""

RUNS_MIN = 5
"""The fewest runs for an estimate."""


class _Runs(NamedTuple):
    """When the runs ended, in order, and how long each of them ran; and all run times in order."""

    ended: array[int]
    ran: array[int]
    times: array[int]


class History:
    """Run times from dispatch to completion, in microseconds."""

    def __init__(self) -> None:
        self._by_shape: dict[Shape, _Runs] = {}

    def note(self, shape: Shape, begun: Instant, ended: Instant) -> None:
        """Add a run of this shape. The order of reports does not matter."""
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
        """The run time within which ``percent`` (1 to 100) of the runs longer than ``over``
        finished; 0 if too few runs were longer."""
        runs = self._by_shape.get(shape)
        if runs is None:
            return 0
        shorter = bisect_right(runs.times, over)
        longer = len(runs.times) - shorter
        if longer < RUNS_MIN:
            return 0
        return runs.times[shorter - (-percent * longer // 100) - 1]
