"""Those that judge the stories find what they look for, and excuse no more than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from mcad.api import labels
from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.kube.client import Client
from mcad.kube.kinds import APPWRAPPERS, NODES, PODS
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.serving.server import SimApi
from tests.autoscaler.__main__ import Figures
from tests.autoscaler.dispatches import Dispatches
from tests.autoscaler.groups import Group
from tests.autoscaler.standin import DELETED
from tests.autoscaler.waits import Cause, Waits
from tests.faults.scenarios import NAMESPACE, complete, job
from tests.manifests import pod

Json = dict[str, Any]
GROUP = Group("cpus", "2", 9)


class Lab:
    """A cluster in which the test plays the dispatcher and the cloud."""

    def __init__(self, client: Client, dispatches: Dispatches, waits: Waits) -> None:
        self.client, self.dispatches, self.waits = client, dispatches, waits
        self._uids: dict[str, str] = {}
        self._count = 0

    async def wait(self, seconds: float) -> None:
        await self.client.clock.sleep(seconds)

    async def node(self, name: str) -> None:
        await self.client.create(NODES, None, GROUP.node(name))

    async def taint(self, name: str) -> None:
        node = await self.client.get(NODES, None, name)
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        taints = [{"key": DELETED, "effect": "NoSchedule"}]
        await self.client.patch(
            NODES, None, name, {"metadata": version, "spec": {"taints": taints}}
        )

    async def lose(self, name: str) -> None:
        await self.client.delete(NODES, None, name)

    async def dispatch(self, name: str, pods: int) -> None:
        """An AppWrapper of so many pods of one CPU is dispatched."""
        made = complete(name, job(name, pods, 60.0))
        kind = replace(APPWRAPPERS, version=made["apiVersion"].rpartition("/")[2])
        stored = await self.client.create(kind, NAMESPACE, made)
        self._uids[name] = stored["metadata"]["uid"]
        status = {"status": {"dispatch": {"phase": "creating", "attempt": 1}}}
        await self.client.patch_status(APPWRAPPERS, NAMESPACE, name, status)

    async def pods(self, of: str, count: int = 1) -> None:
        """Its pods are created; kube-scheduler binds them if it can."""
        tags = {labels.APPWRAPPER: of, labels.APPWRAPPER_UID: self._uids[of]}
        for _ in range(count):
            self._count += 1
            made = pod(f"{of}-{self._count}", "1")
            made["metadata"]["labels"] = {**tags, labels.ATTEMPT: "1", labels.ITEM: "0"}
            await self.client.create(PODS, NAMESPACE, made)
        await self.wait(0.5)


def played(story: Callable[[Lab], Awaitable[None]]) -> None:
    """Play it in virtual time."""

    async def whole() -> None:
        clock = VirtualClock()
        async with embedded_cluster(clock, Random(1)) as cluster:
            store = cluster.registry.store
            client = Client(SimApi(cluster.registry), clock, Random(2))
            dispatches = Dispatches(store)
            await story(Lab(client, dispatches, Waits(store, clock, dispatches)))

    run_virtually(whole())


def test_a_gang_without_a_node_for_each_pod_is_found() -> None:
    async def story(lab: Lab) -> None:
        await lab.node("one")
        await lab.dispatch("fits", 2)
        assert not lab.dispatches.without_nodes
        await lab.dispatch("too-much", 1)  # those of the first are still to come
        assert lab.dispatches.without_nodes == ["too-much: 1 of 1 pods have no room"]
        await lab.node("two")
        await lab.pods("fits", 2)
        await lab.dispatch("half", 3)
        assert lab.dispatches.without_nodes[1:] == ["half: 2 of 3 pods have no room"]

    played(story)


def test_a_node_that_goes_has_room_for_none() -> None:
    async def story(lab: Lab) -> None:
        await lab.node("one")
        await lab.taint("one")
        await lab.dispatch("a", 1)
        assert len(lab.dispatches.without_nodes) == 1

    played(story)


def test_a_pod_that_waits_though_no_node_went_is_ours() -> None:
    async def story(lab: Lab) -> None:
        await lab.node("one")
        await lab.dispatch("a", 3)
        await lab.pods("a", 3)
        await lab.wait(10)
        await lab.node("late")
        await lab.wait(10)
        await lab.lose("late")  # too late to be the cause
        assert [one.cause for one in lab.waits.late] == [Cause.OURS]
        assert len(lab.waits.pods) == 3
        assert lab.waits.used == {"one", "late"}

    played(story)


@pytest.mark.parametrize("goes", [Lab.lose, Lab.taint], ids=["lost", "tainted"])
def test_pods_are_excused_as_far_as_the_nodes_that_went_had_room(
    goes: Callable[[Lab, str], Awaitable[None]],
) -> None:
    async def story(lab: Lab) -> None:
        await lab.node("one")
        await lab.dispatch("a", 3)  # one too many
        await goes(lab, "one")
        await lab.pods("a", 3)
        await lab.wait(10)
        for name in ("two", "three"):
            await lab.node(name)
        await lab.wait(10)
        assert len(lab.waits.of(Cause.ROBBED)) == 2
        assert len(lab.waits.of(Cause.OURS)) == 1

    played(story)


def test_as_many_replacements_are_excused_as_pods_were_lost() -> None:
    async def story(lab: Lab) -> None:
        for name in ("one", "two"):
            await lab.node(name)
        await lab.dispatch("a", 4)
        await lab.pods("a", 4)
        await lab.lose("one")
        await lab.pods("a", 3)  # two were lost
        await lab.wait(10)
        for name in ("three", "four"):
            await lab.node(name)
        await lab.wait(10)
        assert len(lab.waits.of(Cause.REPLACES)) == 2
        assert len(lab.waits.of(Cause.OURS)) == 1
        assert "takes the place of a pod whose node went (one)" in str(lab.waits.late[0])

    played(story)


def test_each_bound_is_told_that_does_not_hold() -> None:
    figures = Figures()
    figures.counts.update({"pods": 1000, "late: ours": 2, "lasting": 100, "exact": 99})
    figures.counts.update({"ordered": 100, "ordered in vain": 1, "late: replaces": 50})
    assert not list(figures.missed())
    for name in ("late: ours", "ordered in vain", "lasting", "requests left", "other troubles"):
        worse = Figures(figures.counts + Counter({name: 2}))
        assert len(list(worse.missed())) == 1, name
