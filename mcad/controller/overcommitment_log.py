"""Logs a line when a node becomes overcommitted, and one when that ends.

If the API server is restarted, kube-scheduler may lose the answer to a binding, forget the assumed
pod, and bind another one to the same node. The kubelet then rejects the second pod. Until then
nothing is dispatched to that node; other nodes are used as usual.
"""

import logging

from mcad.controller.views import quantities
from mcad.core.assumed.node_report import NodeReport
from mcad.core.cluster import Cluster
from mcad.core.state.model import Resources
from mcad.core.state.units import Instant

_log = logging.getLogger(__name__)


class OvercommitmentLog:
    """Compares the overcommitted nodes with those logged before."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since: dict[str, Instant] = {}

    def log_changes(self) -> int:
        """Log changes; returns how many nodes have become overcommitted."""
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
    """The requested and allocatable amounts of overcommitted resources."""
    allocatable = dict(node.allocatable)
    requested = tuple((name, n) for name, n in node.used if n > allocatable.get(name, 0))
    return requested, tuple((name, allocatable.get(name, 0)) for name, _ in requested)


def _words(amounts: Resources) -> str:
    return ",".join(f"{name}={amount}" for name, amount in quantities(amounts).items())
