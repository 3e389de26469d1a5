"""The rolling update of a DaemonSet: whom to delete and where to put a new pod first.

After ``pkg/controller/daemon/update.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcad.sim.controllers import daemonpods
from mcad.sim.controllers.numbers import scaled
from mcad.sim.controllers.pods import is_available, is_deleting

Json = dict[str, Any]


@dataclass(slots=True)
class Fleet:
    """A DaemonSet, the nodes, and its pods on each of them."""

    owner: Json
    hashed: str
    nodes: dict[str, Json]
    pods: dict[str, list[Json]]  # by node; nodes that have none are missing
    now_us: int

    def is_available(self, pod: Json) -> bool:
        """Whether it has been ready for ``minReadySeconds``."""
        return is_available(pod, self.owner["spec"].get("minReadySeconds", 0), self.now_us)

    def wanted(self) -> list[str]:
        """The nodes that should have a pod."""
        return [
            name for name, node in self.nodes.items() if daemonpods.should_run(self.owner, node)[0]
        ]


@dataclass(slots=True)
class Steps:
    """Pods to delete, and nodes to make pods for."""

    delete: list[Json] = field(default_factory=list)
    create: list[str] = field(default_factory=list)


def limits(owner: Json, wanted: int) -> tuple[int, int]:
    """How many nodes may have two pods, and how many none, at a time."""
    strategy = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = scaled(strategy.get("maxSurge"), wanted, up=True)
    unavailable = scaled(strategy.get("maxUnavailable", 1), wanted, up=True)
    if wanted and not surge and not unavailable:
        unavailable = 1
    return surge, unavailable


def allows_surge(owner: Json) -> bool:
    """Whether a new pod may come before the old one goes."""
    strategy = owner["spec"].get("updateStrategy") or {}
    return strategy.get("type", "RollingUpdate") == "RollingUpdate" and limits(owner, 1)[0] > 0


def plan(fleet: Fleet) -> Steps:
    """What the update allows to be done now."""
    wanted = fleet.wanted()
    surge, unavailable = limits(fleet.owner, len(wanted))
    pods: dict[str, list[Json]] = dict(fleet.pods)
    for name in wanted:
        pods.setdefault(name, [])
    if surge:
        return _surging(fleet, pods, surge, len(wanted))
    return _replacing(fleet, pods, unavailable)


def _pair(fleet: Fleet, pods: list[Json]) -> tuple[list[Json], list[Json]]:
    """New and old pods of one node, without those that are going."""
    alive = [pod for pod in pods if not is_deleting(pod)]
    new = [pod for pod in alive if daemonpods.is_updated(fleet.owner, pod, fleet.hashed)]
    return new, [pod for pod in alive if not any(pod is one for one in new)]


def _replacing(fleet: Fleet, pods: dict[str, list[Json]], limit: int) -> Steps:
    """Old pods that are unavailable go at once, of the others as many as are allowed."""
    missing, broken, fine = 0, [], []
    for on_node in pods.values():
        new, old = _pair(fleet, on_node)
        if len(new) == 1 and not old:
            missing += not fleet.is_available(new[0])
        elif len(old) == 1 and not new:
            if fleet.is_available(old[0]):
                fine.append(old[0])
            else:
                broken.append(old[0])
                missing += 1
        else:
            missing += 1
    return Steps(broken + fine[: max(limit - missing, 0)])


def _surging(fleet: Fleet, pods: dict[str, list[Json]], limit: int, wanted: int) -> Steps:
    steps, surging, available = Steps(), 0, 0
    candidates: list[str] = []
    leaving: list[Json] = []
    for name, on_node in pods.items():
        new, old = _pair(fleet, on_node)
        if len(new) > 1 or len(old) > 1:
            surging += 1
            continue
        available += any(fleet.is_available(pod) for pod in (old or new))
        if not old:
            continue
        if new:
            if fleet.is_available(new[0]):
                steps.delete.append(old[0])
            else:
                surging += 1
            continue
        node, fine = fleet.nodes.get(name), fleet.is_available(old[0])
        if node is None or not daemonpods.should_run(fleet.owner, node)[0]:
            (leaving if fine else steps.delete).append(old[0])
        else:
            (candidates if fine else steps.create).append(name)
    steps.delete += leaving[: max(available - wanted, 0)]
    steps.create += candidates[: max(limit - surging, 0)]
    return steps
