"""Whether one node can take a pod, by what is known of the node alone; in kube-scheduler's words.

NodeUnschedulable, TaintToleration, NodeAffinity (with ``nodeSelector``), NodePorts,
NodeResourcesFit, and of InterPodAffinity what a pod that comes says about the pods of one node:
that is what the dispatcher's fit test counts. A refusal is a tuple of reasons.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcad.kube.types import Json
from mcad.sim.scheduling.fleet import Fleet, NodeInfo
from mcad.sim.scheduling.shapes import Shape
from mcad.sim.selectors import node_selector_terms

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
REPELLING = ("NoSchedule", "NoExecute")


Refusal = tuple[str, ...]

CORDONED: Refusal = ("node(s) were unschedulable",)
TAINTED: Refusal = ("node(s) had untolerated taint(s)",)
NOT_SELECTED: Refusal = ("node(s) didn't match Pod's node affinity/selector",)
PORTS_TAKEN: Refusal = ("node(s) didn't have free ports for the requested pod ports",)
NOT_APART: Refusal = ("node(s) didn't match pod anti-affinity rules",)


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether a toleration is for this taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case _:
            return False


def tolerated(tolerations: Iterable[Json], taint: Json) -> bool:
    """Whether any toleration is for this taint."""
    return any(tolerates(one, taint) for one in tolerations)


def repels(taints: Iterable[Json], tolerations: Iterable[Json]) -> bool:
    """Whether a taint keeps the pod away."""
    return any(
        taint.get("effect") in REPELLING and not tolerated(tolerations, taint) for taint in taints
    )


def is_selected(shape: Shape, node: NodeInfo) -> bool:
    """Whether the pod's node selector and required node affinity take the node."""
    if any(node.labels.get(key) != value for key, value in shape.selector.items()):
        return False
    return shape.affinity_terms is None or node_selector_terms(shape.affinity_terms, node.obj)


def static_refusal(shape: Shape, node: NodeInfo) -> Refusal | None:
    """Why this node never takes such a pod, whatever is free there."""
    if node.unschedulable and not tolerated(
        shape.tolerations, {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    ):
        return CORDONED
    if node.taints and repels(node.taints, shape.tolerations):
        return TAINTED
    if not is_selected(shape, node):
        return NOT_SELECTED
    return None


def has_room(shape: Shape, node: NodeInfo) -> bool:
    """Whether resources and host ports suffice; ``room_refusal`` says why not."""
    allocatable, requested = node.allocatable, node.requested
    if len(node.pods) >= allocatable.get("pods", 0):
        return False
    for name, amount in shape.request:
        if amount > allocatable.get(name, 0) - requested.get(name, 0):
            return False
    if shape.ports and node.has_conflict(shape.ports):
        return False
    return not (shape.apart and _is_too_near(shape, node))


def room_refusal(shape: Shape, node: NodeInfo) -> Refusal | None:
    """What is missing on this node."""
    if shape.ports and node.has_conflict(shape.ports):
        return PORTS_TAKEN
    free = {
        name: node.allocatable.get(name, 0) - node.requested.get(name, 0)
        for name, _ in shape.request
    }
    short = [f"Insufficient {name}" for name, amount in shape.request if amount > free[name]]
    if len(node.pods) >= node.allocatable.get("pods", 0):
        short.insert(0, "Too many pods")
    if not short and _is_too_near(shape, node):
        return NOT_APART
    return tuple(short) or None


def _is_too_near(shape: Shape, node: NodeInfo) -> bool:
    return any(
        pod.key[0] == shape.namespace and is_meant(pod.labels)
        for is_meant in shape.apart
        for pod in node.pods.values()
    )


class Ground:
    """The nodes that admit pods of one kind at all; made anew when nodes change."""

    def __init__(self, fleet: Fleet, shape: Shape) -> None:
        """``shape`` stands for all with the same ``static``."""
        self.version = fleet.static_version
        self.refused: dict[str, Refusal] = {}
        self.open: list[NodeInfo] = []
        for node in fleet.nodes.values():
            refusal = static_refusal(shape, node)
            if refusal is None:
                self.open.append(node)
            else:
                self.refused[node.name] = refusal
        self.has_soft_taints = any(
            taint.get("effect") == "PreferNoSchedule" for node in self.open for taint in node.taints
        )
