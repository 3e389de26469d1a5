"""Lists what admission adds to pods (C5): without it, demands would be too small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcad.api.defaults import (
    PodDefaults,
    read_limit_range,
    read_priority_class,
    read_runtime_class,
)
from mcad.controller.defaults import LIMIT_RANGES, PRIORITY_CLASSES, RUNTIME_CLASSES
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.resource import Resource

Json = dict[str, Any]


async def list_defaults(client: Client, namespaces: Iterable[str | None]) -> PodDefaults:
    """List LimitRanges, RuntimeClasses and PriorityClasses; those that the caller may not list are
    left out."""
    pod_defaults = PodDefaults()
    for namespace in namespaces:
        for one in await _list(client, LIMIT_RANGES, namespace):
            meta = one["metadata"]
            pod_defaults.put_range(meta["namespace"], meta["uid"], read_limit_range(one))
    for one in await _list(client, RUNTIME_CLASSES, None):
        pod_defaults.put_class(one["metadata"]["name"], read_runtime_class(one))
    for one in await _list(client, PRIORITY_CLASSES, None):
        pod_defaults.put_priority(one["metadata"]["name"], read_priority_class(one))
    return pod_defaults


async def _list(client: Client, resource: Resource, namespace: str | None) -> list[Json]:
    try:
        found, _ = await client.list_all(resource, Selection(namespace=namespace))
    except ApiError as error:
        if not (error.forbidden or error.not_found):
            raise
        return []
    return found
