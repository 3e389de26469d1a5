"""Figures that the CLI computes itself from the objects of the cluster, with the caller's rights.

The objects go through the code of the controller into a core, whose commands are discarded: so the
figures are computed as the dispatcher computes them. Nothing is written to the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

from msgspec import Struct, field

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import Catalog
from mcad.api.config import Config, to_settings
from mcad.api.defaults import PodDefaults
from mcad.api.owner import Owner, controller_of
from mcad.api.pauses import read_pause
from mcad.api.quotas import read_quota
from mcad.api.wire import as_map
from mcad.client.figures.pauses import notes_of
from mcad.client.figures.presence import UNKNOWN, Heartbeat, Presence
from mcad.client.figures.written_shares import (
    Shares,
    with_deleted,
    with_deleted_holders,
    written_shares,
)
from mcad.controller.event_translation import EventTranslator, Readers, SlimPod, creation_order
from mcad.controller.mirror import Mirror
from mcad.controller.owner_chains import CHAIN_MAX
from mcad.controller.quota_views import node_view, trees_view
from mcad.controller.served_kinds import Kinds, catalog_entry
from mcad.controller.views import capacity_view, detail_steps, rows_view
from mcad.core.answers.dry_run import Facts
from mcad.core.cluster import Cluster
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event, KindWatched, LookOn, PauseSeen, QuotaSeen
from mcad.core.outlook import unhurried
from mcad.core.state.model import Pod
from mcad.core.state.settings import Settings as CoreSettings
from mcad.core.state.units import Instant
from mcad.core.views.rows import FITS_AS_STORED, OPEN, Picture
from mcad.kube import selectors
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.resource import Resource

Json = dict[str, Any]
T = TypeVar("T")

STRETCH = 200  # objects in a row, some tens of milliseconds


class ComputedFigures(Struct, frozen=True):
    """Figures of one instant; see ``mcad.client.figures.figures.Figures``.

    ``unseen`` holds (group, kind) of the wrapped kinds that the caller may not list.
    """

    cluster: Cluster
    now: Instant
    unseen: frozenset[tuple[str, str]]
    objects: Mapping[str, Json]  # by uid of an AppWrapper
    heartbeat: Heartbeat
    quota_enabled: bool = False
    subtrees: Sequence[Json] | None = ()  # None if the caller may not list them
    only: None = None
    _pictures: list[Picture] = field(default_factory=list)

    @property
    def picture(self) -> Picture:
        """All AppWrappers in order, made once: nothing changes any more."""
        if not self._pictures:
            self._pictures.append(Picture(self.cluster, self.now))
        return self._pictures[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: no dispatcher is running, or dispatch is paused for the whole cluster."""
        pauses = self.cluster.waiting.dispatch_pauses.by_uid.values()
        return (*self.heartbeat.notes, *notes_of(pauses))

    async def labelled(self, selector: str) -> frozenset[str]:
        """The uids of the AppWrappers with these labels."""
        matches = selectors.labels(selector)
        return frozenset(
            uid
            for uid, obj in self.objects.items()
            if matches(as_map(obj["metadata"].get("labels")))
        )

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first and in order."""
        view = rows_view(self.cluster, self.now, waiting_only=waiting_only, with_starts=with_starts)
        return list(map(self.as_known, view["items"]))

    async def capacity(self) -> Json:
        """Per node and in total."""
        return capacity_view(self.cluster)

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full, None if the dispatcher does not know it."""
        steps = detail_steps(self.cluster, self.picture, namespace, name)
        view = next((one for one in steps if one is not None), None)
        if view is None:
            return None
        for item in view["items"]:
            if (item["apiVersion"].rpartition("/")[0], item["kind"]) in self.unseen:
                item["exists"] = None  # not known
        if view["demand"] is None:
            unknown = {"replicas": None, "request": None, "reserved": None}
            view["podSets"] = [one | unknown for one in view["podSets"]]
        row = self.as_known(view)
        return row | ({"inLine": None, "ahead": None} if row["position"] is None else {})

    async def quota(self) -> Json:
        """All quota trees."""
        view = trees_view(self.cluster, enabled=self.quota_enabled)
        written = self._written_shares()
        for tree in view["trees"]:
            at = tree["tree"]
            tree["nodes"] = [with_deleted(n, written.get((at, n["node"]))) for n in tree["nodes"]]
        return view

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        view = node_view(self.cluster, self.now, tree, node)
        if view is None:
            return None
        view = with_deleted_holders(view, self._written_shares().get((tree, node)))
        return view | {"queue": list(map(self.as_known, view["queue"]))}

    def _written_shares(self) -> Shares:
        """What the dispatcher wrote of shares; nothing if none runs, which would be of the past."""
        is_led = self.heartbeat.presence is not Presence.ABSENT
        return written_shares(self.subtrees or ()) if is_led else {}

    def as_known(self, row: Json) -> Json:
        """The row with unknown figures as None, and a note if no dispatcher is running."""
        doubts = self.cluster.doubts
        if (
            row["position"]
            and doubts is not None
            and doubts.shares
            and self.cluster.waiting.turns.change
        ):
            row = row | {"position": None}
        is_open = row["waitsFor"] == OPEN or row["why"] == FITS_AS_STORED
        if doubts is not None and row.get("starts") and (is_open or self.cluster.reservations):
            row = row | {"starts": None}  # reservations have no start time in the cluster
        return self.heartbeat.applied_to(row)


