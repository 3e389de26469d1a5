"""The dispatcher's view of the cluster, rebuilt once from live lists with the caller's own rights.

It feeds the same core through the same code as the controller and throws every command away, so
there is no second way to count anything. It writes nothing to the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mcad.api import labels
from mcad.api.config import Config, to_settings
from mcad.cli.errors import CliError, warn
from mcad.controller.kinds import APPWRAPPERS, NODES, PODS, Kinds, catalog_entry
from mcad.controller.mirror import Mirror
from mcad.controller.owners import CHAIN_MAX, Owner, controller_of
from mcad.controller.sightings import PodSighting, Sightings, slim_pod
from mcad.controller.views import capacity_view, detail_view, rows_view
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event, KindWatched
from mcad.core.model import Instant, Pod
from mcad.core.world import World
from mcad.kube.client import Client, Selection
from mcad.kube.discovery import Discovery
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.resource import Resource

Json = dict[str, Any]
T = TypeVar("T")

SERVER_HINT = "ask the running dispatcher instead, with --server URL"
NOT_INSTALLED = (
    "AppWrappers are not installed in this cluster; install them with "
    "`mcad crd | kubectl apply --server-side -f -`"
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures of one instant; see ``mcad.cli.figures.Figures``.

    ``unseen`` holds (group, kind) of the wrapped kinds that the caller may not list.
    """

    world: World
    now: Instant
    unseen: frozenset[tuple[str, str]]

    async def rows(self, *, waiting_only: bool) -> list[Json]:
        """One row per AppWrapper, those in line first and in order."""
        rows: list[Json] = rows_view(self.world, self.now, waiting_only=waiting_only)["items"]
        return rows

    async def capacity(self) -> Json:
        """Per node and in total."""
        return capacity_view(self.world)

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full, None if the dispatcher does not know it."""
        view = detail_view(self.world, self.now, namespace, name)
        for item in view["items"] if view is not None else ():
            if (item["apiVersion"].rpartition("/")[0], item["kind"]) in self.unseen:
                item["exists"] = None  # nobody can tell
        return view


async def take_snapshot(client: Client, config: Config) -> Snapshot:
    """List everything that counts, and count it."""
    return await _Photographer(client, config).take()


class _Photographer:
    """The controller's work without its watches: everything is listed once."""

    def __init__(self, client: Client, config: Config) -> None:
        self._client = client
        self._config = config
        self._now = client.clock.now_us()
        self._kinds = Kinds(Discovery(client), config)
        self._dispatcher = Dispatcher(to_settings(config))
        self._unlinked: list[tuple[Pod, Owner]] = []
        self._unseen: list[Resource] = []
        self._sightings = Sightings(
            Mirror(),
            lambda: self._kinds.catalog,
            self._feed,
            lambda pod, owner: self._unlinked.append((pod, owner)),
        )

    async def take(self) -> Snapshot:
        await self._kinds.refresh()
        wrapped = [kind for kind in self._kinds.wrapped() if kind != PODS]
        appwrappers, nodes, pods = await asyncio.gather(
            self._list(APPWRAPPERS, _as_it_is),
            self._list(NODES, _as_it_is),
            self._list(PODS, slim_pod),
        )
        children = await asyncio.gather(*(self._list_children(kind) for kind in wrapped))
        self._warn_of_unseen()
        self._sightings.appwrappers_listed(appwrappers)
        for node in nodes:
            self._sightings.node_seen(node)
        for kind, objects in zip(wrapped, children, strict=True):
            self._see_children(kind, objects)
        self._see_pods(pods)
        await self._find_links()
        self._feed(Decide(may_dispatch=False))
        unseen = frozenset((kind.group, kind.kind) for kind in self._unseen)
        return Snapshot(self._dispatcher.world, self._now, unseen)

    def _feed(self, event: Event) -> None:
        self._dispatcher.step(event, self._now)

    # -- lists -------------------------------------------------------------------------------

    async def _list(self, resource: Resource, read: Callable[[Json], T]) -> list[T]:
        """All objects of an essential kind, each one read as its page comes in."""
        # Pods count wherever they are, so only AppWrappers are looked for in some namespaces.
        namespaces = self._config.watch_namespaces if resource == APPWRAPPERS else ()
        try:
            return [
                one
                for namespace in namespaces or (None,)
                for one in await self._read_pages(resource, Selection(namespace=namespace), read)
            ]
        except ApiError as error:
            raise _explain_list(resource, error) from error

    async def _read_pages(
        self, resource: Resource, selection: Selection, read: Callable[[Json], T]
    ) -> list[T]:
        found: list[T] = []
        async for page in self._client.list_pages(resource, selection):
            if page.first:
                found = []
            found += map(read, page.items)
        return found

    async def _list_children(self, resource: Resource) -> list[Json]:
        """Wrapped objects of one kind; none if the caller may not see them."""
        selection = Selection(label_selector=labels.APPWRAPPER_UID)
        found: list[Json] = []
        try:
            for namespace in self._config.watch_namespaces or (None,):
                own = replace(selection, namespace=namespace)
                found += await self._read_pages(resource, own, _as_it_is)
        except ApiError as error:
            if not (error.forbidden or error.not_found):
                raise
            if error.forbidden:
                self._unseen.append(resource)
            return []
        return found

    def _warn_of_unseen(self) -> None:
        if self._unseen:
            titles = ", ".join(sorted(map(_title, self._unseen)))
            warn(
                f"you may not list {titles}; whether such items exist, and how many pods they "
                "still want, is not known"
            )

    # -- what was found ----------------------------------------------------------------------

    def _see_children(self, resource: Resource, objects: list[Json]) -> None:
        # The caller's rights say nothing of the dispatcher's, so a kind never holds anybody here.
        self._feed(KindWatched(resource.group, resource.plural, watched=True))
        for obj in objects:
            self._sightings.object_seen(catalog_entry(resource), obj)

    def _see_pods(self, pods: list[PodSighting]) -> None:
        for pod in pods:
            self._sightings.pod_seen(pod)

    async def _find_links(self) -> None:
        """Read what is missing of owner chains; a link that was found may miss the next one."""
        for _ in range(CHAIN_MAX):
            missing, self._unlinked = self._unlinked, []
            await asyncio.gather(*(self._link(pod, owner) for pod, owner in missing))

    async def _link(self, pod: Pod, owner: Owner) -> None:
        """Read an owner between an item and its pods that no list has shown."""
        kind = self._kinds.catalog.find(owner.group, owner.version, owner.kind)
        if kind is None:
            return
        resource = Resource(kind.group, kind.version, kind.resource, kind.kind, kind.namespaced)
        try:
            live = await self._client.get(resource, pod.namespace, owner.name, metadata_only=True)
        except KubeError:
            return  # its pod counts as used all the same, only not as its AppWrapper's
        if live["metadata"]["uid"] == owner.uid:
            self._sightings.owner_found(owner.uid, controller_of(live))


def _as_it_is(obj: Json) -> Json:
    return obj


def _title(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _explain_list(resource: Resource, error: ApiError) -> Exception:
    if error.forbidden:
        return CliError(
            f"you may not list {_title(resource)} in the whole cluster, which the figures need; "
            f"{SERVER_HINT}, or ask an administrator for the right to list {_title(resource)}"
        )
    if error.not_found and resource == APPWRAPPERS:
        return CliError(NOT_INSTALLED)
    return error
