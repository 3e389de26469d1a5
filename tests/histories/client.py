"""A client of the embedded API server that talks to its registry: no HTTP, no text.

Each request takes a moment of virtual time before it is served, and each answer one after it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from mcad.kube.client import (
    CREATE,
    DELETE,
    Created,
    CreateOptions,
    DeleteOptions,
    Selection,
    of_status,
)
from mcad.kube.clock import Clock
from mcad.kube.errors import ApiError
from mcad.kube.port import Request
from mcad.kube.resource import Resource
from mcad.sim import failures
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.selectors import fields
from mcad.sim.writes import Write

Json = dict[str, Any]
T = TypeVar("T")
EVENTS = ("", "events")
EVENT_FIELDS: dict[str, Callable[[Json], str]] = {
    "type": lambda event: event.get("type", ""),
    "involvedObject.kind": lambda event: event["involvedObject"]["kind"],
    "involvedObject.name": lambda event: event["involvedObject"]["name"],
}


class StoredClient:
    """What an executor needs of a client."""

    def __init__(self, registry: Registry, rng: Random, delay_s: float) -> None:
        """``delay_s`` is the longest way of a request, and of an answer."""
        self.clock: Clock = registry.clock
        self.rng = rng
        self._registry = registry
        self._delay_s = delay_s

    async def create_warned(
        self,
        resource: Resource,
        namespace: str | None,
        body: bytes,
        options: CreateOptions = CREATE,
    ) -> Created:
        """Create an object as users do, with all checks."""
        del options
        how = Write()
        made = await self._serve(
            lambda: self._registry.create(self._kind(resource), namespace, json.loads(body), how)
        )
        return Created(made, tuple(how.warnings))

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        metadata_only: bool = False,
    ) -> Json:
        """The object as it is stored."""
        del metadata_only
        key = (namespace or "", name)
        return await self._serve(lambda: self._registry.get(self._kind(resource), key))

    async def list_all(self, resource: Resource, selection: Selection) -> tuple[list[Json], str]:
        """All objects with one label."""
        label, _, value = selection.label_selector.partition("=")

        def found() -> list[Json]:
            every = self._registry.list_all(self._kind(resource), selection.namespace)
            return [one for one in every if _label(one, label) == value]

        return await self._serve(found), str(self._registry.store.version)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        options: DeleteOptions = DELETE,
    ) -> Json:
        """Delete with the given propagation."""
        how = Deletion(
            uid=options.uid or None,
            propagation=options.propagation,
            grace_s=options.grace_period_s,
        )
        key = (namespace or "", name)
        return await self._serve(lambda: self._registry.delete(self._kind(resource), key, how))

    async def patch(
        self, resource: Resource, namespace: str | None, name: str, patch: Json | bytes
    ) -> Json:
        """Apply a merge patch."""
        return await self._patch(resource, (namespace or "", name), patch, "")

    async def patch_status(
        self, resource: Resource, namespace: str | None, name: str, patch: Json | bytes
    ) -> Json:
        """Apply a merge patch to the status; a version in it is the fence."""
        return await self._patch(resource, (namespace or "", name), patch, "status")

    async def replace_status(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        version: tuple[str, str],
        status: Json,
    ) -> Json:
        """Replace the status of the object with this uid and version."""
        key, kind = (namespace or "", name), self._kind(resource)
        body = of_status(resource, key, version, status)
        how = Write(trusted=True, subresource="status")
        return await self._serve(lambda: self._registry.update(kind, key, body, how))

    async def read(self, request: Request, timeout: float | None = None) -> Json:
        """The Events of a namespace that the field selector covers."""
        del timeout
        namespace = request.path.split("/")[4]
        covers = fields(request.params["fieldSelector"], EVENT_FIELDS)

        def found() -> list[Json]:
            return [obj for _, obj in self._registry.store.items(EVENTS, namespace) if covers(obj)]

        return {"items": await self._serve(found)}

    async def self_subject_access_review(self, *_: Any, **__: Any) -> bool:
        """Everything is allowed."""
        return await self._serve(lambda: True)

    # -- parts ---------------------------------------------------------------------------------

    async def _patch(
        self, resource: Resource, key: tuple[str, str], patch: Json | bytes, subresource: str
    ) -> Json:
        news = patch if isinstance(patch, dict) else json.loads(patch)
        kind = self._kind(resource)

        def write() -> Json:
            version = (news.get("metadata") or {}).get("resourceVersion")
            if version and version != self._registry.get(kind, key)["metadata"]["resourceVersion"]:
                raise failures.conflict(kind, key[1])
            how = Write(trusted=True, subresource=subresource)
            return self._registry.patch(kind, key, lambda live: merged(live, news), how)

        return await self._serve(write)

    async def _serve(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(self.rng.uniform(0, self._delay_s))
        try:
            answer = work()
        except Failure as failure:
            await asyncio.sleep(self.rng.uniform(0, self._delay_s))
            raise ApiError(
                failure.code, failure.reason, failure.message, details=failure.details
            ) from None
        await asyncio.sleep(self.rng.uniform(0, self._delay_s))
        return answer

    def _kind(self, resource: Resource) -> Kind:
        return self._registry.kind(resource.api_version, resource.kind)


def merged(live: Json, patch: Json) -> Json:
    """A merge patch (RFC 7396), but for the metadata's version, which is a fence."""
    made = dict(live)
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict):
            made[key] = merged(live.get(key) or {}, value)
        else:
            made[key] = value
    return made


def _label(obj: Json, name: str) -> str | None:
    value: str | None = (obj["metadata"].get("labels") or {}).get(name)
    return value
