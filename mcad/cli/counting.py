"""The dispatcher's view of the cluster, counted anew from objects with the caller's own rights.

It feeds the same core through the same code as the controller and throws every command away, so
there is no second way to count anything. It writes nothing to the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcad.api.config import Config, to_settings
from mcad.api.owner import Owner, controller_of
from mcad.api.wire import as_map
from mcad.controller.kinds import Kinds, catalog_entry
from mcad.controller.mirror import Mirror
from mcad.controller.owners import CHAIN_MAX
from mcad.controller.sightings import PodSighting, Sightings
from mcad.controller.views import capacity_view, detail_view, rows_view
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event, KindWatched
from mcad.core.model import Instant, Pod
from mcad.core.world import World
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.resource import Resource

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures of one instant; see ``mcad.cli.figures.Figures``.

    ``unseen`` holds (group, kind) of the wrapped kinds that the caller may not list.
    """

    world: World
    now: Instant
    unseen: frozenset[tuple[str, str]]
    marks: Mapping[str, Mapping[str, str]]  # uid of an AppWrapper -> its labels

    def labels(self, uid: str) -> Mapping[str, str]:
        """The labels of an AppWrapper."""
        return self.marks.get(uid, {})

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


@dataclass(frozen=True, slots=True)
class Inventory:
    """All objects that count. ``unseen`` are wrapped kinds that the caller may not list."""

    appwrappers: Iterable[Json]
    nodes: Iterable[Json]
    pods: Iterable[PodSighting]
    children: Mapping[Resource, Iterable[Json]]
    unseen: Iterable[Resource]


class Links:
    """Owners between an item and its pods that no list has shown, each one read once."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        """``kinds`` tells where an owner's kind is served."""
        self._client = client
        self._kinds = kinds
        self._known: dict[str, Owner | None] = {}

    async def controller(self, pod: Pod, owner: Owner) -> Owner | None:
        """The owner's own controller; None if it has none, or nobody can tell."""
        if owner.uid not in self._known:
            try:
                self._known[owner.uid] = await self._read(pod.namespace, owner)
            except KubeError as error:
                if isinstance(error, ApiError) and not error.transient:
                    self._known[owner.uid] = None
                # Its pod counts as used all the same, only not as its AppWrapper's.
                return None
        return self._known[owner.uid]

    async def _read(self, namespace: str, owner: Owner) -> Owner | None:
        kind = self._kinds.catalog.find(owner.group, owner.version, owner.kind)
        if kind is None:
            return None
        resource = Resource(kind.group, kind.version, kind.resource, kind.kind, kind.namespaced)
        live = await self._client.get(resource, namespace, owner.name, metadata_only=True)
        return controller_of(live) if live["metadata"]["uid"] == owner.uid else None


async def count(
    inventory: Inventory, config: Config, kinds: Kinds, links: Links, now: Instant
) -> Snapshot:
    """The figures that a dispatcher of this configuration would have now."""
    return await _Counter(config, kinds, links, now).count(inventory)


class _Counter:
    """The controller's work without its watches."""

    def __init__(self, config: Config, kinds: Kinds, links: Links, now: Instant) -> None:
        self._links = links
        self._now = now
        self._dispatcher = Dispatcher(to_settings(config))
        self._unlinked: list[tuple[Pod, Owner]] = []
        self._sightings = Sightings(
            Mirror(),
            lambda: kinds.catalog,
            self._feed,
            lambda pod, owner: self._unlinked.append((pod, owner)),
        )

    async def count(self, inventory: Inventory) -> Snapshot:
        appwrappers = list(inventory.appwrappers)
        self._sightings.appwrappers_listed(appwrappers)
        for node in inventory.nodes:
            self._sightings.node_seen(node)
        for kind, objects in inventory.children.items():
            self._see_children(kind, objects)
        for pod in inventory.pods:
            self._sightings.pod_seen(pod)
        await self._find_links()
        self._feed(Decide(may_dispatch=False))
        unseen = frozenset((kind.group, kind.kind) for kind in inventory.unseen)
        marks = dict(map(_labelled, appwrappers))
        return Snapshot(self._dispatcher.world, self._now, unseen, marks)

    def _feed(self, event: Event) -> None:
        self._dispatcher.step(event, self._now)

    def _see_children(self, resource: Resource, objects: Iterable[Json]) -> None:
        # The caller's rights say nothing of the dispatcher's, so a kind never holds anybody here.
        self._feed(KindWatched(resource.group, resource.plural, watched=True))
        for obj in objects:
            self._sightings.object_seen(catalog_entry(resource), obj)

    async def _find_links(self) -> None:
        """Learn what is missing of owner chains; a link that was found may miss the next one."""
        for _ in range(CHAIN_MAX):
            missing, self._unlinked = self._unlinked, []
            await asyncio.gather(*(self._link(pod, owner) for pod, owner in missing))

    async def _link(self, pod: Pod, owner: Owner) -> None:
        controller = await self._links.controller(pod, owner)
        if controller is not None:
            self._sightings.owner_found(owner.uid, controller)


def _labelled(obj: Json) -> tuple[str, Json]:
    metadata = obj["metadata"]
    return metadata["uid"], as_map(metadata.get("labels"))
