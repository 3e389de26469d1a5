"""Which pods of lower priority leave, so that a pod that fits nowhere fits on their node.

After ``pkg/scheduler/framework/plugins/defaultpreemption`` of Kubernetes 1.36, without budgets,
groups of pods and extenders: on each node as few pods as possible, those of low priority and then
the youngest first; among nodes the one whose victims matter least.
"""

from __future__ import annotations

from typing import NamedTuple

from mcad.sim.scheduling.deciding import Decider
from mcad.sim.scheduling.filters import has_room
from mcad.sim.scheduling.fleet import NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import Shape


class Preemption(NamedTuple):
    """A node, and the pods that leave it."""

    node: NodeInfo
    victims: list[PodInfo]


def find(decider: Decider, pod: PodInfo, nominated: str) -> Preemption | None:
    """The best set of victims; None if there is none, or if former ones are still leaving the node
    that the pod was ``nominated`` for."""
    shape, fleet = pod.shape, decider.fleet
    if shape.unknown:
        return None
    former = fleet.nodes.get(nominated)
    if former is not None and any(
        other.is_leaving and other.shape.priority < shape.priority for other in former.pods.values()
    ):
        return None
    found = [
        Preemption(node, victims)
        for node in decider.ground(shape).open
        if (victims := _victims(shape, node))
    ]
    return min(found, key=_importance, default=None)


def _importance(one: Preemption) -> tuple[int, int, int]:
    priorities = [victim.shape.priority for victim in one.victims]
    return max(priorities), sum(priorities), len(priorities)


def _victims(shape: Shape, node: NodeInfo) -> list[PodInfo]:
    """Without all lesser pods it must fit; then as many as possible stay."""
    lesser = [pod for pod in node.pods.values() if pod.shape.priority < shape.priority]
    lesser.sort(key=lambda pod: (-pod.shape.priority, pod.order))
    for pod in lesser:
        node.remove(pod)
    victims = []
    if has_room(shape, node):
        for pod in lesser:
            node.add(pod)
            if not has_room(shape, node):
                node.remove(pod)
                victims.append(pod)
        for pod in victims:
            node.add(pod)
    else:
        for pod in lesser:
            node.add(pod)
    return victims
