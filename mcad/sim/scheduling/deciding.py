"""One pod against all nodes: the best of those that can take it, or why none can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from mcad.sim.scheduling import scoring
from mcad.sim.scheduling.filters import Ground, has_room, room_refusal
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import Shape

_NO_NODES = "no nodes available to schedule pods"
_NOT_KNOWN = "the embedded scheduler does not know this; a real cluster does"
_BOARDS = 4096
_NO_ROOM = -1


class _Board:
    """The scores of all open nodes for one kind of pod, kept up with what changes there."""

    def __init__(self, fleet: Fleet, ground: Ground, shape: Shape) -> None:
        self.ground = ground
        self.scores = [_score(shape, node) for node in ground.open]
        self._index = {node.name: index for index, node in enumerate(ground.open)}
        self._seen = fleet.forgotten + len(fleet.changed)

    def refresh(self, fleet: Fleet, shape: Shape) -> None:
        """Update the scores of the nodes that have changed."""
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
    """Chooses nodes; scores and verdicts are kept from one decision to the next."""

    def __init__(self, fleet: Fleet, rng: Random) -> None:
        """``rng`` breaks ties, as kube-scheduler does."""
        self.fleet = fleet
        self._rng = rng
        self._grounds: dict[str, Ground] = {}
        self._boards: dict[Shape, _Board] = {}

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
        """The best of the nodes that can take the pod: all of equal score."""
        feasible, scores = self._with_room(pod.shape)
        if len(feasible) < 2:
            return feasible
        self._add_scores(pod.shape, feasible, scores)
        highest = max(scores)
        return [node for node, score in zip(feasible, scores, strict=True) if score == highest]

    def why_none(self, shape: Shape) -> str:
        """Why there is no node for such a pod, as kube-scheduler says it without preemption."""
        if shape.unknown:
            return f"{', '.join(shape.unknown)}: {_NOT_KNOWN}"
        nodes = len(self.fleet.nodes)
        if not nodes:
            return _NO_NODES
        ground = self.ground(shape)
        refusals = [*ground.refused.values()]
        refusals += [room_refusal(shape, node) or () for node in ground.open]
        reasons = Counter(one for refusal in refusals for one in refusal)
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"0/{nodes} nodes are available: {listed}."

    def might_fit(self, shape: Shape, nodes: Iterable[NodeInfo]) -> bool:
        """Whether one of these nodes could take such a pod now; cheap, and never wrongly False."""
        if shape.unknown:
            return False
        refused = self.ground(shape).refused
        return any(node.name not in refused and has_room(shape, node) for node in nodes)

    # -- parts ---------------------------------------------------------------------------------

    def _board(self, shape: Shape) -> _Board:
        board = self._boards.get(shape)
        ground = self.ground(shape)
        if board is None or board.ground is not ground:
            if len(self._boards) >= _BOARDS:
                self._boards.clear()
            board = self._boards[shape] = _Board(self.fleet, ground, shape)
        else:
            board.refresh(self.fleet, shape)
        return board

    def _with_room(self, shape: Shape) -> tuple[list[NodeInfo], list[int]]:
        if shape.unknown:
            return [], []
        board = self._board(shape)
        nodes, scores = board.ground.open, board.scores
        fitting = [index for index, score in enumerate(scores) if score != _NO_ROOM]
        return [nodes[i] for i in fitting], [scores[i] for i in fitting]

    def _add_scores(self, shape: Shape, feasible: list[NodeInfo], scores: list[int]) -> None:
        if self.ground(shape).has_soft_taints:
            _add(scores, scoring.taint_scores(shape, feasible), scoring.TAINTS)
        _add(scores, scoring.node_affinity_scores(shape, feasible), scoring.NODE_AFFINITY)


def _add(scores: list[int], more: Sequence[int] | None, weight: int) -> None:
    if more is not None:
        for index, score in enumerate(more):
            scores[index] += weight * score
