"""``maxPriority``: how high the AppWrappers of a namespace may climb in the line.

In a shared cluster a high priority takes the turns of all other AppWrappers. Too high a priority is
cut, not refused: the manifest works as elsewhere, and a Warning names the priority in effect. A
``priorityslope`` climbs to the ceiling and no further.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcad.core.queue.queue import Rank
from mcad.core.state.model import Workload
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND, Instant

OTHERS = "*"
"""The key for every namespace that is not named."""

_SLOPE_UNIT = 1_000_000  # slopes are in millionths per second


def cut(work: Workload, ceilings: Mapping[str, int]) -> Workload:
    """The AppWrapper as it queues, with its priority within the ceiling of its namespace."""
    ceiling = _ceiling(work, ceilings)
    if ceiling is None or work.priority <= ceiling:
        return work
    origin = work.priority_source or "spec.priority"
    warning = (
        f"{origin}: {work.priority} is above the maxPriority of namespace {work.namespace}; "
        f"it queues with {ceiling}."
    )
    return replace(work, priority=ceiling, warnings=(*work.warnings, warning))


def rank(work: Workload, first_seen: Instant, now: Instant, ceilings: Mapping[str, int]) -> Rank:
    """The rank of a cut AppWrapper at this instant."""
    ceiling = _ceiling(work, ceilings)
    if ceiling is None or work.slope <= 0:
        return Rank(work.priority, work.slope)
    climb = -(-(ceiling - work.priority) * _SLOPE_UNIT * SECOND // work.slope)
    arrives = first_seen + climb
    return Rank(work.priority, work.slope, arrives) if now < arrives else Rank(ceiling)


def _ceiling(work: Workload, ceilings: Mapping[str, int]) -> int | None:
    return ceilings.get(work.namespace, ceilings.get(OTHERS))
