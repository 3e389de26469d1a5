"""Quota trees as metrics: the figures of every node, and the number of invalid QuotaSubtrees.

The figures of a node include its descendants: sum over roots or leaves, not over all nodes. Zeros
have no sample, except for nominal quota. A very large tree is cut to the nodes next to the root,
because 4,000 leaves would be most of a page that is scraped twice a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from mcad.core.cluster import Cluster
from mcad.core.quota.report import figures

NODES_SHOWN = 1000
"""Of each tree."""

_LABELS = ("tree", "node", "resource")
_TEXTS = {
    "nominal": "The share of a node of a quota tree",
    "allocated": "What is charged to a node of a quota tree, and to those below it",
    "borrowed": "What of that exceeds the node's own share",
    "lent": "What others under the same parent use of a node's share",
    "waiting": "What AppWrappers in line demand of a node of a quota tree",
}
_CPU, _MILLIS = "cpu", 1000


def quota_metrics(cluster: Cluster) -> Iterator[Metric | None]:
    """One gauge per figure, after None for every tree; nothing without trees."""
    gauges = {
        word: GaugeMetricFamily(
            f"mcad_quota_{word}", f"{text}; cpu in cores, memory in bytes", labels=_LABELS
        )
        for word, text in _TEXTS.items()
    }
    names = cluster.forest.names()
    invalid = Counter(_invalid(cluster, ""))
    for name in names:
        invalid.update(_invalid(cluster, name))
        _add(cluster, name, gauges)
        yield None
    if names or invalid:
        yield from gauges.values()
        family = GaugeMetricFamily(
            "mcad_invalid_quota_subtrees",
            "QuotaSubtrees with nodes that are not in force, by the first reason",
            labels=["tree", "reason"],
        )
        for labels, count in sorted(invalid.items()):
            family.add_metric(labels, count)
        yield family
        yield _absent(cluster, names)


def _absent(cluster: Cluster, names: Iterable[str]) -> Metric:
    family = GaugeMetricFamily(
        "mcad_absent_quota_subtrees",
        "QuotaSubtrees that are gone and count as before until their grace period ends",
        labels=["tree"],
    )
    for name in names:
        count = len([*cluster.forest.absent.texts(name)])
        if count:
            family.add_metric([name], count)
    return family


def _invalid(cluster: Cluster, name: str) -> Iterator[tuple[str, str]]:
    """(tree, reason) of each QuotaSubtree with something wrong."""
    first = {fault.uid: fault.flaw for fault in reversed(cluster.forest.faults(name))}
    return ((name, flaw.value) for flaw in first.values())


def _add(cluster: Cluster, name: str, gauges: dict[str, GaugeMetricFamily]) -> None:
    tree = cluster.forest.trees.get(name)
    if tree is None:
        return
    by_depth = sorted(tree.nodes.values(), key=lambda node: len(node.chain))
    told = [node.name for node in by_depth[:NODES_SHOWN]]
    lines = figures(tree, cluster.forest.waiting.of(name, cluster.admission.demand))
    for node in told:
        for word, gauge in gauges.items():
            for resource, amount in getattr(lines[node], word):
                labels = (name, node, resource)
                gauge.add_metric(labels, amount / _MILLIS if resource == _CPU else amount)
