"""The cluster of MCAD's tutorial: one small node, most of it taken by pods of others."""

from __future__ import annotations

from mcad.cli.demo_cluster.tutorial_objects import (
    FOREIGN_NAMESPACE,
    NODE,
    NODE_CPU,
    NODE_MEMORY,
    NODE_PODS,
    foreign_pods,
)
from tests.controlplane.controlplane import ControlPlane


def load_tutorial_node(plane: ControlPlane) -> None:
    """Add the node, with 1750m and 1194Mi requested by pods that run on it."""
    plane.add_node(NODE, cpu=NODE_CPU, memory=NODE_MEMORY, pods=NODE_PODS)
    pods = foreign_pods()
    plane.apply(pods)
    plane.wait_for(lambda: _running(plane) == len(pods), 30, "the foreign pods run")


def _running(plane: ControlPlane) -> int:
    _, pods = plane.request("GET", f"/api/v1/namespaces/{FOREIGN_NAMESPACE}/pods")
    return sum(pod["status"]["phase"] == "Running" for pod in pods["items"])
