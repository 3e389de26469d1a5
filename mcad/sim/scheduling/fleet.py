"""Nodes, what runs on them, and the running sums that make a decision cheap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcad.kube.types import Json
from mcad.sim.objects.requests import amounts, whole
from mcad.sim.scheduling.shapes import ANY_IP, Labels, Port, Shape

_LISTED = 10_000


@dataclass(eq=False, slots=True)
class PodInfo:
    """A pod that waits, or that takes up room on a node."""

    key: tuple[str, str]
    uid: str
    labels: Labels
    shape: Shape
    order: int  # of arrival
    node: str = ""
    told: str | None = None  # why it waits, as its condition says
    is_leaving: bool = False  # it is being deleted


@dataclass(eq=False, slots=True)
class NodeInfo:
    """A node with the sums over its pods."""

    name: str
    obj: Json
    labels: Labels
    taints: list[Json]
    unschedulable: bool
    allocatable: dict[str, int]
    requested: dict[str, int] = field(default_factory=dict)
    scored_cpu: int = 0
    scored_memory: int = 0
    pods: dict[str, PodInfo] = field(default_factory=dict)
    ports: dict[Port, int] = field(default_factory=dict)

    def add(self, pod: PodInfo) -> None:
        self.pods[pod.uid] = pod
        self._count(pod.shape, 1)

    def remove(self, pod: PodInfo) -> None:
        del self.pods[pod.uid]
        self._count(pod.shape, -1)

    def has_conflict(self, wanted: Iterable[Port]) -> bool:
        """Whether one of these host ports is taken; 0.0.0.0 is every address."""
        return any(
            number == other and protocol == used and (ANY_IP in (ip, address) or ip == address)
            for ip, protocol, number in wanted
            for address, used, other in self.ports
        )

    def _count(self, shape: Shape, sign: int) -> None:
        requested = self.requested
        for name, amount in shape.request:
            requested[name] = requested.get(name, 0) + sign * amount
        self.scored_cpu += sign * shape.scored_cpu
        self.scored_memory += sign * shape.scored_memory
        for port in shape.ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]


class Fleet:
    """All nodes, and all pods that are bound and not finished."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.bound: dict[str, PodInfo] = {}
        self.priorities: Counter[int] = Counter()  # of the bound pods
        self.static_version = 0  # grows when a node comes, goes, or admits others than before
        self.changed: list[NodeInfo] = []  # nodes in the order of the changes to what is free there
        self.forgotten = 0  # changes that are not listed any more
        self._homeless: dict[str, dict[str, PodInfo]] = {}  # bound to a node that is not there

    # -- nodes ---------------------------------------------------------------------------------

    def set_node(self, obj: Json) -> NodeInfo | None:
        """Take in a node as it is now; None if nothing changed that matters here."""
        name = obj["metadata"]["name"]
        known = self.nodes.get(name)
        fresh = NodeInfo(
            name,
            obj,
            obj["metadata"].get("labels") or {},
            obj.get("spec", {}).get("taints") or [],
            bool(obj.get("spec", {}).get("unschedulable")),
            whole(amounts((obj.get("status") or {}).get("allocatable"))),
        )
        if known is None:
            self.nodes[name] = known = fresh
            for pod in self._homeless.pop(name, {}).values():
                known.add(pod)
            self.static_version += 1
            return known
        known.obj = obj
        if _static(known) != _static(fresh):
            known.labels, known.taints = fresh.labels, fresh.taints
            known.unschedulable = fresh.unschedulable
            self.static_version += 1
        elif known.allocatable == fresh.allocatable:
            return None
        known.allocatable = fresh.allocatable
        self._touch(known)
        return known

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods are not, for a while."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.static_version += 1
            if node.pods:
                self._homeless[name] = node.pods

    # -- pods ----------------------------------------------------------------------------------

    def bind(self, pod: PodInfo, node: str) -> None:
        """A pod takes up room."""
        pod.node = node
        self.bound[pod.uid] = pod
        self.priorities[pod.shape.priority] += 1
        if node in self.nodes:
            self.nodes[node].add(pod)
            self._touch(self.nodes[node])
        else:
            self._homeless.setdefault(node, {})[pod.uid] = pod

    def release(self, uid: str) -> PodInfo | None:
        """A pod takes up room no longer."""
        pod = self.bound.pop(uid, None)
        if pod is None:
            return None
        self.priorities -= Counter((pod.shape.priority,))  # keeps no zeros
        node = self.nodes.get(pod.node)
        if node is not None:
            node.remove(pod)
            self._touch(node)
        elif (lost := self._homeless.get(pod.node)) is not None:
            lost.pop(uid, None)
        return pod

    def relabel(self, pod: PodInfo, labels: Labels) -> None:
        """The labels of a bound pod were changed."""
        pod.labels = labels
        if pod.node in self.nodes:
            self._touch(self.nodes[pod.node])

    def _touch(self, node: NodeInfo) -> None:
        if len(self.changed) >= _LISTED:
            self.forgotten += len(self.changed)
            self.changed.clear()
        self.changed.append(node)


def _static(node: NodeInfo) -> tuple[Any, ...]:
    return node.labels, node.taints, node.unschedulable
