"""A cluster in virtual time for tests of what nodes and their controllers do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from random import Random
from typing import Any

from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.deletion import Deletion
from mcad.sim.store import Key

Json = dict[str, Any]
LONG_S = 5.0


class World:
    """A running cluster, and short names for what tests do with it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.registry = cluster.registry

    async def settle(self, seconds: float = LONG_S) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    def create(self, kind: str, body: Json, api_version: str = "v1") -> Json:
        found = self.registry.kind(api_version, kind)
        namespace = body["metadata"].get("namespace", "default") if found.namespaced else None
        return self.registry.create(found, namespace, body)

    def pod(self, name: str, namespace: str = "default", /, **more: Any) -> Json:
        """Create one; ``cpu``, ``command``, ``labels``... and fields of the spec."""
        return self.create("Pod", pod(name, namespace, **more))

    def find(self, kind: str, name: str, namespace: str = "default", api: str = "v1") -> Any:
        found = self.registry.kind(api, kind)
        return self.registry.find(found, self._key(kind, name, namespace, api))

    def get(self, kind: str, name: str, namespace: str = "default", api: str = "v1") -> Json:
        obj = self.find(kind, name, namespace, api)
        assert obj is not None, f"no {kind} {namespace}/{name}"
        return obj

    def change(self, kind: str, name: str, change: Callable[[Json], Json]) -> Json:
        found = self.registry.kind("v1", kind)
        return self.registry.patch(found, self._key(kind, name, "default", "v1"), change)

    def delete(
        self, kind: str, name: str, namespace: str = "default", api: str = "v1", **options: Any
    ) -> Json:
        found = self.registry.kind(api, kind)
        key = self._key(kind, name, namespace, api)
        return self.registry.delete(found, key, Deletion(**options))

    def node_of(self, pod_name: str) -> str:
        node: str = self.get("Pod", pod_name)["spec"].get("nodeName", "")
        return node

    def placed(self) -> dict[str, str]:
        """Node by name of pod."""
        pods = self.registry.list_all(self.registry.kind("v1", "Pod"))
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in pods}

    def phase(self, pod_name: str) -> str:
        phase: str = self.get("Pod", pod_name)["status"]["phase"]
        return phase

    def condition(self, pod_name: str, name: str) -> Json:
        return condition(self.get("Pod", pod_name), name)

    def events(self, about: str) -> list[tuple[str, str]]:
        """Reason and message of the Events about an object, in the order of their versions."""
        found = self.registry.list_all(self.registry.kind("v1", "Event"))
        found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [
            (one["reason"], one["message"])
            for one in found
            if one["involvedObject"]["name"] == about
        ]

    def _key(self, kind: str, name: str, namespace: str, api: str) -> Key:
        return (namespace if self.registry.kind(api, kind).namespaced else "", name)


def condition(obj: Json, name: str) -> Json:
    found = [one for one in obj["status"].get("conditions") or () if one["type"] == name]
    return found[0] if found else {}


def pod(
    name: str,
    namespace: str = "default",
    /,
    *,
    cpu: str = "",
    requests: Json | None = None,
    command: list[str] | None = None,
    labels: Json | None = None,
    annotations: Json | None = None,
    owners: list[Json] | None = None,
    **spec: Any,
) -> Json:
    container: Json = {"name": "main", "image": "busybox"}
    wanted = ({"cpu": cpu} if cpu else {}) | (requests or {})
    if wanted:
        container["resources"] = {"requests": wanted}
    if command is not None:
        container["command"] = command
    metadata: Json = {"name": name, "namespace": namespace}
    for key, value in (
        ("labels", labels),
        ("annotations", annotations),
        ("ownerReferences", owners),
    ):
        if value:
            metadata[key] = value
    return {"metadata": metadata, "spec": {"containers": [container]} | spec}


def owner(obj: Json, **more: Any) -> Json:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    } | more


@asynccontextmanager
async def world(*nodes: str, cpu: str = "4", **more: Any) -> AsyncIterator[World]:
    """A cluster with some nodes; whatever a controller raises fails the test."""
    errors: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: errors.append(context.get("exception") or context["message"])
    )
    async with Cluster(VirtualClock(), Random(1), **more) as cluster:
        for name in nodes:
            cluster.add_node(name, cpu=cpu)
        await asyncio.sleep(0.1)
        try:
            yield World(cluster)
        finally:
            for error in errors:  # more telling than what a test found missing
                raise error if isinstance(error, BaseException) else AssertionError(error)


def virtually(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in virtual time."""

    @wraps(test)
    def run(*args: Any, **named: Any) -> None:
        async def whole() -> None:
            await test(*args, **named)

        run_virtually(whole())

    return run
