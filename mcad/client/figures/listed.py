"""Computes figures once, from lists of all objects.

A caller that may not list the whole cluster gets figures of one namespace (namespace_figures.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from mcad.api import labels
from mcad.api.config import Config
from mcad.client.errors import McadError, not_installed, warn
from mcad.client.figures.computed import (
    ComputedFigures,
    Inventory,
    ReadCache,
    compute,
    facts_of,
    fed_dispatcher,
)
from mcad.client.figures.of_namespace import NamespaceFigures
from mcad.client.figures.pauses import read_pauses
from mcad.client.figures.pod_defaults import list_defaults
from mcad.client.figures.presence import read_presence
from mcad.client.figures.progress import Progress
from mcad.controller.event_translation import slim_pod
from mcad.controller.served_kinds import Kinds
from mcad.core.answers.dry_run import Facts
from mcad.core.outlook import Foreseen, foresee
from mcad.kube.client import Client, Selection
from mcad.kube.discovery import Discovery
from mcad.kube.document import Document
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.resource import Resource

Json = dict[str, Any]
T = TypeVar("T")

WRAPPED = Selection(label_selector=labels.APPWRAPPER_UID)


class DeniedError(McadError):
    """The caller may not list an essential kind."""


async def compute_figures(client: Client, config: Config) -> ComputedFigures:
    """List all objects and compute the figures; ``DeniedError`` if the caller may not."""
    return await _ClusterLister(client, config).take()


async def compute_visible_figures(
    client: Client, config: Config, namespace: str | None
) -> ComputedFigures | NamespaceFigures:
    """The same, or figures of ``namespace`` if the caller may not list the whole cluster."""
    try:
        return await compute_figures(client, config)
    except DeniedError:
        if namespace is None:
            raise
    return NamespaceFigures(
        await _ClusterLister(client, config, namespace).take_silently(), namespace
    )


async def foresee_evictions(
    client: Client, config: Config, subtrees: Sequence[Json]
) -> list[Foreseen]:
    """What a dispatcher would evict if these QuotaSubtrees were applied."""
    return await _ClusterLister(client, config).foresee(subtrees)


async def list_facts(
    client: Client, config: Config, more: Sequence[Json] = ()
) -> tuple[ComputedFigures, Facts]:
    """The figures, and all that a dispatcher observes, for dry runs; ``DeniedError`` if the caller
    may not list that. ``more`` are AppWrappers as if they had been created."""
    return await _ClusterLister(client, config).take_facts(more)


class _ClusterLister:
    def __init__(self, client: Client, config: Config, namespace: str | None = None) -> None:
        """``namespace`` is the only one to list; None for the whole cluster."""
        self._client = client
        self._config = config
        self._now = client.clock.now_us()
        self._kinds = Kinds(Discovery(client), config)
        self._unseen: list[Resource] = []
        self._progress = Progress(client.clock.monotonic)
        self._only = namespace
        self._namespaces = (namespace,) if namespace else config.watch_namespaces or (None,)

    async def take(self) -> ComputedFigures:
        figures = await self.take_silently()
        warn_of_unseen(self._unseen)
        return figures

    async def take_silently(self) -> ComputedFigures:
        inventory = await self._with_heartbeat()
        return await compute(inventory, self._config, await self._memory(), self._now)

    async def take_facts(self, more: Sequence[Json]) -> tuple[ComputedFigures, Facts]:
        inventory = await self._with_heartbeat()
        inventory = replace(inventory, appwrappers=[*inventory.appwrappers, *more])
        warn_of_unseen(self._unseen)
        return await facts_of(inventory, self._config, await self._memory(), self._now)

    async def _with_heartbeat(self) -> Inventory:
        heartbeat = asyncio.ensure_future(read_presence(self._client, self._config))
        try:
            inventory = await self._list_everything()
            return replace(inventory, heartbeat=await heartbeat)
        finally:
            heartbeat.cancel()
            self._progress.done()

    async def foresee(self, subtrees: Sequence[Json]) -> list[Foreseen]:
        try:
            inventory = await self._list_everything()
        finally:
            self._progress.done()
        warn_of_unseen(self._unseen)
        applied = {_key(one): one for one in inventory.quotas or ()}
        for one in subtrees:
            applied[_key(one)] = _as_applied(one, applied.get(_key(one)))
        inventory = replace(inventory, quotas=list(applied.values()))
        memory = await self._memory()
        return foresee(await fed_dispatcher(inventory, self._config, memory, self._now), self._now)

    async def _memory(self) -> ReadCache:
        defaults = await list_defaults(self._client, self._namespaces)
        return replace(ReadCache.of(self._client, self._kinds), pod_defaults=defaults)

    async def _list_everything(self) -> Inventory:
        await self._kinds.refresh()
        wrapped = [kind for kind in self._kinds.wrapped() if kind != PODS]
        appwrappers, nodes, pods, quotas, pauses = await asyncio.gather(
            self._list(APPWRAPPERS, Document.json, self._namespaces),
            self._list(NODES, Document.json, () if self._only else (None,)),
            # Pods use nodes in every namespace; only AppWrappers are listed in some namespaces.
            self._list(PODS, slim_pod, (self._only,)),
            self._list_shares(),
            read_pauses(self._client),
        )
        children = await asyncio.gather(*(self._list_children(kind) for kind in wrapped))
        found = dict(zip(wrapped, children, strict=True))
        listed = Inventory(appwrappers, nodes, pods, found, self._unseen)
        return replace(listed, quotas=quotas, pauses=pauses)

    async def _list(
        self, resource: Resource, read: Callable[[Document], T], namespaces: Iterable[str | None]
    ) -> list[T]:
        """All objects of an essential kind, parsed page by page."""
        try:
            return [
                one
                for namespace in namespaces
                for one in await self._read_pages(resource, Selection(namespace=namespace), read)
            ]
        except ApiError as error:
            raise explain_list(resource, error, self._only) from error

    async def _list_shares(self) -> list[Json] | None:
        """The QuotaSubtrees if quota is on; None if unknown to a caller of one namespace."""
        if not self._config.quota_enabled:
            return []
        try:
            places = self._config.watch_namespaces or (None,)
            return await self._list(QUOTA_SUBTREES, Document.json, places)
        except DeniedError:
            if self._only is None:
                raise
        return None

    async def _read_pages(
        self, resource: Resource, selection: Selection, read: Callable[[Document], T]
    ) -> list[T]:
        found: list[T] = []
        async for page in self._client.list_pages(resource, selection):
            if page.first:
                found = []
            found += map(read, page.documents())
            self._progress.add(resource.plural, len(page.texts))
        return found

    async def _list_children(self, resource: Resource) -> list[Json]:
        """Wrapped objects of one kind; none if the caller may not list them."""
        found: list[Json] = []
        try:
            for namespace in self._namespaces:
                own = replace(WRAPPED, namespace=namespace)
                found += await self._read_pages(resource, own, Document.json)
        except ApiError as error:
            if not (error.forbidden or error.not_found):
                raise
            if error.forbidden:
                self._unseen.append(resource)
            return []
        return found


def warn_of_unseen(unseen: Sequence[Resource]) -> None:
    """Warn of wrapped kinds that the caller may not list, and of what is unknown therefore."""
    if unseen:
        titles = ", ".join(sorted(map(_title, unseen)))
        warn(
            f"you may not list {titles}; whether such items exist and how many pods they "
            "still need is not known"
        )


def explain_list(resource: Resource, error: ApiError, namespace: str | None = None) -> Exception:
    """The error for an essential list that failed."""
    if error.forbidden and namespace:
        return DeniedError(
            f"you may not list {_title(resource)} in namespace {namespace}; choose one of yours "
            "with -n, or ask an administrator for the role `view` in this one"
        )
    if error.forbidden:
        return DeniedError(
            f"you may not list {_title(resource)} in the whole cluster; ask an administrator for "
            "this right, or for the role `view` and the visibility API of the chart"
        )
    if error.not_found and resource == APPWRAPPERS:
        return McadError(not_installed(resource))
    if error.not_found and resource == QUOTA_SUBTREES:
        return McadError(f"{not_installed(resource)}, or set quotaEnabled to false")
    return error


def _title(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _key(subtree: Json) -> tuple[str, str]:
    metadata = subtree["metadata"]
    return metadata.get("namespace") or "default", metadata["name"]


def _as_applied(subtree: Json, present: Json | None) -> Json:
    """The object after it is applied: an update of the present one, or a new one."""
    namespace, name = _key(subtree)
    metadata = subtree["metadata"] | {"namespace": namespace, "uid": f"{namespace}/{name}"}
    if present is not None:
        known = present["metadata"]
        metadata |= {"uid": known["uid"], "creationTimestamp": known["creationTimestamp"]}
    return subtree | {"metadata": metadata}
