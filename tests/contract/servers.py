"""The servers that are compared: a real one, and the embedded one in process and over HTTP."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kubernetes.aio.client import Configuration

from mcad.api.crd import crds
from mcad.kube.clock import Clock, RealClock
from mcad.kube.connection import Connection, load
from mcad.kube.port import Api, Request
from mcad.kube.rest import RestApi
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.controllers.crds import CustomResourceCleanup
from mcad.sim.registry import Registry
from mcad.sim.serving.serve import ApiServerHttp
from mcad.sim.serving.server import SimApi
from tests.contract.runner import Answer, run
from tests.contract.script import Script
from tests.controlplane.controlplane import ControlPlane

AT_ONCE = 8
MANAGER = "kube-controller-manager"
CONTROLLERS = ("kwok", "kube-scheduler", MANAGER)
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Answers = dict[str, list[Answer]]


def embedded(scripts: Iterable[Script]) -> Answers:
    """Each script on a fresh server in virtual time."""
    return {script.name: run_virtually(_embedded(script)) for script in scripts}


async def _embedded(script: Script) -> list[Answer]:
    clock = VirtualClock()
    async with _world(script, clock) as (registry, api):
        return await run(script, api, clock, _compacting(registry))


def served(scripts: Iterable[Script]) -> Answers:
    """The same over HTTP and in real time, all at once: most of it is waiting, each has its own."""
    return asyncio.run(_served(list(scripts)))


async def _served(scripts: list[Script]) -> Answers:
    clock = RealClock()
    answers: Answers = {}

    async def one(script: Script) -> None:
        async with _world(script, clock) as (registry, api):
            server = ApiServerHttp(api)
            url = await server.start()
            try:
                opened = Connection(Configuration(host=url), None, "default", "the contract suite")
                async with RestApi(opened, clock) as client:
                    answers[script.name] = await run(script, client, clock, _compacting(registry))
            finally:
                await server.close()

    async with asyncio.TaskGroup() as group:
        for script in scripts:
            group.create_task(one(script))
    return answers


@asynccontextmanager
async def _world(script: Script, clock: Clock) -> AsyncIterator[tuple[Registry, SimApi]]:
    """A server of a script's own, with controllers if it needs them."""
    cluster = Cluster(clock, Random(1)) if script.is_lively else None
    registry = cluster.registry if cluster else Registry(clock, Random(1))
    api = SimApi(registry)
    await _install(api)
    # What is left without the rest of a cluster is a part of every real API server.
    running = cluster or CustomResourceCleanup(registry)
    running.start()
    try:
        yield registry, api
    finally:
        running.stop()


def _compacting(registry: Registry) -> Callable[[], Awaitable[None]]:
    async def compact() -> None:
        registry.store.compact()

    return compact


def real(plane: ControlPlane, scripts: Iterable[Script]) -> Answers:
    """All scripts on one control plane, several at a time.

    First those that need a server of their own, then those for which controllers must run:
    the garbage collector asks for kinds when it starts, and then every half a minute.
    """
    chosen = list(scripts)
    for name in CONTROLLERS:
        plane.end(name)
    answers = asyncio.run(_real(plane, [one for one in chosen if not one.is_lively]))
    lively = [script for script in chosen if script.is_lively]
    if lively:
        plane.restart(MANAGER)
        answers |= asyncio.run(_real(plane, lively))
    return answers


async def _real(plane: ControlPlane, scripts: list[Script]) -> Answers:
    clock = RealClock()
    turn = asyncio.Semaphore(AT_ONCE)
    answers: Answers = {}

    async def compact() -> None:
        await asyncio.to_thread(_compact_etcd, plane)

    opened = await load(clock, str(plane.admin_kubeconfig))
    async with RestApi(opened, clock) as api:
        await _install(api)

        async def one(script: Script) -> None:
            async with turn:
                answers[script.name] = await run(script, api, clock, compact)

        async with asyncio.TaskGroup() as group:
            for script in scripts:
                if not script.compacts:
                    group.create_task(one(script))
        for script in scripts:
            if script.compacts:
                await one(script)
    return answers


async def _install(api: Api) -> None:
    """Our own CRD, ready to be used."""
    for crd in crds():
        answer = await api.request(Request("POST", CRD_PATH, body=crd))
        assert answer.status in {201, 409}, answer.json()
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for version in crd["spec"]["versions"]:
            path = f"/apis/{group}/{version['name']}/{plural}"
            for _ in range(200):
                if (await api.request(Request("GET", path))).status == 200:
                    break
                await asyncio.sleep(0.05)


def _compact_etcd(plane: ControlPlane) -> None:
    """By etcd's JSON gateway; kube-apiserver does the same every five minutes."""
    revision = _etcd(plane, "kv/range", {"key": "AA=="})["header"]["revision"]
    _etcd(plane, "kv/compaction", {"revision": revision, "physical": True})


def _etcd(plane: ControlPlane, call: str, body: Any) -> Any:
    url = f"http://127.0.0.1:{plane.layout.ports.etcd}/v3/{call}"
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
