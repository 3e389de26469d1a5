"""One pod against all nodes: the best of those that can take it, or why none can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from mcad.sim.scheduling import scoring
from mcad.sim.scheduling.affinity import RequiredAffinity, preferred_scores
from mcad.sim.scheduling.filters import Ground, Refusal, has_room, room_refusal, with_nominated
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import Labels, Shape
from mcad.sim.scheduling.spreading import (
    HardSpread,
    SoftSpread,
    default_constraints,
    default_select,
)

Json = dict[str, Any]

NO_NODES = "no nodes available to schedule pods"
_CONTRADICTION = "pod affinity terms conflict. not found"
_NOBODY: frozenset[str] = frozenset()
_BOARDS = 4096
_NO_ROOM = -1


class Surroundings(Protocol):
    """What is asked of the rest of the cluster."""

    def namespace_labels(self, namespace: str) -> Labels:
        """The labels of a namespace."""
        ...

    def owner(self, kind: str, namespace: str, name: str) -> Json | None:
        """A ReplicationController, ReplicaSet or StatefulSet."""
        ...

    def service_selectors(self, pod: PodInfo) -> Iterable[Json]:
        """Selectors of the services that select this pod."""
        ...


@dataclass(slots=True)
class Diagnosis:
    """Why no node takes a pod."""

    refusals: dict[str, Refusal]
    nodes: int
    is_contradictory: bool = False  # the pod's node affinity, whatever the nodes are

    @property
    def may_preempt(self) -> bool:
        """Whether there is anything to try."""
        return bool(self.nodes) and not self.is_contradictory

    def message(self) -> str:
        """kube-scheduler's sentence, without what preemption says."""
        if not self.nodes:
            return NO_NODES
        if self.is_contradictory:
            return f"0/{self.nodes} nodes are available: {_CONTRADICTION}"
        reasons = Counter(one for refusal in self.refusals.values() for one in refusal.reasons)
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"0/{self.nodes} nodes are available: {listed}."


class _Board:
    """The scores of all open nodes for one kind of pod, kept up with what changes there."""

    def __init__(self, fleet: Fleet, ground: Ground, shape: Shape) -> None:
        self.ground = ground
        self.scores = [_score(shape, node) for node in ground.open]
        self._index = {node.name: index for index, node in enumerate(ground.open)}
        self._seen = fleet.forgotten + len(fleet.changed)

    def refresh(self, fleet: Fleet, shape: Shape) -> None:
        """Look again at the nodes that have changed."""
        start = self._seen - fleet.forgotten
        self._seen = fleet.forgotten + len(fleet.changed)
        if start < 0 or len(fleet.changed) - start > len(self.scores):
            self.scores = [_score(shape, node) for node in self.ground.open]
            return
        for node in fleet.changed[start:]:
            index = self._index.get(node.name)
            if index is not None:
                self.scores[index] = _score(shape, node)


def _score(shape: Shape, node: NodeInfo) -> int:
    return scoring.resource_score(shape, node) if has_room(shape, node) else _NO_ROOM


