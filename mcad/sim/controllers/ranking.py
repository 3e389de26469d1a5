"""The order in which surplus pods are deleted.

The order is documented under "Scaling a ReplicaSet" in the Kubernetes docs and made in
``pkg/controller/controller_utils.go`` (ActivePodsWithRanks, ActivePods).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcad.kube.types import Json
from mcad.sim.controllers.pods import annotations_of, is_ready, phase_of
from mcad.sim.times import parse_us

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def surplus(pods: Sequence[Json], count: int) -> list[Json]:
    """The ``count`` pods to delete."""
    return sorted(pods, key=_urgency)[:count]


def _urgency(pod: Json) -> tuple[Any, ...]:
    """Unassigned before assigned, pending before running, not ready before ready, young first."""
    cost = annotations_of(pod).get(DELETION_COST, "")
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(phase_of(pod), 0),
        is_ready(pod),
        int(cost) if cost.removeprefix("-").isdecimal() else 0,
        -parse_us(pod["metadata"]["creationTimestamp"]),
        pod["metadata"]["uid"],
    )
