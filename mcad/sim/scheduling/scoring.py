"""Scores of the possible nodes, by kube-scheduler's default profile.

Weights are those of ``pkg/scheduler/apis/config/v1/default_plugins.go``. ImageLocality is left
out, as no node has any image, and so is whatever looks at pods of other nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcad.sim.scheduling.filters import tolerated
from mcad.sim.scheduling.fleet import NodeInfo
from mcad.sim.scheduling.shapes import Shape
from mcad.sim.selectors import node_selector_terms

TAINTS = 3
NODE_AFFINITY = 2


def resource_score(shape: Shape, node: NodeInfo) -> int:
    """NodeResourcesFit (LeastAllocated) plus NodeResourcesBalancedAllocation, 1 each."""
    cpu, memory = node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0)
    least = weights = 0
    if cpu:
        left = cpu - node.scored_cpu - shape.scored_cpu
        least += left * 100 // cpu if left > 0 else 0
        weights += 1
    if memory:
        left = memory - node.scored_memory - shape.scored_memory
        least += left * 100 // memory if left > 0 else 0
        weights += 1
    score = least // weights if weights else 0
    if shape.cpu or shape.memory:
        score += _balanced(shape, node, cpu, memory)
    return score


def _balanced(shape: Shape, node: NodeInfo, cpu: int, memory: int) -> int:
    """How much the pod evens out the use of CPU and memory: 50 to 100 (KEP-free, from 1.34 on)."""
    used_cpu, used_memory = node.requested.get("cpu", 0), node.requested.get("memory", 0)
    after = _evenness(used_cpu + shape.cpu, used_memory + shape.memory, cpu, memory)
    before = _evenness(used_cpu, used_memory, cpu, memory)
    return 50 + int((50 + after - before) / 2)


def _evenness(used_cpu: int, used_memory: int, cpu: int, memory: int) -> int:
    if not cpu or not memory:
        return 100
    deviation = abs(min(used_cpu / cpu, 1.0) - min(used_memory / memory, 1.0)) / 2
    return int((1 - deviation) * 100)


def taint_scores(shape: Shape, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """Fewer PreferNoSchedule taints that are not tolerated are better; None if there are none."""
    counts = [
        sum(
            taint.get("effect") == "PreferNoSchedule" and not tolerated(shape.tolerations, taint)
            for taint in node.taints
        )
        for node in nodes
    ]
    highest = max(counts)
    return [100 - 100 * count // highest for count in counts] if highest else None


def node_affinity_scores(shape: Shape, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """The sum of the weights of preferred terms that match; None if there are none."""
    if not shape.preferred_nodes:
        return None
    sums = [
        sum(
            weight
            for weight, term in shape.preferred_nodes
            if node_selector_terms([term], node.obj)
        )
        for node in nodes
    ]
    highest = max(sums)
    return [100 * one // highest for one in sums] if highest else None
