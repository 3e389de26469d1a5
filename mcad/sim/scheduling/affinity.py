"""InterPodAffinity: what pods say about being near or far from others.

Modelled after ``pkg/scheduler/framework/plugins/interpodaffinity``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mcad.sim.scheduling.filters import Refusal
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import Labels, Term

NOT_TOGETHER = Refusal(("node(s) didn't match pod affinity rules",), True)
NOT_APART = Refusal(("node(s) didn't match pod anti-affinity rules",), False)
UNWELCOME = Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",), False)

_HARD_WEIGHT = 1  # hardPodAffinityWeight: for required terms of pods that are there already
_NOBODY: frozenset[str] = frozenset()
_NO_LABELS: Labels = {}

LabelsOf = Callable[[str], Labels]  # of a namespace
_Counts = dict[tuple[str, str], int]  # by topology key and value


class RequiredAffinity:
    """Required terms of one pod, and of all others about it."""

    def __init__(
        self, fleet: Fleet, pod: PodInfo, labels_of: LabelsOf, without: frozenset[str] = _NOBODY
    ) -> None:
        """``without`` are uids of pods that count as gone."""
        self._fleet, self._pod, self._labels_of, self._without = fleet, pod, labels_of, without
        self._repelled = self._count_repelled()
        self._near = self._count_near()
        self._far = self._count_far()

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Why this node is too near to somebody, or too far."""
        if self._pod.shape.together and not self._is_together(node):
            return NOT_TOGETHER
        if any(
            self._far.get((term.topology_key, node.labels.get(term.topology_key, "")))
            for term in self._pod.shape.apart
            if term.topology_key in node.labels
        ):
            return NOT_APART
        if any(node.labels.get(key) == value for key, value in self._repelled):
            return UNWELCOME
        return None

    def _is_together(self, node: NodeInfo) -> bool:
        terms = self._pod.shape.together
        if any(term.topology_key not in node.labels for term in terms):
            return False
        if all((one.topology_key, node.labels[one.topology_key]) in self._near for one in terms):
            return True
        # The first of a series that wants to be near itself has nobody to be near to.
        namespace = self._pod.key[0]
        return not self._near and all(
            term.matches(namespace, self._labels_of(namespace), self._pod.labels) for term in terms
        )

    def _count_repelled(self) -> _Counts:
        counts: _Counts = {}
        namespace = self._pod.key[0]
        for other in self._fleet.apart.values():
            node = self._fleet.nodes.get(other.node)
            if node is None or other.uid in self._without:
                continue
            for term in other.shape.apart:
                if term.matches(namespace, self._labels_of(namespace), self._pod.labels):
                    _count(counts, node, term)
        return counts

    def _count_near(self) -> _Counts:
        terms = self._pod.shape.together
        counts: _Counts = {}
        if not terms:
            return counts
        for other, node in self._selected(terms[0]):
            namespace = other.key[0]
            names = self._labels_of(namespace)
            if all(term.matches(namespace, names, other.labels) for term in terms):
                for term in terms:
                    _count(counts, node, term)
        return counts

    def _count_far(self) -> _Counts:
        counts: _Counts = {}
        for term in self._pod.shape.apart:
            for _, node in self._selected(term):
                _count(counts, node, term)
        return counts

    def _selected(self, term: Term) -> Iterator[tuple[PodInfo, NodeInfo]]:
        for other in selected(self._fleet, term, self._labels_of):
            node = self._fleet.nodes.get(other.node)
            if node is not None and other.uid not in self._without:
                yield other, node


def selected(fleet: Fleet, term: Term, labels_of: LabelsOf) -> Iterator[PodInfo]:
    """Bound pods that a term means."""
    names: Iterable[str] = term.namespaces
    if term.namespace_select is not None:
        by_label = [
            name
            for name in fleet.namespaces()
            if name not in term.namespaces and term.namespace_select.matches(labels_of(name))
        ]
        names = [*term.namespaces, *by_label]
    for name in names:
        yield from fleet.matching(name, term.select)


def _count(counts: _Counts, node: NodeInfo, term: Term, weight: int = 1) -> None:
    value = node.labels.get(term.topology_key)
    if value is not None:
        pair = (term.topology_key, value)
        counts[pair] = counts.get(pair, 0) + weight


def preferred_scores(
    fleet: Fleet, pod: PodInfo, feasible: Sequence[NodeInfo], labels_of: LabelsOf
) -> list[int] | None:
    """0 to 100 for each node by preferred terms; None if nobody has any that count here."""
    counts: _Counts = {}
    shape = pod.shape
    for sign, terms in ((1, shape.rather_together), (-1, shape.rather_apart)):
        for weight, term in terms:
            for other in selected(fleet, term, labels_of):
                if other.node in fleet.nodes:
                    _count(counts, fleet.nodes[other.node], term, sign * weight)
    namespace = pod.key[0]
    names = labels_of(namespace) if fleet.with_affinity else _NO_LABELS
    for other in fleet.with_affinity.values():
        if other.node not in fleet.nodes:
            continue
        for weight, term in _wishes(other):
            if term.matches(namespace, names, pod.labels):
                _count(counts, fleet.nodes[other.node], term, weight)
    if not counts:
        return None
    raw = [
        sum(n for (key, value), n in counts.items() if node.labels.get(key) == value)
        for node in feasible
    ]
    lowest, highest = min(raw), max(raw)
    if highest == lowest:
        return [0] * len(raw)
    return [int(100 * ((one - lowest) / (highest - lowest))) for one in raw]


def _wishes(other: PodInfo) -> Iterator[tuple[int, Term]]:
    """What a pod that is there would like of those that come."""
    for term in other.shape.together:
        yield _HARD_WEIGHT, term
    yield from other.shape.rather_together
    for weight, term in other.shape.rather_apart:
        yield -weight, term
