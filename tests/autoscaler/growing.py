"""A cluster that grows: the world of the fault histories with an autoscaler in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from mcad.api import labels
from mcad.api.scale_up.objects import priority_class
from mcad.api.scale_up.settings import Via
from mcad.kube.client import Client
from mcad.kube.kinds import CRDS
from mcad.kube.resource import Resource
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from tests.autoscaler.dispatches import Dispatches, begun
from tests.autoscaler.groups import KIND, Group, Moods
from tests.autoscaler.kinds import BUFFERS, REQUESTS, TEMPLATES, crds
from tests.autoscaler.standin import StandIn, start
from tests.autoscaler.waits import Waits
from tests.faults.edits import STORAGE
from tests.faults.injection import Plan
from tests.faults.scenarios import Scenario
from tests.faults.world import Outcome, World, run

PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
Json = dict[str, Any]

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
        self.autoscaler = StandIn(
            self._users,
            groups,
            moods,
            unneeded_s=60.0,
            ordered=self._ordered,
            version=lambda: registry.store.version,
        )
        self._work: asyncio.Task[None] | None = None
        self._via = scenario.config.scale_up.via
        self.dispatches = Dispatches(registry.store)
        self.waits = Waits(registry.store, registry.clock, self.dispatches)
        self.left: list[str] = []  # of requests, at the end
        self.unneeded: list[str] = []  # orders for AppWrappers that did not wait

    def _may_lack_room(self, owner: str) -> bool:
        """Placeholder pods ask for nodes by having none, and pods in their place preempt them."""
        return self._via is Via.PLACEHOLDER_PODS or super()._may_lack_room(owner)

    def _ordered(self, asking: Sequence[Json], count: int) -> None:
        """Nodes are needed if an AppWrapper waits for them, or a pod of one that is dispatched."""
        found = (obj for _, obj in self._cluster.registry.store.items(STORAGE))
        of_uid = {one["metadata"]["uid"]: one for one in found}
        tags = [labels.labels_of(one) for one in asking]
        waiting = [of_uid.get(one.get(labels.SCALE_UP_UID, "")) for one in tags]
        is_needed = any(labels.SCALE_UP_UID not in one for one in tags)
        if not (is_needed or any(one and _waits(one) for one in waiting)):
            self.unneeded += [" and ".join(one["metadata"]["name"] for one in asking)] * count

    @property
    def wasted(self) -> set[str]:
        """The nodes that came and had no pod of an AppWrapper."""
        return set(self.autoscaler.figures.ready_s) - self.waits.used

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
            self.left += [f"{kind.plural} {one['metadata']['name']}" for one in found]
        self.troubles += [f"left at the end: {one}" for one in self.left]
        self.troubles += [
            f"dispatched without nodes: {one}" for one in self.dispatches.without_nodes
        ]
        if self._work is not None:
            self._work.cancel()
        return outcome


def _waits(appwrapper: Json) -> bool:
    """Whether it is to be dispatched and is not."""
    if appwrapper["spec"].get("suspend") or "deletionTimestamp" in appwrapper["metadata"]:
        return False
    return begun(appwrapper) is None


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