class Inventory(Struct, frozen=True):
    """All objects that figures are computed from.

    ``unseen`` are wrapped kinds that the caller may not list; ``quotas`` is None if the caller may
    not list QuotaSubtrees."""

    appwrappers: Iterable[Json]
    nodes: Iterable[Json]
    pods: Iterable[SlimPod]
    children: Mapping[Resource, Iterable[Json]]
    unseen: Iterable[Resource]
    heartbeat: Heartbeat = UNKNOWN
    quotas: Sequence[Json] | None = ()
    pauses: Sequence[Json] = ()


class OwnerLookup:
    """Looks up owners between an item and its pods that are in no list, each once."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        """``kinds`` finds where the kind of an owner is served."""
        self._client = client
        self._kinds = kinds
        self._known: dict[str, Owner | None] = {}

    async def controller(self, pod: Pod, owner: Owner) -> Owner | None:
        """The controller of the owner; None if there is none or it is not known."""
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
        resource = self._kinds.resource_of(owner)
        if resource is None:
            return None
        live = await self._client.get(resource, namespace, owner.name, metadata_only=True)
        return controller_of(live) if live["metadata"]["uid"] == owner.uid else None


class ParsedAppWrappers:
    """Parsed AppWrappers, reused by the next computation: parsing is most of its work."""

    def __init__(self) -> None:
        """Empty."""
        self._known: dict[str, tuple[str, Parsed]] = {}
        self._catalog: Catalog | None = None

    def read(self, obj: Json, catalog: Catalog) -> Parsed:
        """``parse``, once for each version of an object and each catalogue."""
        if catalog is not self._catalog:
            if catalog != self._catalog:
                self._known.clear()
            self._catalog = catalog
        uid, version = obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
        known = self._known.get(uid)
        if known is None or known[0] != version:
            known = self._known[uid] = (version, parse(obj, catalog, from_json=True))
        return known[1]

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all others."""
        present = set(uids)
        for uid in [uid for uid in self._known if uid not in present]:
            del self._known[uid]


class ReadCache(Struct, frozen=True):
    """What is kept from one computation to the next."""

    kinds: Kinds
    links: OwnerLookup
    readings: ParsedAppWrappers
    pod_defaults: PodDefaults = field(default_factory=PodDefaults)

    @classmethod
    def of(cls, client: Client, kinds: Kinds) -> Self:
        """An empty cache."""
        return cls(kinds, OwnerLookup(client, kinds), ParsedAppWrappers())

    def read(self, obj: Json) -> Parsed:
        """An AppWrapper with the demand that its pods will have."""
        return self.pod_defaults.completed(self.readings.read(obj, self.kinds.catalog))


async def compute(
    inventory: Inventory, config: Config, memory: ReadCache, now: Instant
) -> ComputedFigures:
    """Compute the figures that a dispatcher with this configuration would have now.

    Pauses regularly, so that keys and signals are handled.
    """
    return await _Feeder(config, memory, now, to_settings(config)).figures(inventory)


async def fed_dispatcher(
    inventory: Inventory, config: Config, memory: ReadCache, now: Instant
) -> Dispatcher:
    """A dispatcher that knows all objects and has decided nothing, for the outlook on evictions."""
    feeder = _Feeder(config, memory, now, unhurried(to_settings(config)))
    return await feeder.dispatcher(inventory)


