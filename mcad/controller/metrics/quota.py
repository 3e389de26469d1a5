"""Quota trees as metrics: the figures of every node, and the number of invalid QuotaSubtrees.

The figures of a node include its descendants: sum over roots or leaves, not over all nodes. A very
large tree is cut to the nodes next to the root: what is below them is in their figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from mcad.controller.metrics import declared
from mcad.controller.metrics.cluster import in_base_units
from mcad.controller.metrics.labels import Remembered
from mcad.core.quota.report import figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.core import GaugeMetricFamily, Metric

    from mcad.core.cluster import Cluster
    from mcad.core.quota.tree import Tree
    from mcad.core.state.quota_records import NodeStatus

NODES_SHOWN = 1000
"""Of each tree."""

_STEP = 100  # nodes between two turns of the event loop


class QuotaGauges:
    """The gauges of all trees; none without trees."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._invalid = Remembered()
        self._absent = Remembered()

    def metrics(self) -> Iterator[Metric | None]:
        """One gauge per figure, after None for each part of a tree."""
        forest = self._cluster.forest
        names = forest.names()
        invalid = Counter(_invalid(self._cluster, ""))
        gauges = {word: one.gauge() for word, one in declared.QUOTA.items()}
        exceeded = declared.QUOTA_EXCEEDED.gauge()
        for name in names:
            invalid.update(_invalid(self._cluster, name))
            tree = forest.trees.get(name)
            if tree is not None:
                lines = figures(forest, tree, self._cluster.admission.demand)
                yield from self._fill(tree, lines, gauges)
                _exceeded(tree, lines, exceeded)
        if names or invalid:
            yield from (*gauges.values(), exceeded)
            yield self._invalid.fill(declared.INVALID_SUBTREES.gauge(), invalid)
            yield self._absent.fill(declared.ABSENT_SUBTREES.gauge(), self._gone(names))

    def _fill(
        self,
        tree: Tree,
        lines: Mapping[str, NodeStatus],
        gauges: dict[str, GaugeMetricFamily],
    ) -> Iterator[None]:
        by_depth = sorted(tree.nodes.values(), key=lambda node: len(node.chain))
        shown = iter([node.name for node in by_depth[:NODES_SHOWN]])
        yield None
        while some := list(islice(shown, _STEP)):
            for node in some:
                named = [resource for resource, _ in lines[node].nominal]
                for word, gauge in gauges.items():
                    amounts = dict(getattr(lines[node], word))
                    for resource in named:
                        number = in_base_units(resource, amounts.get(resource, 0))
                        gauge.add_metric((tree.name, node, resource), number)
            yield None

    def _gone(self, names: Iterable[str]) -> dict[tuple[str, ...], float]:
        absent = self._cluster.forest.absent
        return {(name,): len([*absent.texts(name)]) for name in names}


def _exceeded(tree: Tree, lines: Mapping[str, NodeStatus], gauge: GaugeMetricFamily) -> None:
    """What the root and hard nodes have in use above their quota, which nothing may exceed."""
    for node in tree.nodes.values():
        if node.chain and node is not tree.root and not node.hard:
            continue
        borrowed = dict(lines[node.name].borrowed)
        for resource in sorted(tree.named):
            beyond = in_base_units(resource, borrowed.get(resource, 0))
            gauge.add_metric((tree.name, node.name, resource), beyond)


def _invalid(cluster: Cluster, name: str) -> Iterator[tuple[str, ...]]:
    """(tree, reason) of each QuotaSubtree with something wrong."""
    first = {fault.uid: fault.flaw for fault in reversed(cluster.forest.faults(name))}
    return ((name, flaw.value) for flaw in first.values())
