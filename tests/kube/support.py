"""Doubles shared by the tests of the transport: clock, sink, connection."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from kubernetes.aio.client import Configuration

from mcad.kube.client import Client
from mcad.kube.connection import Connection
from mcad.kube.errors import KubeError
from mcad.kube.resource import Resource
from mcad.kube.rest import RestApi

Json = dict[str, Any]

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
WRAPPERS = Resource("workload.codeflare.dev", "v1beta2", "appwrappers", "AppWrapper")


class FakeClock:
    """Time that passes only by sleeping: a sleep takes no real time, and is remembered.

    Sleeps that would end after ``horizon`` seconds last until it is moved, so that endless loops
    can be observed for a while.
    """

    def __init__(self, horizon: float = 1e9) -> None:
        self.now = 100.0
        self.horizon = self.now + horizon
        self.sleeps: list[float] = []
        self.parked = asyncio.Event()

    def monotonic(self) -> float:
        return self.now

    def now_us(self) -> int:
        return 1_800_000_000_000_000 + int(self.now * 1e6)

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        if self.now + seconds > self.horizon:
            self.parked.set()
            await asyncio.Event().wait()
        self.now += max(seconds, 0.0)
        await asyncio.sleep(0)


class RecordingSink:
    """A sink that writes down what it is told, in order."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.alive_at: list[float] = []
        self.errors: list[KubeError] = []
        self.listings = 0

    def listing(self) -> None:
        self.listings += 1

    def upserted(self, obj: Json) -> None:
        self.log.append(("upserted", obj["metadata"]["name"], obj["metadata"]["resourceVersion"]))

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:
        self.log.append(("gone", name, uid, last is not None))

    def synced(self, *, relist: bool) -> None:
        self.log.append(("synced", relist))

    def alive(self, at: float) -> None:
        self.alive_at.append(at)

    def failing(self, error: KubeError) -> None:
        self.errors.append(error)

    def names(self, kind: str) -> list[str]:
        return [entry[1] for entry in self.log if entry[0] == kind]

    @property
    def syncs(self) -> int:
        return len([entry for entry in self.log if entry[0] == "synced"])


def pod(name: str, namespace: str = "default", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def connection(url: str, **kwargs: Any) -> Connection:
    """A connection without credentials."""
    return Connection(Configuration(host=url, **kwargs), None, "default", "a test")


def kubeconfig(
    server: str = "http://127.0.0.1:1", user: Json | None = None, **cluster: str
) -> Json:
    """A kubeconfig with contexts that work, and two that lead nowhere."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user if user is not None else {"token": "t"}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u"}},
            {"name": "two", "context": {"cluster": "c", "user": "u", "namespace": "batch"}},
            {"name": "userless", "context": {"cluster": "c", "user": "missing"}},
            {"name": "nowhere", "context": {"cluster": "missing", "user": "u"}},
        ],
    }


def client_of(api: RestApi, clock: FakeClock, **timeouts: float) -> Client:
    return Client(api, clock, Random(1), **timeouts)


async def eventually(predicate: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait in real time until ``predicate`` holds."""
    async with asyncio.timeout(seconds):
        while not predicate():
            await asyncio.sleep(0.002)
