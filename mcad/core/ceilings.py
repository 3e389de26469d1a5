"""``maxPriority``: how high the AppWrappers of a namespace may climb in the line.

In a shared cluster a priority is a claim on everybody else's place. Too high a claim is cut, not
refused: the manifest goes on working wherever it came from, and a Warning says what it queues with.
A positive ``priorityslope`` would climb over any ceiling in time, so it has no effect below one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcad.core.model import Workload

OTHERS = "*"
"""Instead of a namespace: every one that is not named."""


def cut(work: Workload, ceilings: Mapping[str, int]) -> Workload:
    """The AppWrapper as it queues: its claim within the ceiling of its namespace."""
    ceiling = ceilings.get(work.namespace, ceilings.get(OTHERS))
    if ceiling is None or (work.priority <= ceiling and work.slope <= 0):
        return work
    return replace(
        work,
        priority=min(work.priority, ceiling),
        slope=min(work.slope, 0),
        warnings=(*work.warnings, *_warnings(work, ceiling)),
    )


def _warnings(work: Workload, ceiling: int) -> list[str]:
    where = f"namespace {work.namespace}"
    told = []
    if work.priority > ceiling:
        told.append(
            f"spec.priority: {work.priority} is above the maxPriority of {where}; it queues with "
            f"{ceiling}."
        )
    if work.slope > 0:
        told.append(f"spec.priorityslope: has no effect, because {where} has a maxPriority.")
    return told
