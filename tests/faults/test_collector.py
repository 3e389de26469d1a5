"""A garbage collector that does not know AppWrappers, as for half a minute after their CRD came.

What a deleted AppWrapper has made must not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from mcad.api.config import Config
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.kube.client import Propagation
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.controllers.gc import GarbageCollector
from tests.faults.scenarios import NAMESPACE, Json, complete, create, delete, deployment, job
from tests.faults.world import STORAGE
from tests.manifests import config_map, generic


@pytest.fixture
def collector_knows_no_appwrappers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes over objects that an AppWrapper owns."""
    inner: Callable[[GarbageCollector, str, Json], None] = GarbageCollector._collect

    def collect(self: GarbageCollector, uid: str, obj: Json) -> None:
        owners = obj["metadata"].get("ownerReferences") or ()
        if all(owner["kind"] != "AppWrapper" for owner in owners):
            inner(self, uid, obj)

    monkeypatch.setattr(GarbageCollector, "_collect", collect)


@pytest.mark.usefixtures("collector_knows_no_appwrappers")
@pytest.mark.parametrize("cascade", ["Background", "Foreground"])
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(generic("a", config_map("a"), deployment("a", 2)), id="runs"),
        pytest.param(complete("a", job("a", 2, 3)), id="finished"),
    ],
)
def test_the_next_one_runs_within_seconds_of_a_deletion(first: Json, cascade: Propagation) -> None:
    async def story() -> tuple[list[str], str]:
        clock = VirtualClock()
        async with embedded_cluster(clock, Random(3)) as cluster:
            cluster.add_node("node-0", cpu="2")
            async with dispatching(cluster, Config(), Random(4)) as client:
                await create(first)(client)
                await clock.sleep(10.0)
                await create(generic("b", deployment("b", 2)))(client)
                await delete("a", cascade=cascade)(client)
                await clock.sleep(3.0)
                store = cluster.registry.store
                left = [
                    key[1]
                    for storage in (("", "configmaps"), ("apps", "deployments"), ("batch", "jobs"))
                    for key, _ in store.items(storage, NAMESPACE)
                    if key[1] != "kube-root-ca.crt"
                ]
                b = store.get(STORAGE, (NAMESPACE, "b")) or {}
                return left, b["status"]["state"]

    assert run_virtually(story()) == (["b"], "Running")


@pytest.mark.usefixtures("collector_knows_no_appwrappers")
def test_what_was_deleted_while_no_dispatcher_ran_holds_what_its_pods_use_and_no_more() -> None:
    """A Job of three waves, whose AppWrapper a dispatcher that starts now never sees (ADR 9)."""

    async def story() -> list[str]:
        clock, states = VirtualClock(), []
        async with embedded_cluster(clock, Random(3)) as cluster:
            cluster.add_node("node-0", cpu="2")
            store = cluster.registry.store
            async with dispatching(cluster, Config(), Random(4)) as client:
                await create(complete("a", job("a", 2, 10, waves=3)))(client)
                await clock.sleep(5.0)
            await delete("a")(client)
            async with dispatching(cluster, Config(), Random(5)) as client:
                await create(generic("b", deployment("b", 2)))(client)
                for pause in (3.0, 20.0):
                    await clock.sleep(pause)
                    b = store.get(STORAGE, (NAMESPACE, "b")) or {}
                    states.append(b["status"]["state"])
        return states

    assert run_virtually(story()) == ["Pending", "Running"]
