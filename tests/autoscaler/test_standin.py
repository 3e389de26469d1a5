"""The stand-in answers as the real autoscaler does (tests/controlplane/test_autoscaler.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from mcad.kube.client import Client
from mcad.kube.kinds import CRDS, NODES, PODS
from mcad.kube.resource import Resource
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from tests import manifests
from tests.autoscaler.groups import Group, Moods, StockOut
from tests.autoscaler.kinds import BUFFERS, CLASS, CONSUMES, REQUESTS, TEMPLATES, crds
from tests.autoscaler.standin import StandIn, start

Json = dict[str, Any]

GPU = "nvidia.com/gpu"
CPUS = Group("cpus", "4", 6)
GPUS = Group("gpus", "8", 2, extended={GPU: "8"}, taints=[{"key": GPU, "effect": "NoSchedule"}])
NAMESPACE = "default"


class Lab:
    """A cluster with a stand-in."""

    def __init__(self, client: Client, autoscaler: StandIn) -> None:
        self.client, self.autoscaler = client, autoscaler

    async def wait(self, seconds: float) -> None:
        await self.client.clock.sleep(seconds)

    async def template(self, name: str, cpu: str, gpus: int = 0) -> None:
        extended = {GPU: str(gpus)} if gpus else {}
        resources = {"requests": {"cpu": cpu, **extended}, "limits": extended}
        spec = {
            "containers": [{"name": "main", "image": "busybox:1.36", "resources": resources}],
            "tolerations": [{"key": GPU, "operator": "Exists"}] if gpus else [],
        }
        made = {"metadata": {"name": name}, "template": {"spec": spec}}
        await self._create(TEMPLATES, made)

    async def request(self, name: str, **pods: int) -> None:
        sets = [{"count": count, "podTemplateRef": {"name": of}} for of, count in pods.items()]
        spec = {"provisioningClassName": CLASS, "podSets": sets}
        await self._create(REQUESTS, {"metadata": {"name": name}, "spec": spec})

    async def buffer(self, name: str, of: str, replicas: int) -> None:
        spec = {"podTemplateRef": {"name": of}, "replicas": replicas}
        await self._create(BUFFERS, {"metadata": {"name": name}, "spec": spec})

    async def pod(self, name: str, cpu: str, consumes: str = "") -> None:
        made = manifests.pod(name, cpu)
        if consumes:
            made["metadata"]["annotations"] = {CONSUMES: consumes}
        await self._create(PODS, made)

    async def _create(self, kind: Resource, obj: Json) -> None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        await self.client.create(kind, NAMESPACE, body)

    async def reason(self, kind: Resource, name: str, condition: str) -> str:
        obj = await self.client.get(kind, NAMESPACE, name)
        told = (obj.get("status") or {}).get("conditions") or ()
        return next((str(one["reason"]) for one in told if one["type"] == condition), "")

    async def nodes(self) -> int:
        return len((await self.client.list_all(NODES))[0])


@asynccontextmanager
async def lab(moods: Moods, unneeded_s: float) -> AsyncIterator[Lab]:
    """Two groups, no nodes."""
    clock = VirtualClock()
    async with Cluster(clock, Random(1)) as cluster:
        client = Client(SimApi(cluster.registry), clock, Random(2))
        for crd in crds():
            await client.create(CRDS, None, crd)
        autoscaler = StandIn(client, [CPUS, GPUS], moods, unneeded_s=unneeded_s)
        work = start(autoscaler)
        try:
            yield Lab(client, autoscaler)
        finally:
            work.cancel()


def played(
    story: Callable[[Lab], Awaitable[None]], moods: Moods | None = None, unneeded_s: float = 600.0
) -> None:
    """Play it in virtual time."""

    async def whole() -> None:
        async with lab(moods or Moods(), unneeded_s) as made:
            await story(made)

    run_virtually(whole())


def test_a_request_fills_free_room_before_nodes_are_added() -> None:
    async def story(lab: Lab) -> None:
        await lab.template("three", "3")
        await lab.template("half", "500m")
        await lab.request("first", three=2)
        await lab.wait(5)
        assert await lab.reason(REQUESTS, "first", "Provisioned") == "CapacityIsProvisioned"
        assert await lab.nodes() == 0  # they are ordered
        await lab.wait(30)
        assert await lab.nodes() == 2
        await lab.request("second", half=2)
        await lab.request("third", three=1)
        await lab.wait(30)
        assert await lab.reason(REQUESTS, "second", "Provisioned") == "CapacityIsFound"
        assert await lab.reason(REQUESTS, "third", "Provisioned") == "CapacityIsProvisioned"
        assert await lab.nodes() == 3

    played(story)


def test_a_request_that_cannot_be_served_blocks_no_other_and_is_tried_again() -> None:
    async def story(lab: Lab) -> None:
        await lab.template("huge", "64")
        await lab.template("three", "3")
        await lab.request("never", huge=1)
        await lab.request("many", three=5)
        await lab.wait(5)
        await lab.request("can", three=4)
        await lab.wait(5)
        for name in ("never", "can"):
            assert await lab.reason(REQUESTS, name, "Provisioned") == "CapacityIsNotFound"
        assert await lab.reason(REQUESTS, "many", "Provisioned") == "CapacityIsProvisioned"
        await lab.client.delete(REQUESTS, NAMESPACE, "many")
        await lab.wait(30)
        assert await lab.reason(REQUESTS, "can", "Provisioned") == "CapacityIsNotFound"
        await lab.wait(60)
        assert await lab.reason(REQUESTS, "can", "Provisioned") == "CapacityIsFound"

    played(story)


def test_one_request_is_served_from_one_node_group() -> None:
    async def story(lab: Lab) -> None:
        await lab.template("three", "3")
        await lab.template("gpu", "1", gpus=8)
        await lab.request("both", three=1, gpu=1)
        await lab.request("one-0", three=1)
        await lab.request("one-1", gpu=1)
        await lab.wait(30)
        assert await lab.reason(REQUESTS, "both", "Provisioned") == "CapacityIsNotFound"
        for name in ("one-0", "one-1"):
            assert await lab.reason(REQUESTS, name, "Provisioned") == "CapacityIsProvisioned"
        assert await lab.nodes() == 2

    played(story)


def test_a_request_without_its_template_fails_for_good() -> None:
    async def story(lab: Lab) -> None:
        await lab.request("early", three=1)
        await lab.wait(5)
        await lab.template("three", "3")
        await lab.wait(100)
        assert await lab.reason(REQUESTS, "early", "Failed") == "FailedToCreatePods"

    played(story)


def test_pods_get_nodes_unless_they_name_a_request() -> None:
    async def story(lab: Lab) -> None:
        await lab.pod("plain", "3")
        await lab.pod("lost", "3", consumes="nothing")
        await lab.wait(60)
        assert await lab.nodes() == 1

    played(story)


def test_a_booking_counts_until_it_expires_and_idle_nodes_go() -> None:
    async def story(lab: Lab) -> None:
        await lab.template("three", "3")
        await lab.request("first", three=2)
        await lab.wait(80)
        assert await lab.nodes() == 2
        await lab.wait(40)
        assert await lab.reason(REQUESTS, "first", "BookingExpired") != ""
        await lab.wait(60)
        assert await lab.nodes() == 0
        assert lab.autoscaler.figures.removed == 2

    played(story, Moods(booking_s=100.0), unneeded_s=30.0)


def test_a_buffer_is_filled_again_when_pods_use_it() -> None:
    async def story(lab: Lab) -> None:
        await lab.template("three", "3")
        await lab.buffer("buffer", "three", 2)
        await lab.wait(30)
        assert await lab.reason(BUFFERS, "buffer", "Provisioning") == "FakePodsInjected"
        assert await lab.nodes() == 2
        await lab.pod("one", "3")
        await lab.wait(30)
        assert await lab.nodes() == 3
        await lab.buffer("large", "three", 40)
        await lab.wait(30)
        assert await lab.nodes() == 6  # a part of it

    played(story)


def test_orders_may_stay_without_an_answer_and_nodes_may_be_lost() -> None:
    async def story(lab: Lab) -> None:
        await lab.pod("plain", "3")
        await lab.wait(60)
        assert await lab.nodes() == 0  # nothing to be had
        await lab.wait(60)  # it is ordered again, comes and goes
        figures = lab.autoscaler.figures
        assert figures.ordered > figures.made >= 1
        await lab.wait(70)
        assert figures.lost >= 1

    played(story, Moods([StockOut("cpus", 0.0, 50.0)], lost=1.0))
