"""All workload controllers of a cluster, on shared indexes."""

from __future__ import annotations

from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.daemonset import DaemonSetController
from mcad.sim.controllers.deployment import DeploymentController
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.job import JobController
from mcad.sim.controllers.jobpods import JobPodReleaser
from mcad.sim.controllers.replicaset import ReplicaSetController, ReplicationController
from mcad.sim.controllers.statefulset import StatefulSetController
from mcad.sim.registry import Registry


class Workloads:
    """What kube-controller-manager runs for workloads."""

    def __init__(self, registry: Registry) -> None:
        """Nothing happens before ``start``."""
        pods = OwnedIndex(registry, registry.kind("v1", "Pod"))
        sets = OwnedIndex(registry, registry.kind("apps/v1", "ReplicaSet"))
        self._indexes = (pods, sets)
        self.controllers: tuple[Controller, ...] = (
            DeploymentController(registry, pods, sets),
            ReplicaSetController(registry, pods),
            ReplicationController(registry, pods),
            StatefulSetController(registry, pods),
            DaemonSetController(registry, pods),
            JobController(registry, pods),
            JobPodReleaser(registry, pods),
        )

    def start(self) -> None:
        """Run them all, on the running loop."""
        for index in self._indexes:
            index.start()
        for controller in self.controllers:
            controller.start()

    def stop(self) -> None:
        """Stop them; what is in the registry stays."""
        for controller in reversed(self.controllers):
            controller.stop()
        for index in self._indexes:
            index.stop()
