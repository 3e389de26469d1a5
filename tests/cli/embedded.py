"""The embedded cluster with a dispatcher, over HTTP in a thread: ``mcad`` is typed at it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import yaml
from click.testing import CliRunner, Result

from mcad.api.config import Config
from mcad.api.labels import VISIBILITY_GROUP
from mcad.cli.commands.demo import Shape, fill
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.cli.demo_cluster.visibility import unavailable
from mcad.cli.main import main
from mcad.kube.clock import RealClock
from mcad.sim.cluster import Cluster
from mcad.sim.serving.serve import ApiServerHttp, kubeconfig
from mcad.sim.serving.server import SimApi
from tests.fakeapi import GROUP

Json = dict[str, Any]
T = TypeVar("T")

PATIENCE_S = 20.0
NODE_CPU = 8


ONE_NODE = Shape(nodes=1, cpu=str(NODE_CPU))


class Embedded:
    """A cluster of the shape and the configuration of ``mcad demo --serve``."""

    def __init__(self, folder: Path, shape: Shape = ONE_NODE, config: Config | None = None) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._shape, self._config = shape, config or Config()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cluster: Cluster | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()

    def mcad(self, *args: str, stdin: str | None = None) -> Result:
        """Type a command."""
        return CliRunner().invoke(
            main, args, input=stdin, env={"KUBECONFIG": str(self.kubeconfig), "COLUMNS": "120"}
        )

    def create(self, *objs: Json) -> None:
        """Create objects; their namespace is that in their metadata, or default."""
        for obj in objs:
            self.on_loop(partial(_create, obj))

    def get(self, name: str, namespace: str = "default") -> Json | None:
        """An AppWrapper, None if there is none."""
        return self.on_loop(
            lambda cluster: cluster.registry.find(_kind(cluster), (namespace, name))
        )

    def on_loop(self, work: Callable[[Cluster], T]) -> T:
        """The outcome of work in the thread of the cluster."""

        async def call() -> T:
            assert self._cluster is not None
            return work(self._cluster)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE_S)

    def until(self, name: str, state: str, namespace: str = "default") -> Json:
        """The AppWrapper as soon as it has this state."""

        def look() -> Json | None:
            obj = self.get(name, namespace)
            return obj if obj and obj.get("status", {}).get("state") == state else None

        return wait_for(look, f"{name} is {state}")

    async def _run(self, *, dispatches: bool) -> None:
        self._loop, rng = asyncio.get_running_loop(), Random(1)
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(embedded_cluster(RealClock(), rng))
            fill(cluster, self._shape)
            server = ApiServerHttp(SimApi(cluster.registry))
            stack.push_async_callback(server.close)
            url = await server.start("127.0.0.1", 0)
            self.kubeconfig.write_text(yaml.safe_dump(kubeconfig(url)))
            if dispatches:
                await stack.enter_async_context(dispatching(cluster, self._config, rng))
            else:
                cluster.registry.aggregated[VISIBILITY_GROUP] = unavailable
            self._cluster = cluster
            self._ready.set()
            await self._stop.wait()

    @contextmanager
    def running(self, *, dispatches: bool = True) -> Iterator[Embedded]:
        thread = threading.Thread(target=lambda: asyncio.run(self._run(dispatches=dispatches)))
        thread.start()
        assert self._ready.wait(PATIENCE_S)
        try:
            yield self
        finally:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(PATIENCE_S)


def wait_for(look: Callable[[], T | None], what: str) -> T:
    """What ``look`` returns as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {PATIENCE_S:g} s: {what}")


def _kind(cluster: Cluster) -> Any:
    return cluster.registry.kind(f"{GROUP}/v1beta2", "AppWrapper")


def _create(obj: Json, cluster: Cluster) -> None:
    kind = cluster.registry.kind(obj["apiVersion"], obj["kind"])
    cluster.registry.create(kind, obj["metadata"].get("namespace", "default"), obj)
