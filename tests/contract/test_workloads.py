"""The same hundred and more workloads on the embedded cluster and on a real control plane."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from mcad.kube.clock import RealClock
from mcad.kube.connection import load
from mcad.kube.port import MERGE_PATCH, Api, Request
from mcad.kube.rest import RestApi
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from tests.contract import fleet
from tests.contract.fleet import NODES, PACKED, PODS_PER_NODE, Workload
from tests.contract.servers import CONTROLLERS
from tests.controlplane.controlplane import ControlPlane

Json = dict[str, Any]

SEED = 20261121
SETTLED_S = 60  # virtual seconds for each stage
PATIENCE_S = 60  # real seconds for each stage
AT_ONCE = 16

GROUPS = {
    "pods": "/api/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
}


async def _send(api: Api, requests: Iterable[Request]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(request: Request) -> None:
        async with gate:
            answer = await api.request(request)
        assert answer.status in {200, 201}, (request.path, answer.json())

    await asyncio.gather(*map(one, requests))


def _creation(workload: Workload) -> Request:
    return Request("POST", _path(workload), body=workload.obj)


def _change(workload: Workload, patch: Json) -> Request:
    path = f"{_path(workload)}/{workload.obj['metadata']['name']}"
    return Request("PATCH", path, body=json.dumps(patch).encode(), content_type=MERGE_PATCH)


def _path(workload: Workload) -> str:
    namespace = workload.obj["metadata"]["namespace"]
    return f"{GROUPS[workload.plural]}/namespaces/{namespace}/{workload.plural}"


async def _look(api: Api, made: list[Workload]) -> Json:
    found = {}
    for plural, group in GROUPS.items():
        answer = await api.request(Request("GET", f"{group}/{plural}"))
        assert answer.status == 200, answer.json()
        found[plural] = answer.json()["items"]
    return fleet.summary(made, found)


def _stages(made: list[Workload]) -> list[list[Request]]:
    changes = [fleet.changes(seed, made) for seed in (SEED, SEED + 1)]
    return [[*map(_creation, made)], *([_change(*one) for one in some] for some in changes)]


async def _embedded(made: list[Workload]) -> list[Json]:
    async with Cluster(VirtualClock(), Random(SEED)) as cluster:
        for name, node in NODES:
            cluster.add_node(name, pods=PODS_PER_NODE, **node)
        api = SimApi(cluster.registry)
        for name in fleet.NAMESPACES:
            body = {"metadata": {"name": name}}
            await api.request(Request("POST", "/api/v1/namespaces", body=body))
        await asyncio.sleep(5)
        seen = []
        for stage in _stages(made):
            await _send(api, stage)
            await asyncio.sleep(SETTLED_S)
            seen.append(await _look(api, made))
        return seen


async def _real(plane: ControlPlane, made: list[Workload], expected: list[Json]) -> list[Json]:
    clock, seen = RealClock(), []
    opened = await load(clock, str(plane.admin_kubeconfig))
    async with RestApi(opened, clock) as api:
        for stage, wanted in zip(_stages(made), expected, strict=True):
            await _send(api, stage)
            seen.append(await _settled(api, made, wanted))
            if seen[-1] != wanted:
                break  # what follows would differ, too
    return seen


async def _settled(api: Api, made: list[Workload], wanted: Json) -> Json:
    """What is there in the end: as wanted, and still so a little later, or when time is up."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while True:
        found = await _look(api, made)
        if found == wanted:
            await asyncio.sleep(3)
            found = await _look(api, made)
        if found == wanted or loop.time() > deadline:
            return found
        await asyncio.sleep(1)


@pytest.mark.controlplane
def test_the_same_workloads_come_to_the_same_end(plane: ControlPlane) -> None:
    made = fleet.workloads(SEED)
    embedded = run_virtually(_embedded(made))
    assert embedded[0]["packed"] == PACKED
    for name in CONTROLLERS:  # the other tests have ended them
        plane.restart(name)
    for name, node in NODES:
        plane.add_node(name, pods=PODS_PER_NODE, wait=False, **node)
    for name in fleet.NAMESPACES:
        plane.create_namespace(name)
    # The last one bears a taint that we gave it; wait_for_nodes minds those of Kubernetes only.
    plane.wait_for_nodes([name for name, _ in NODES])
    real = asyncio.run(_real(plane, made, embedded))
    differences = [
        (number, name, {key: (ours[name].get(key), theirs[name].get(key)) for key in ours[name]})
        if isinstance(ours[name], dict)
        else (number, name, (ours[name], theirs[name]))
        for number, (ours, theirs) in enumerate(zip(embedded, real, strict=False))
        for name in ours
        if ours[name] != theirs[name]
    ]
    told = "\n".join(f"stage {number}, {name}: {what}" for number, name, what in differences)
    assert not differences, f"{len(differences)} differ (embedded, real):\n{told}"
    assert len(real) == len(embedded)
