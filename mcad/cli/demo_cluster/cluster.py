"""The simulated cluster with AppWrappers installed, and a dispatcher on it, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from mcad.api.config import Config
from mcad.api.crd import crds
from mcad.api.labels import VISIBILITY_GROUP
from mcad.cli.demo_cluster.visibility import forwarding
from mcad.cli.errors import warn
from mcad.controller.leader_figures import LeaderFigures
from mcad.controller.replica import Replica
from mcad.kube.client import Client
from mcad.kube.clock import Clock
from mcad.kube.lease import LeaseLost
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi

LOOK_S = 0.05  # between two looks whether it leads


@asynccontextmanager
async def embedded_cluster(clock: Clock, rng: Random) -> AsyncIterator[Cluster]:
    """A running cluster with the CRDs of AppWrappers and QuotaSubtrees."""
    async with Cluster(clock, rng) as cluster:
        registry = cluster.registry
        kind = registry.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        for crd in crds():
            registry.create(kind, None, crd)
        yield cluster


@asynccontextmanager
async def dispatching(cluster: Cluster, config: Config, rng: Random) -> AsyncIterator[Client]:
    """Run the dispatcher, with its visibility API; yields a client. A failure of the dispatcher
    cancels the block, and is raised."""
    async with _running(cluster, config, rng) as (client, _):
        yield client


@asynccontextmanager
async def leading(
    cluster: Cluster, config: Config, rng: Random
) -> AsyncIterator[tuple[Client, LeaderFigures]]:
    """The same once it leads, with its figures."""
    async with _running(cluster, config, rng) as (client, replica):
        while replica.controller is None or not replica.controller.watches.is_synced:
            await client.clock.sleep(LOOK_S)
        yield client, LeaderFigures(replica)


@asynccontextmanager
async def _running(
    cluster: Cluster, config: Config, rng: Random
) -> AsyncIterator[tuple[Client, Replica]]:
    client = Client(SimApi(cluster.registry), cluster.registry.clock, rng)
    replica = Replica(client, config, identity="embedded")
    stop = asyncio.Event()
    user = asyncio.current_task()

    def ended(_: asyncio.Future[None]) -> None:
        if not stop.is_set() and user is not None:
            user.cancel()

    work = asyncio.ensure_future(_lead(replica, stop))
    work.add_done_callback(ended)
    aggregated = cluster.registry.aggregated
    try:
        async with forwarding(replica, client) as aggregated[VISIBILITY_GROUP]:
            yield client, replica
    finally:
        aggregated.pop(VISIBILITY_GROUP, None)
        stop.set()
        await work


async def _lead(replica: Replica, stop: asyncio.Event) -> None:
    """Run the dispatcher. The process may be suspended for longer than the Lease lasts, and no
    other one starts it again."""
    while True:
        try:
            return await replica.run(stop)
        except LeaseLost as error:
            warn(f"{error}; the dispatcher of the demo takes it back")
