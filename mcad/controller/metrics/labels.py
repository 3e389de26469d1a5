"""Values of labels: their number is bounded, and a series that was published once stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily

from mcad.core.state.quota_records import Path

OTHER = "other"

LEAVES_MAX = 100
"""Leaves with series of their own: each has some 80, and no dashboard shows more than a hundred
teams. mcad_quota_* has up to 1,000 nodes of each tree."""
PRIORITIES_MAX = 20
"""Priorities with series of their own."""
REMEMBERED_MAX = 500
"""Label sets that a gauge remembers."""

Values = tuple[str, ...]


class Bounded:
    """The first values keep their own series; those that come later share ``other``.

    A value never moves from one to the other, because a counter must not shrink.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[Values, None] = {}

    def of(self, *values: str) -> Values:
        """The values to publish for these."""
        if values in self._known:
            return values
        if len(self._known) >= self._limit:
            return (OTHER,) * len(values)
        self._known[values] = None
        return values

    @property
    def known(self) -> list[Values]:
        """Those with series of their own, in the order in which they came."""
        return list(self._known)


class Remembered:
    """The label sets of a gauge: one that is gone has the value 0 instead of none."""

    def __init__(self, *always: Values) -> None:
        """``always`` are label sets that are published from the start."""
        self._known: dict[Values, None] = dict.fromkeys(always)

    def fill(self, gauge: GaugeMetricFamily, values: Mapping[Values, float]) -> GaugeMetricFamily:
        """Add the samples, and zeros for label sets of earlier pages."""
        for labels in values:
            self._known.setdefault(labels)
        for labels in list(self._known):
            number = values.get(labels)
            if number is None and len(self._known) > REMEMBERED_MAX:
                del self._known[labels]
            else:
                gauge.add_metric(labels, number or 0)
        return gauge


def leaf(path: Path) -> str:
    """``tree/leaf``, several joined by commas; "" without one."""
    return ",".join(f"{tree}/{name}" for tree, name in path if name)


def filled(gauge: GaugeMetricFamily, samples: Iterable[tuple[Values, float]]) -> GaugeMetricFamily:
    """The gauge with these samples."""
    for labels, number in samples:
        gauge.add_metric(labels, number)
    return gauge
