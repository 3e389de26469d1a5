"""A cluster in virtual time, for tests of what its controllers and nodes do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from random import Random
from typing import Any

from mcad.kube.types import Json
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.deletion import Deletion
from mcad.sim.kinds import BUILTIN, Kind
from mcad.sim.store import Change, Key

LONG_S = 5.0


class World:
    """A running cluster, and short names for what tests do with it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.registry = cluster.registry

    async def settle(self, seconds: float = LONG_S) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    def kind(self, name: str) -> Kind:
        """The built-in one of this name."""
        return next(kind for kind in BUILTIN if kind.kind == name)

    def create(self, kind: str, body: Json) -> Json:
        found = self.kind(kind)
        namespace = body["metadata"].get("namespace", "default") if found.namespaced else None
        return self.registry.create(found, namespace, body)

    def make(self, kind: str, name: str, **spec: Any) -> Json:
        """Create one that is a name and a spec."""
        return self.create(kind, {"metadata": {"name": name}, "spec": spec})

    def pod(self, name: str, namespace: str = "default", /, **more: Any) -> Json:
        """Create one; ``cpu``, ``command``, ``labels``... and fields of the spec."""
        return self.create("Pod", pod(name, namespace, **more))

    def find(self, kind: str, name: str, namespace: str = "default") -> Any:
        return self.registry.find(self.kind(kind), self._key(kind, name, namespace))

    def get(self, kind: str, name: str, namespace: str = "default") -> Json:
        obj = self.find(kind, name, namespace)
        assert obj is not None, f"no {kind} {namespace}/{name}"
        return obj

    def all(self, kind: str, namespace: str | None = None) -> list[Json]:
        return self.registry.list_all(self.kind(kind), namespace)

    def live(self, kind: str = "Pod") -> list[Json]:
        """Those that are not being deleted."""
        return [one for one in self.all(kind) if "deletionTimestamp" not in one["metadata"]]

    def history(self, kind: str, since: int = 0) -> list[Change]:
        """What was written of a kind after a version of the store."""
        storage, store = self.kind(kind).storage, self.registry.store
        return store.changes(storage, store.position(storage, since))[0]

    def change(self, kind: str, name: str, change: Callable[[Json], Json]) -> Json:
        return self.registry.patch(self.kind(kind), self._key(kind, name, "default"), change)

    def respec(self, kind: str, name: str, **fields: Any) -> Json:
        """Change fields of the spec."""
        return self.change(kind, name, lambda live: live | {"spec": live["spec"] | fields})

    def remeta(self, kind: str, name: str, **fields: Any) -> Json:
        """Change fields of the metadata."""
        return self.change(kind, name, lambda live: live | {"metadata": live["metadata"] | fields})

    def delete(self, kind: str, name: str, namespace: str = "default", **options: Any) -> Json:
        key = self._key(kind, name, namespace)
        return self.registry.delete(self.kind(kind), key, Deletion(**options))

    def node_of(self, pod_name: str) -> str:
        node: str = self.get("Pod", pod_name)["spec"].get("nodeName", "")
        return node

    def placed(self) -> dict[str, str]:
        """Node by name of pod."""
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in self.all("Pod")}

    def phase(self, pod_name: str) -> str:
        phase: str = self.get("Pod", pod_name)["status"]["phase"]
        return phase

    def condition(self, pod_name: str, name: str) -> Json:
        return condition(self.get("Pod", pod_name), name)

    def events(self, about: str) -> list[tuple[str, str]]:
        """Reason and message of the Events about an object, in the order of their versions."""
        found = sorted(self.all("Event"), key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [
            (one["reason"], one["message"])
            for one in found
            if one["involvedObject"]["name"] == about
        ]

    def reasons(self, about: str) -> list[str]:
        """Those of the Events about an object."""
        return [reason for reason, _ in self.events(about)]

    def _key(self, kind: str, name: str, namespace: str) -> Key:
        return (namespace if self.kind(kind).namespaced else "", name)


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
    more = {"labels": labels, "annotations": annotations, "ownerReferences": owners}
    metadata |= {key: value for key, value in more.items() if value}
    return {"metadata": metadata, "spec": {"containers": [container]} | spec}


def notes_of(**notes: str) -> Json:
    """Annotations that say how a pod lives: ``run_for="10s"``..."""
    return {f"sim.mcad.dev/{key.replace('_', '-')}": value for key, value in notes.items()}


def making(image: str = "img:1", **spec: Any) -> Json:
    """What makes pods has a template, and a selector for it."""
    labels = {"app": "web"}
    pod_spec = {"containers": [{"name": "main", "image": image}]} | spec
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    return {"selector": {"matchLabels": labels}, "template": template}


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
