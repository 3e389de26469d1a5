"""Which pods go first when there are too many.

The order is documented under "Pod deletion cost" and "Scaling a ReplicaSet" in the Kubernetes docs
and made in ``pkg/controller/controller_utils.go`` (ActivePodsWithRanks, ActivePods).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Any

from mcad.sim.controllers.pods import annotations_of, is_active, is_ready, phase_of, ready_condition
from mcad.sim.times import parse_us

Json = dict[str, Any]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = re.compile(r"-?(0|[1-9][0-9]{0,9})|\+[1-9][0-9]{0,9}")
_INT32 = 1 << 31


def surplus_of_replicaset(
    pods: Sequence[Json], related: Iterable[Json], count: int, now_us: int
) -> list[Json]:
    """The ``count`` pods to delete; ``related`` are those of all ReplicaSets of one Deployment.

    Pods on nodes with more related pods go first, so that what is left is spread.
    """
    if count >= len(pods):
        return list(pods)
    crowd = Counter(_node(pod) for pod in related if is_active(pod))
    return sorted(pods, key=_by(now_us, crowd))[:count]


def surplus_of_job(pods: Sequence[Json], count: int) -> list[Json]:
    """The ``count`` pods to delete, without regard to nodes and costs."""
    return sorted(pods, key=_by(0, None))[:count]


def _by(now_us: int, crowd: Counter[str] | None) -> Callable[[Json], Any]:
    """A sort key; ``now_us`` of 0 compares times as they are, otherwise by their magnitude."""

    def compare(one: Json, other: Json) -> int:
        for left, right in zip(_urgency(one, crowd), _urgency(other, crowd), strict=True):
            if left != right:
                return -1 if left < right else 1
        if is_ready(one):
            since = [_ready_since_us(pod) for pod in (one, other)]
            if since[0] != since[1]:
                return _younger_first(one, other, since, now_us)
        if _restarts(one) != _restarts(other):
            return -1 if _restarts(one) > _restarts(other) else 1
        since = [_created_us(pod) for pod in (one, other)]
        return _younger_first(one, other, since, now_us) if since[0] != since[1] else 0

    return cmp_to_key(compare)


def _urgency(pod: Json, crowd: Counter[str] | None) -> tuple[int, ...]:
    """Unassigned before assigned, pending before running, not ready before ready..."""
    phase = _PHASES.get(phase_of(pod), 0)
    first = (int(bool(_node(pod))), phase, int(is_ready(pod)))
    return first if crowd is None else (*first, _cost(pod), -crowd[_node(pod)])


def _younger_first(one: Json, other: Json, since_us: list[int], now_us: int) -> int:
    """Times are compared by magnitude, so that not always the very youngest goes; uid decides."""
    if not now_us or not all(since_us):
        return -1 if since_us[0] > since_us[1] or not since_us[0] else 1
    difference = _magnitude(since_us[0], now_us) - _magnitude(since_us[1], now_us)
    if difference:
        return difference
    return -1 if one["metadata"]["uid"] < other["metadata"]["uid"] else 1


def _magnitude(since_us: int, now_us: int) -> int:
    age_ns = (now_us - since_us) * 1000
    return int(math.log2(age_ns)) if age_ns > 0 else -1


def _node(pod: Json) -> str:
    return pod["spec"].get("nodeName") or ""


def _cost(pod: Json) -> int:
    text = annotations_of(pod).get(DELETION_COST, "")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if -_INT32 <= cost < _INT32 else 0


def _ready_since_us(pod: Json) -> int:
    since = (ready_condition(pod) or {}).get("lastTransitionTime")
    return parse_us(since) if since else 0


def _created_us(pod: Json) -> int:
    return parse_us(pod["metadata"]["creationTimestamp"])


def _restarts(pod: Json) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    status, spec = pod.get("status") or {}, pod["spec"]
    sidecars = {
        one["name"]
        for one in spec.get("initContainers") or ()
        if one.get("restartPolicy") == "Always"
    }
    regular = [one.get("restartCount", 0) for one in status.get("containerStatuses") or ()]
    sidecar = [
        one.get("restartCount", 0)
        for one in status.get("initContainerStatuses") or ()
        if one["name"] in sidecars
    ]
    return max(regular, default=0), max(sidecar, default=0)
