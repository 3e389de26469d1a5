"""Use over time, since a page was opened: the share of each resource that is used or reserved."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mcad.ui.bars import capacity_bars

Json = dict[str, Any]

SAMPLE_US = 30_000_000
SAMPLES_MAX = 360  # three hours
LINES_MAX = 4
WIDTH, HEIGHT = 300, 30  # of a chart, in its own units


class Sample(Struct, frozen=True):
    """The shares of one moment in percent, by resource."""

    at_us: int
    shares: dict[str, float]


class Line(Struct, frozen=True):
    """A chart of one resource: its points as SVG has them, and the least and the most."""

    resource: str
    points: str
    least: float
    most: float


class History:
    """Samples that are at least ``SAMPLE_US`` apart."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)

    def note(self, at_us: int, capacity: Json | None) -> tuple[Sample, ...]:
        """Add the figures of a moment, if it is time; returns all samples."""
        is_due = not self._samples or at_us >= self._samples[-1].at_us + SAMPLE_US
        if is_due and capacity is not None:
            bars = capacity_bars(capacity)
            shares = {one.resource: round(one.used + one.reserved, 1) for one in bars}
            self._samples.append(Sample(at_us, shares))
        return tuple(self._samples)

    def forget(self) -> None:
        """Nothing is known of the time that follows."""
        self._samples.clear()


def lines(samples: Sequence[Sample]) -> list[Line]:
    """A chart for each of the first resources; none before there are two samples."""
    if len(samples) < 2:
        return []
    return [_line(name, samples) for name in list(samples[-1].shares)[:LINES_MAX]]


def _line(name: str, samples: Sequence[Sample]) -> Line:
    """Steps: what is used stays so until the next sample."""
    first, span = samples[0].at_us, samples[-1].at_us - samples[0].at_us
    shares = [one.shares.get(name, 0.0) for one in samples]
    points: list[str] = []
    y = 0
    for one, share in zip(samples, shares, strict=True):
        x = (one.at_us - first) * WIDTH // span
        if points:
            points.append(f"{x},{y}")
        y = HEIGHT - round(share * HEIGHT / 100)
        points.append(f"{x},{y}")
    return Line(name, " ".join(points), min(shares), max(shares))
