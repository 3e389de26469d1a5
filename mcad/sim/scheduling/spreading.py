"""PodTopologySpread: hard constraints as a filter, soft ones and the defaults as a score.

Modelled after ``pkg/scheduler/framework/plugins/podtopologyspread`` and KEPs 895 and 3022.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mcad.kube import selectors
from mcad.sim.scheduling.filters import Refusal, is_selected, repels
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import HOSTNAME, ZONE, Select, Spread

Json = dict[str, Any]

UNEVEN = Refusal(("node(s) didn't match pod topology spread constraints",), False)
UNLABELLED = Refusal((f"{UNEVEN.reasons[0]} (missing required label)",), True)
_NOBODY: frozenset[str] = frozenset()

FindOwner = Callable[[str, str, str], Json | None]  # kind, namespace, name


class HardSpread:
    """The counts that DoNotSchedule constraints of one pod are judged by."""

    def __init__(self, fleet: Fleet, pod: PodInfo, without: frozenset[str] = _NOBODY) -> None:
        """``without`` are uids of pods that count as gone."""
        self._judged: list[tuple[Spread, dict[str, int], int, bool]] = []
        constraints = pod.shape.hard_spread
        counted = [
            node
            for node in fleet.nodes.values()
            if all(one.topology_key in node.labels for one in constraints)
        ]
        for one in constraints:
            domains: dict[str, int] = {}
            included = {node.name: node for node in counted if _included(one, pod, node)}
            for node in included.values():
                domains.setdefault(node.labels[one.topology_key], 0)
            for other in _counted(fleet, pod.key[0], one.select, without):
                if other.node in included:
                    domains[included[other.node].labels[one.topology_key]] += 1
            least = min(domains.values(), default=_NO_DOMAIN)
            if len(domains) < one.min_domains:
                least = 0
            self._judged.append((one, domains, least, one.select.matches(pod.labels)))

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Why this node would make it too uneven."""
        for one, domains, least, counts_itself in self._judged:
            domain = node.labels.get(one.topology_key)
            if domain is None:
                return UNLABELLED
            if domains.get(domain, 0) + counts_itself - least > one.max_skew:
                return UNEVEN
        return None


_NO_DOMAIN = 2**31 - 1  # nothing is too uneven if no node counts


class SoftSpread:
    """Scores by ScheduleAnyway constraints, or by kube-scheduler's own where a pod has none."""

    def __init__(
        self, fleet: Fleet, pod: PodInfo, feasible: Sequence[NodeInfo], soft: Sequence[Spread]
    ) -> None:
        """``feasible`` are the nodes to choose among."""
        self._soft = soft
        by_default = pod.shape.spreads_by_default
        self._ignored = {
            node.name
            for node in feasible
            if not by_default and not all(one.topology_key in node.labels for one in soft)
        }
        self._counts = [self._count(fleet, pod, one, feasible) for one in soft]
        self._weights = [
            math.log(self._size(one, count, feasible) + 2)
            for one, count in zip(soft, self._counts, strict=True)
        ]

    def scores(self, feasible: Sequence[NodeInfo]) -> list[int]:
        """0 to 100 for each node."""
        raw = [None if node.name in self._ignored else self._raw(node) for node in feasible]
        known = [score for score in raw if score is not None]
        highest, lowest = max(known, default=0), min(known, default=0)
        if not highest:
            return [0 if score is None else 100 for score in raw]
        return [0 if one is None else 100 * (highest + lowest - one) // highest for one in raw]

    def _raw(self, node: NodeInfo) -> int:
        score = 0.0
        for one, counts, weight in zip(self._soft, self._counts, self._weights, strict=True):
            domain = node.labels.get(one.topology_key)
            if domain is not None:
                place = node.name if one.topology_key == HOSTNAME else domain
                score += counts.get(place, 0) * weight + (one.max_skew - 1)
        return math.floor(score + 0.5)

    def _count(
        self, fleet: Fleet, pod: PodInfo, one: Spread, feasible: Sequence[NodeInfo]
    ) -> dict[str, int]:
        """Pods by domain; by node where the domain is one."""
        by_node = one.topology_key == HOSTNAME
        counts: dict[str, int] = {}
        if not by_node:
            for node in feasible:
                if node.name not in self._ignored:
                    counts.setdefault(node.labels.get(one.topology_key, ""), 0)
        for other in _counted(fleet, pod.key[0], one.select):
            if by_node:
                counts[other.node] = counts.get(other.node, 0) + 1
                continue
            node_of = fleet.nodes.get(other.node)
            if node_of is None or not self._is_counted(pod, one, node_of):
                continue
            domain = node_of.labels.get(one.topology_key, "")
            if domain in counts:
                counts[domain] += 1
        return counts

    def _is_counted(self, pod: PodInfo, one: Spread, node: NodeInfo) -> bool:
        if not pod.shape.spreads_by_default and not all(
            constraint.topology_key in node.labels for constraint in self._soft
        ):
            return False
        return _included(one, pod, node)

    def _size(self, one: Spread, counts: dict[str, int], feasible: Sequence[NodeInfo]) -> int:
        return len(feasible) - len(self._ignored) if one.topology_key == HOSTNAME else len(counts)


def default_constraints(wanted: Select) -> tuple[Spread, ...]:
    """kube-scheduler's system defaults (KEP-1258)."""
    return Spread(HOSTNAME, 3, wanted), Spread(ZONE, 5, wanted)


def default_select(pod: PodInfo, services: Iterable[Json], find: FindOwner) -> Select | None:
    """What the pod's services and its controller select; None if there is nothing."""
    pairs: dict[str, str] = {}
    for selector in services:
        pairs |= selector
    owned = _owner_selector(pod, find)
    own_pairs = dict(owned.get("matchLabels") or {}) if owned else {}
    expressions = (owned.get("matchExpressions") or []) if owned else []
    pairs |= own_pairs
    if not pairs and not expressions:
        return None
    selector = {"matchLabels": pairs, "matchExpressions": expressions}
    try:
        test = selectors.label_selector(selector)
    except ValueError:
        return None
    return Select(test, tuple(pairs.items()))


def _owner_selector(pod: PodInfo, find: FindOwner) -> Json | None:
    owner = pod.controller
    if owner is None:
        return None
    kind = (owner.get("apiVersion"), owner.get("kind"))
    if kind not in {
        ("v1", "ReplicationController"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
    }:
        return None
    found = find(owner["kind"], pod.key[0], owner["name"])
    selector = ((found or {}).get("spec") or {}).get("selector")
    if kind[1] == "ReplicationController" and selector:
        return {"matchLabels": selector}
    return selector or None


def _included(one: Spread, pod: PodInfo, node: NodeInfo) -> bool:
    if one.honours_affinity and not is_selected(pod.shape, node):
        return False
    return not (one.honours_taints and repels(node.taints, pod.shape.tolerations))


def _counted(
    fleet: Fleet, namespace: str, wanted: Select, without: frozenset[str] = _NOBODY
) -> Iterable[PodInfo]:
    if wanted.is_empty:
        return ()
    return (
        pod
        for pod in fleet.matching(namespace, wanted)
        if not pod.terminating and pod.uid not in without
    )