class Decider:
    """Keeps what can be known from one decision to the next."""

    def __init__(self, fleet: Fleet, around: Surroundings, rng: Random) -> None:
        """``rng`` breaks ties, as kube-scheduler does."""
        self.fleet = fleet
        self._around = around
        self._rng = rng
        self._grounds: dict[str, Ground] = {}
        self._boards: dict[tuple[Any, ...], _Board] = {}

    def ground(self, shape: Shape) -> Ground:
        """The nodes that admit such pods at all."""
        ground = self._grounds.get(shape.static)
        if ground is None or ground.version != self.fleet.static_version:
            if len(self._grounds) >= _BOARDS:
                self._grounds.clear()
            ground = self._grounds[shape.static] = Ground(self.fleet, shape)
        return ground

    def choose(self, pod: PodInfo) -> NodeInfo | None:
        """The best node, None if there is none; among equals one at random."""
        best = self.best(pod)
        return self._rng.choice(best) if len(best) > 1 else next(iter(best), None)

    def best(self, pod: PodInfo) -> list[NodeInfo]:
        """The nodes that can take the pod and that none is better than."""
        shape, fleet = pod.shape, self.fleet
        feasible, scores = self._with_room(pod)
        if feasible and shape.hard_spread:
            spread = HardSpread(fleet, pod)
            feasible, scores = _keep(feasible, scores, spread)
        if feasible and (fleet.apart or shape.together or shape.apart):
            affinity = RequiredAffinity(fleet, pod, self._around.namespace_labels)
            feasible, scores = _keep(feasible, scores, affinity)
        if len(feasible) < 2:
            return feasible
        self._add_scores(pod, feasible, scores)
        highest = max(scores)
        return [node for node, score in zip(feasible, scores, strict=True) if score == highest]

    def diagnose(self, pod: PodInfo) -> Diagnosis:
        """Why ``choose`` found nothing."""
        ground = self.ground(pod.shape)
        refusals = dict(ground.refused)
        others = self.others(pod, _NOBODY)
        for node in ground.open:
            refusal = room_refusal(pod.shape, with_nominated(node, pod))
            for other in others:
                refusal = refusal or other.refusal(node)
            if refusal is not None:
                refusals[node.name] = refusal
        return Diagnosis(refusals, len(self.fleet.nodes), ground.is_contradictory)

    def others(self, pod: PodInfo, without: frozenset[str]) -> list[HardSpread | RequiredAffinity]:
        """The filters that look at pods on other nodes, in kube-scheduler's order."""
        found: list[HardSpread | RequiredAffinity] = []
        if pod.shape.hard_spread:
            found.append(HardSpread(self.fleet, pod, without))
        if self.fleet.apart or pod.shape.together or pod.shape.apart:
            labels_of = self._around.namespace_labels
            found.append(RequiredAffinity(self.fleet, pod, labels_of, without))
        return found

    def might_fit(self, shape: Shape, nodes: Iterable[NodeInfo]) -> bool:
        """Whether one of these nodes could take such a pod now; cheap, and never wrongly False."""
        refused = self.ground(shape).refused
        return any(node.name not in refused and has_room(shape, node) for node in nodes)

    # -- parts ---------------------------------------------------------------------------------

    def _board(self, shape: Shape) -> _Board:
        key = (shape.static, shape.request, shape.scored_cpu, shape.scored_memory, shape.ports)
        board = self._boards.get(key)
        ground = self.ground(shape)
        if board is None or board.ground is not ground:
            if len(self._boards) >= _BOARDS:
                self._boards.clear()
            board = self._boards[key] = _Board(self.fleet, ground, shape)
        else:
            board.refresh(self.fleet, shape)
        return board

    def _with_room(self, pod: PodInfo) -> tuple[list[NodeInfo], list[int]]:
        board = self._board(pod.shape)
        nodes, scores = board.ground.open, board.scores
        if _NO_ROOM in scores:
            fitting = [index for index, score in enumerate(scores) if score != _NO_ROOM]
            nodes, scores = [nodes[i] for i in fitting], [scores[i] for i in fitting]
        if self.fleet.nominations:
            kept = [
                (node, score)
                for node, score in zip(nodes, scores, strict=True)
                if not node.nominated or has_room(pod.shape, with_nominated(node, pod))
            ]
            return [node for node, _ in kept], [score for _, score in kept]
        return nodes, list(scores)

    def _add_scores(self, pod: PodInfo, feasible: list[NodeInfo], scores: list[int]) -> None:
        shape = pod.shape
        if self.ground(shape).has_soft_taints:
            _add(scores, scoring.taint_scores(shape, feasible), scoring.TAINTS)
        _add(scores, scoring.node_affinity_scores(shape, feasible), scoring.NODE_AFFINITY)
        soft = shape.soft_spread
        if shape.spreads_by_default:
            services = self._around.service_selectors(pod)
            wanted = default_select(pod, services, self._around.owner)
            soft = () if wanted is None else default_constraints(wanted)
        if soft:
            _add(
                scores, SoftSpread(self.fleet, pod, feasible, soft).scores(feasible), scoring.SPREAD
            )
        if self.fleet.with_affinity or shape.rather_together or shape.rather_apart:
            labels_of = self._around.namespace_labels
            found = preferred_scores(self.fleet, pod, feasible, labels_of)
            _add(scores, found, scoring.POD_AFFINITY)


def _keep(
    nodes: list[NodeInfo], scores: list[int], test: HardSpread | RequiredAffinity
) -> tuple[list[NodeInfo], list[int]]:
    kept = [
        (node, score)
        for node, score in zip(nodes, scores, strict=True)
        if test.refusal(node) is None
    ]
    return [node for node, _ in kept], [score for _, score in kept]


def _add(scores: list[int], more: Sequence[int] | None, weight: int) -> None:
    if more is not None:
        for index, score in enumerate(more):
            scores[index] += weight * score