async def facts_of(
    inventory: Inventory, config: Config, memory: ReadCache, now: Instant
) -> tuple[ComputedFigures, Facts]:
    """The figures, and all that a dispatcher observes of the same objects, for dry runs."""
    settings = to_settings(config)
    feeder = _Feeder(config, memory, now, settings)
    figures = await feeder.figures(inventory)
    return figures, Facts(settings, tuple(feeder.events), now)


class _Feeder:
    """Feeds listed objects to a core, as the watches of the controller would."""

    def __init__(
        self, config: Config, memory: ReadCache, now: Instant, settings: CoreSettings
    ) -> None:
        self._quota_enabled = config.quota_enabled
        self._links = memory.links
        self._readings = memory.readings
        self._now = now
        self._dispatcher = dispatcher = Dispatcher(settings)
        self._unlinked: list[tuple[Pod, Owner]] = []
        self.events: list[Event] = []  # of all objects, without what follows from them
        # No cycle with the translator: figures that were replaced are freed without the collector.
        events, unlinked = self.events, self._unlinked

        def feed(event: Event) -> None:
            events.append(event)
            dispatcher.step(event, now)

        self._feed = feed
        self._sightings = EventTranslator(
            Mirror(),
            Readers.of(config, memory.read),
            feed,
            lambda pod, owner: unlinked.append((pod, owner)),
            dispatcher.cluster.judged,
        )

    async def figures(self, inventory: Inventory) -> ComputedFigures:
        appwrappers = await self._feed_all(inventory)
        is_led = inventory.heartbeat.presence is not Presence.ABSENT
        self._dispatcher.step(LookOn(is_led=is_led), self._now)
        unseen = frozenset((kind.group, kind.kind) for kind in inventory.unseen)
        known = {str(obj["metadata"]["uid"]): obj for obj in appwrappers}
        self._readings.keep(known)
        cluster = self._dispatcher.cluster
        return ComputedFigures(
            cluster,
            self._now,
            unseen,
            known,
            inventory.heartbeat,
            self._quota_enabled,
            inventory.quotas,
        )

    async def dispatcher(self, inventory: Inventory) -> Dispatcher:
        await self._feed_all(inventory)
        return self._dispatcher

    async def _feed_all(self, inventory: Inventory) -> list[Json]:
        """Feed all objects; returns the AppWrappers in their order."""
        for subtree in inventory.quotas or ():
            self._feed(QuotaSeen(read_quota(subtree)))
        for pause in inventory.pauses:
            self._feed(PauseSeen(read_pause(pause)))
        appwrappers = sorted(inventory.appwrappers, key=creation_order)
        async for appwrapper in _paced(appwrappers):
            self._sightings.appwrapper_seen(appwrapper, listed=True)
        async for node in _paced(inventory.nodes):
            self._sightings.node_seen(self._sightings.read_node(node))
        for kind, objects in inventory.children.items():
            self._see_children(kind, objects)
        async for pod in _paced(inventory.pods):
            self._sightings.pod_seen(pod)
        await self._find_links()
        return appwrappers

    def _see_children(self, resource: Resource, objects: Iterable[Json]) -> None:
        # The rights of the caller are not those of the dispatcher, so no kind is on hold here.
        self._feed(KindWatched(resource.group, resource.plural, watched=True))
        for obj in objects:
            self._sightings.object_seen(catalog_entry(resource), obj)

    async def _find_links(self) -> None:
        """Look up missing links of owner chains; a link that was found may lack the next one."""
        for _ in range(CHAIN_MAX):
            missing = self._unlinked.copy()
            self._unlinked.clear()
            await asyncio.gather(*(self._link(pod, owner) for pod, owner in missing))

    async def _link(self, pod: Pod, owner: Owner) -> None:
        controller = await self._links.controller(pod, owner)
        if controller is not None:
            self._sightings.owner_found(owner.uid, controller)


async def _paced(things: Iterable[T]) -> AsyncIterator[T]:
    """The same objects, with a turn of the event loop after each ``STRETCH``."""
    for number, thing in enumerate(things):
        if number % STRETCH == 0:
            await asyncio.sleep(0)
        yield thing
