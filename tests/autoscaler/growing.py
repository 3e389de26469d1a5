"""A cluster that grows: the world of the fault histories with an autoscaler in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

from mcad.api import labels
from mcad.api.scale_up.objects import priority_class
from mcad.api.scale_up.settings import Via
from mcad.kube.client import Client
from mcad.kube.kinds import CRDS
from mcad.kube.resource import Resource
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from mcad.sim.store import Change
from tests.autoscaler.groups import KIND, Group, Moods
from tests.autoscaler.kinds import BUFFERS, REQUESTS, TEMPLATES, crds
from tests.autoscaler.standin import StandIn, start
from tests.faults.injection import Plan
from tests.faults.scenarios import Scenario
from tests.faults.world import Outcome, World, run

PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
LATE_S = 5.0
PODS = ("", "pods")
LEFT = (REQUESTS, BUFFERS, TEMPLATES)


class GrowingWorld(World):
    """Without nodes at the beginning. At the end nothing is left of any request."""

    def __init__(
        self,
        groups: tuple[Group, ...],
        moods: Moods,
        cluster: Cluster,
        scenario: Scenario,
        plan: Plan,
    ) -> None:
        super().__init__(cluster, scenario, plan)
        registry = cluster.registry
        self._users = Client(SimApi(registry), registry.clock, Random(8))
        self.autoscaler = StandIn(self._users, groups, moods, unneeded_s=60.0)
        self._work: asyncio.Task[None] | None = None
        self._via = scenario.config.scale_up.via
        self.pods: set[str] = set()  # uids of those that AppWrappers have made
        self.late: set[str] = set()  # of those without a node for more than LATE_S
        self.used: set[str] = set()  # names of the nodes that had one
        self._waits: dict[str, float] = {}  # by uid: since when
        registry.store.listen(PODS, self._heard)

    def _may_lack_room(self, owner: str) -> bool:
        """Placeholder pods ask for nodes by having none, and pods in their place preempt them."""
        return self._via is Via.PLACEHOLDER_PODS or super()._may_lack_room(owner)

    def _heard(self, change: Change) -> None:
        """Count the pods of AppWrappers, and those that wait for a node for long."""
        pod, now = change.obj, self.clock.monotonic()
        tags, uid = labels.labels_of(pod), pod["metadata"]["uid"]
        if labels.APPWRAPPER_UID not in tags or labels.SCALE_UP_UID in tags:
            return
        self.pods.add(uid)
        if node := pod["spec"].get("nodeName"):
            self.used.add(node)
        if change.type == "ADDED":
            self._waits[uid] = now
        elif node or change.type == "DELETED":
            if now - self._waits.pop(uid, now) > LATE_S:
                self.late.add(uid)

    @property
    def wasted(self) -> set[str]:
        """The nodes that came and had no pod of an AppWrapper."""
        return set(self.autoscaler.figures.ready_s) - self.used

    async def _furnish(self) -> float:
        for crd in crds():
            await self._users.create(CRDS, None, crd)
        await self._users.create(PRIORITY_CLASSES, None, priority_class())
        self._work = start(self.autoscaler)
        return await super()._furnish()

    async def live_through(self) -> Outcome:
        outcome = await super().live_through()
        for kind in LEFT:
            found, _ = await self._users.list_all(kind)
            names = [one["metadata"]["name"] for one in found]
            if names:
                self.troubles.append(f"left at the end: {kind.plural} {names}")
        if self._work is not None:
            self._work.cancel()
        return outcome


def grow(
    scenario: Scenario,
    groups: tuple[Group, ...],
    moods: Moods = KIND,
    plan: Plan | None = None,
    seen: Callable[[GrowingWorld], None] = lambda world: None,
) -> Outcome:
    """Live through a scenario beside an autoscaler; ``seen`` gets the world before it begins."""

    def build(cluster: Cluster, scenario: Scenario, plan: Plan) -> GrowingWorld:
        world = partial(GrowingWorld, groups, moods)(cluster, scenario, plan)
        seen(world)
        return world

    return run(scenario, plan, build)
