"""A whole cluster in memory: the API server's registry, its controllers, and nodes.

``async with Cluster(clock, rng) as cluster`` runs it on the present event loop: a ``VirtualLoop``
for virtual time (clock.py), an ordinary one for a cluster with viewers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from types import TracebackType
from typing import Any, Protocol, Self

from mcad.kube.clock import Clock
from mcad.kube.types import Json
from mcad.sim.controllers import nodeinfo
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.crds import CustomResourceCleanup
from mcad.sim.controllers.daemonset import DaemonSetController
from mcad.sim.controllers.deployment import DeploymentController
from mcad.sim.controllers.events import EventExpiry
from mcad.sim.controllers.gc import GarbageCollector
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.job import JobController
from mcad.sim.controllers.jobpods import JobPodReleaser
from mcad.sim.controllers.jobttl import JobTTL
from mcad.sim.controllers.kubelet import START_DELAY_S, Kubelet
from mcad.sim.controllers.namespaces import Namespaces
from mcad.sim.controllers.nodes import Nodes
from mcad.sim.controllers.replicaset import ReplicaSetController, ReplicationController
from mcad.sim.controllers.scheduler import Scheduler
from mcad.sim.controllers.statefulset import StatefulSetController
from mcad.sim.registry import Registry
from mcad.sim.times import seconds
from mcad.sim.writes import Write


class _Part(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class Cluster:
    """Registry, controllers and nodes; nothing moves before ``start``."""

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        *,
        start_delay_s: float = START_DELAY_S,
        container_events: bool = True,
    ) -> None:
        """``start_delay_s`` is how long a bound pod takes to run, in seconds.

        A simulation without a viewer saves a third of its writes without
        ``container_events``.
        """
        self.registry = Registry(clock, rng)
        self.nodes = Nodes(self.registry)
        self.scheduler = Scheduler(self.registry)
        self.kubelet = Kubelet(self.registry, start_delay_s, container_events=container_events)
        pods = OwnedIndex(self.registry, self.registry.kind("v1", "Pod"))
        sets = OwnedIndex(self.registry, self.registry.kind("apps/v1", "ReplicaSet"))
        self._parts: tuple[_Part, ...] = (
            self.nodes,
            Namespaces(self.registry),
            CustomResourceCleanup(self.registry),
            GarbageCollector(self.registry),
            pods,
            sets,
            DeploymentController(self.registry, pods, sets),
            ReplicaSetController(self.registry, pods),
            ReplicationController(self.registry, pods),
            StatefulSetController(self.registry, pods),
            DaemonSetController(self.registry, pods),
            JobController(self.registry, pods),
            JobPodReleaser(self.registry, pods),
            JobTTL(self.registry),
            self.scheduler,
            self.kubelet,
            EventExpiry(self.registry),
        )
        controllers = (one for one in self._parts if isinstance(one, Controller))
        self.controllers = {type(one).__name__: one for one in controllers}
        """By class; each may be given a lag."""

    def start(self) -> None:
        """Run every controller, on the running loop."""
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        """Stop them; what is in the registry stays."""
        for part in reversed(self._parts):
            part.stop()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(  # noqa: PLR0913 - a node has so many sides
        self,
        name: str,
        cpu: str = "4",
        memory: str = "16Gi",
        pods: int = 110,
        *,
        extended: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> Json:
        """A node that is ready; ``extended`` are more resources, as ``nvidia.com/gpu``.

        Raises Failure if there is one of this name.
        """
        capacity = {"cpu": cpu, "memory": memory, "pods": str(pods)} | dict(extended or {})
        return self.nodes.register(nodeinfo.new_node(name, capacity, labels, taints))

    def fail_node(self, name: str) -> None:
        """Its kubelet is heard no longer; raises Failure 404."""
        self._set_conditions(name, nodeinfo.silent)

    def recover_node(self, name: str) -> None:
        """Its kubelet is heard again; raises Failure 404."""
        self._set_conditions(name, nodeinfo.healthy)

    def cordon(self, name: str, *, unschedulable: bool = True) -> None:
        """No new pods there, or again; raises Failure 404."""
        self.registry.patch(
            self.registry.kind("v1", "Node"),
            ("", name),
            lambda node: node | {"spec": node["spec"] | {"unschedulable": unschedulable}},
        )

    def remove_node(self, name: str) -> None:
        """Delete it; its pods follow after a while. Raises Failure 404."""
        self.registry.delete(self.registry.kind("v1", "Node"), ("", name))

    def _set_conditions(self, name: str, make: Any) -> None:
        at = seconds(self.registry.clock.now_us())

        def change(node: Json) -> Json:
            status = node.get("status") or {}
            conditions = make(status.get("conditions") or (), at)
            return node | {"status": status | {"conditions": conditions}}

        kind = self.registry.kind("v1", "Node")
        self.registry.patch(kind, ("", name), change, Write(trusted=True, subresource="status"))
