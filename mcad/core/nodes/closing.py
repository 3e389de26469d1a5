"""Nodes that take no pods though they are ready: an autoscaler has just added them, or is about to
remove them.

Their taints say so, also to pods that tolerate every taint, and also with the effect
PreferNoSchedule: a pod on such a node does not start yet, or is evicted soon.
"""

from __future__ import annotations

from collections.abc import Collection

from mcad.core.state.model import Node
from mcad.core.state.records import replace

LEAVING = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disrupted",
    }
)
"""Keys of taints of nodes that an autoscaler is about to remove."""

STARTING = frozenset(
    {
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
        "karpenter.sh/unregistered",
    }
)
"""Keys of taints of nodes that are not usable yet; setting ``startup_taints`` has more."""


def marked(node: Node, startup_taints: Collection[str]) -> Node:
    """The node, with the first taint by which it takes no pods."""
    for taint in node.taints:
        if taint.key in LEAVING or taint.key in STARTING or taint.key in startup_taints:
            return replace(node, closed=taint.key)
    return node
