"""All workload controllers of a cluster, on the indexes that they share."""

from __future__ import annotations

from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.deployment import DeploymentController
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.job import JobController
from mcad.sim.controllers.replicaset import ReplicaSetController, ReplicationController
from mcad.sim.controllers.ttl import TtlAfterFinished
from mcad.sim.registry import Registry


def workloads(registry: Registry) -> list[Controller]:
    """They start in this order, owners before what they own."""
    pods = OwnedIndex(registry, registry.kind("v1", "Pod"))
    replicasets = OwnedIndex(registry, registry.kind("apps/v1", "ReplicaSet"))
    return [
        DeploymentController(registry, pods, replicasets),
        ReplicaSetController(registry, pods, replicasets),
        ReplicationController(registry, pods),
        JobController(registry, pods),
        TtlAfterFinished(registry),
    ]
