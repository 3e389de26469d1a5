"""A copy of the nodes, those that are to come included, on which pods are tried."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from mcad.sim.objects.requests import amounts, complete, whole
from mcad.sim.scheduling.filters import has_room, static_refusal
from mcad.sim.scheduling.fleet import NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import Shapes

Json = dict[str, Any]
IGNORED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints of a node that is not ready yet: it is expected to be."""


class Room:
    """What is free where, by the books of the autoscaler."""

    def __init__(self, shapes: Shapes, startup_taint: str) -> None:
        self._shapes = shapes
        self._ignored = {*IGNORED, startup_taint}
        self.nodes: dict[str, NodeInfo] = {}
        self._count = 0

    def add(self, node: Json) -> None:
        """A node that is there, or is to come."""
        meta, spec = node["metadata"], node.get("spec") or {}
        taints = [one for one in spec.get("taints") or () if one["key"] not in self._ignored]
        self.nodes[meta["name"]] = NodeInfo(
            meta["name"],
            node,
            meta.get("labels") or {},
            taints,
            bool(spec.get("unschedulable")),
            whole(amounts((node.get("status") or {}).get("allocatable"))),
        )

    def bind(self, pod: Json) -> None:
        """A pod that is on a node."""
        if node := self.nodes.get(pod["spec"].get("nodeName", "")):
            node.add(self._info(pod))

    def place(self, pod: Json, among: Iterable[str] | None = None) -> str:
        """Put a pod on the first node that takes it, by name; returns "" if there is none."""
        info = self._info(pod)
        for name in sorted(self.nodes if among is None else among):
            node = self.nodes[name]
            if static_refusal(info.shape, node) is None and has_room(info.shape, node):
                node.add(info)
                return name
        return ""

    def place_all(self, pods: Sequence[Json]) -> list[Json]:
        """Put pods where there is room; returns those for which there is none."""
        return [pod for pod in pods if not self.place(pod)]

    def copy(self) -> Room:
        """The same, to try something on."""
        made = copy.copy(self)
        made.nodes = {name: _copied(node) for name, node in self.nodes.items()}
        return made

    def _info(self, pod: Json) -> PodInfo:
        self._count += 1
        meta = pod["metadata"]
        return PodInfo(
            (meta["namespace"], str(self._count)),
            f"{self._count}",
            meta.get("labels") or {},
            self._shapes.of(pod),
            self._count,
        )


def pods_of(template: Json, namespace: str, count: int) -> list[Json]:
    """So many pods of a PodTemplate."""
    given = copy.deepcopy(template["template"])
    complete(given["spec"])
    labels = (given.get("metadata") or {}).get("labels") or {}
    return [{"metadata": {"namespace": namespace, "labels": labels}, "spec": given["spec"]}] * count


def _copied(node: NodeInfo) -> NodeInfo:
    made = copy.copy(node)
    made.requested, made.pods, made.ports = dict(node.requested), dict(node.pods), dict(node.ports)
    return made
