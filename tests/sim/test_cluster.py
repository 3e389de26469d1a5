"""The whole cluster at work."""

from __future__ import annotations

import asyncio
from random import Random

from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from tests.sim.worlds import pod, virtually, world


@virtually
async def test_jobs_of_a_busy_hour_all_complete() -> None:
    async with world(*(f"n{number}" for number in range(5))) as w:
        for number in range(60):
            template = pod("x", cpu="1", command=["sleep", "120"], restartPolicy="Never")
            counts = {"parallelism": 2, "completions": 2}
            w.make("Job", f"j{number}", template={"spec": template["spec"]}, **counts)
        await w.settle(3600)
        assert [job["status"].get("succeeded") for job in w.all("Job")] == [2] * 60


@virtually
async def test_nothing_is_written_while_nothing_happens() -> None:
    async with world("n1", "n2") as w:
        for number in range(5):
            w.pod(f"p{number}")
        w.pod("waits", cpu="64")
        await w.settle(7200)  # until the last Event is forgotten
        before = w.registry.store.version
        await w.settle(24 * 3600)

        assert w.registry.store.version == before


def test_the_same_seed_gives_the_same_history() -> None:
    async def run(seed: int) -> list[tuple[str, str, str]]:
        async with Cluster(VirtualClock(), Random(seed)) as cluster:
            for number in range(5):
                cluster.add_node(f"n{number}")
            kind = cluster.registry.kind("v1", "Pod")
            for number in range(40):
                body = pod(f"p{number}", cpu="400m", command=["sleep", "7"], restartPolicy="Never")
                cluster.registry.create(kind, "default", body)
            await asyncio.sleep(60)
            position = cluster.registry.store.position(kind.storage, 0)
            changes, _ = cluster.registry.store.changes(kind.storage, position)
            return [
                (change.type, change.key[1], str(change.obj["spec"].get("nodeName")))
                for change in changes
            ]

    first, second, other = (run_virtually(run(seed)) for seed in (1, 1, 2))
    assert first == second
    assert len(first) == len(other)
    assert first != other


@virtually
async def test_a_stopped_cluster_stands_still_and_goes_on_when_started_again() -> None:
    async with world("n1") as w:
        w.pod("runs", command=["sleep", "20"], restartPolicy="Never")
        await w.settle(3)
        w.pod("full", cpu="4")
        await w.settle(2)
        w.cluster.stop()
        w.delete("Pod", "full", grace_s=0)
        w.pod("later", cpu="4")
        await w.settle(100)
        assert w.phase("runs") == "Running"
        assert w.node_of("later") == ""

        w.cluster.start()
        await w.settle(2)
        assert w.phase("runs") == "Succeeded"
        assert w.phase("later") == "Running"
