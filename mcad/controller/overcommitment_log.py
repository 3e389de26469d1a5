"""Nodes with pods that request more than the node has: one line in the log when that begins and
ends.

kube-scheduler loses the answer to a binding when the API server is restarted, forgets the pod that
it assumed there, and binds another one to the same node. A kubelet refuses the second pod; until
then nothing is placed on that node, and the rest of the cluster is used as before.
"""

import logging

from mcad.controller.views import quantities
from mcad.core.assumed.node_report import NodeReport
from mcad.core.cluster import Cluster
from mcad.core.state.model import Resources
from mcad.core.state.units import Instant

_log = logging.getLogger(__name__)


class OvercommitmentLog:
    """Compares the overcommitted nodes with those reported last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since: dict[str, Instant] = {}

    def look(self) -> int:
        """Report what has changed; returns how many nodes are overcommitted and were not before."""
        now = self._cluster.now
        nodes = {node.name: node for node in self._cluster.capacity.report.overcommitted()}
        begun = [node for name, node in nodes.items() if name not in self._since]
        for node in begun:
            text = "node is overcommitted node=%s requested=%s allocatable=%s"
            _log.warning(text, node.name, *map(_words, _exceeded(node)))
        for name, since in self._since.items():
            if name not in nodes:
                text = "node is no longer overcommitted node=%s after_s=%d"
                _log.info(text, name, (now - since) // 1_000_000)
        self._since = {name: self._since.get(name, now) for name in nodes}
        return len(begun)


def _exceeded(node: NodeReport) -> tuple[Resources, Resources]:
    """What is requested and what is allocatable of the resources of which too much is requested."""
    allocatable = dict(node.allocatable)
    requested = tuple((name, n) for name, n in node.used if n > allocatable.get(name, 0))
    return requested, tuple((name, allocatable.get(name, 0)) for name, _ in requested)


def _words(amounts: Resources) -> str:
    return ",".join(f"{name}={amount}" for name, amount in quantities(amounts).items())
