"""Computes figures after each change, from objects that watches keep.

The core cannot follow another dispatcher, because it expects the outcome of its own commands. So
figures are computed from all objects each time, as from lists; changes are batched, with a pause
after each computation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from mcad.api.config import Config
from mcad.client.figures.computed import ComputedFigures, Inventory, ReadCache, compute
from mcad.client.figures.listed import WRAPPED, DeniedError, explain_list, warn_of_unseen
from mcad.client.figures.of_namespace import NamespaceFigures
from mcad.client.figures.pace import LIVELY
from mcad.client.figures.pauses import read_pauses
from mcad.client.figures.pod_defaults import list_defaults
from mcad.client.figures.presence import PRESENCE_POLL_S, UNKNOWN, Heartbeat, read_presence
from mcad.client.figures.progress import Progress
from mcad.controller.event_translation import SlimPod, slim_node, slim_pod
from mcad.controller.served_kinds import Kinds
from mcad.kube.client import Client, Selection
from mcad.kube.discovery import Discovery
from mcad.kube.document import Document
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.reflector import Reflector
from mcad.kube.resource import Resource

Json = dict[str, Any]
T = TypeVar("T")

SETTLE_S = 0.1  # a dispatch changes several objects
DENIALS_BORNE = 3  # a starting server may deny what it allows later
KINDS_S = 60.0  # between two looks for newly installed kinds


class Store(Generic[T]):
    """The sink of one reflector: its objects by uid."""

    def __init__(self, uid: Callable[[T], str], notify: Callable[[bool], None]) -> None:
        """``notify`` is called after every change, with whether an object was added or changed."""
        self.objects: dict[str, T] = {}
        self.is_synced = False
        self.error: KubeError | None = None
        self.denials = 0
        self._uid = uid
        self._notify = notify

    @property
    def is_denied(self) -> bool:
        """Whether the caller may not list it."""
        return isinstance(self.error, ApiError) and self.error.forbidden

    @property
    def is_absent(self) -> bool:
        """Whether the kind is not installed."""
        return isinstance(self.error, ApiError) and self.error.not_found

    def listing(self) -> None:
        """A list begins."""

    def upserted(self, obj: T) -> None:
        """An object is new or changed. What figures need of it may be as it was: nodes and pods
        report all day that they are well."""
        uid = self._uid(obj)
        if self.objects.get(uid) != obj:
            self.objects[uid] = obj
            self._notify(True)

    def gone(self, uid: str, namespace: str, name: str, last: T | None) -> None:  # noqa: ARG002
        """An object vanished."""
        self.objects.pop(uid, None)
        self._notify(False)

    def synced(self, *, relist: bool) -> None:  # noqa: ARG002
        """A list is complete."""
        self.is_synced, self.error = True, None
        self._notify(False)

    def alive(self, at: float) -> None:  # noqa: ARG002
        """The server sent something."""
        if self.error is not None:
            self.error = None
            self._notify(False)

    def failing(self, error: KubeError) -> None:
        """A list or watch failed; the reflector retries."""
        self.error = error
        self.denials += self.is_denied
        self._notify(False)


class WatchedFigures:
    """Figures after each change; implements ``mcad.client.figures.figures.Feed``."""

    is_asked = False

    def __init__(self, client: Client, config: Config, namespace: str | None) -> None:
        """``live`` starts it; see there for ``namespace``."""
        self._client = client
        self._config = config
        self._kinds = Kinds(Discovery(client), config)
        self._memory = ReadCache.of(client, self._kinds)
        self._progress = Progress(client.clock.monotonic)
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: BaseException | None = None
        self._namespaces: tuple[str | None, ...] = config.watch_namespaces or (None,)
        self._shares: tuple[str | None, ...] | None  # None if the caller may not list them
        self._shares = self._namespaces if config.quota_enabled else ()
        self._fallback = namespace
        self._only: str | None = None
        self._heartbeat = UNKNOWN
        self._pauses: list[Json] = []
        self._appwrappers: list[Store[Json]] = []
        self._nodes: list[Store[Json]] = []
        self._pods: list[Store[SlimPod]] = []
        self._quotas: list[Store[Json]] = []
        self._children: dict[Resource, list[Store[Json]]] = {}
        self._warned = False
        self._resting_until = float("-inf")

    # -- what commands use -------------------------------------------------------------------

    async def next(self) -> ComputedFigures | NamespaceFigures:
        """Figures after the next change; the first as soon as everything is listed."""
        clock = self._client.clock
        while True:
            await self._changed.wait()
            await clock.sleep(max(SETTLE_S, self._resting_until - clock.monotonic()))
            self._changed.clear()
            if self._failure is not None:
                raise self._failure
            self._give_up_if_denied()
            if self._is_complete():
                break
        return await self._count()

    @property
    def has_news(self) -> bool:
        """Whether something has changed since the latest figures."""
        return self._changed.is_set()

    def _give_up_if_denied(self) -> None:
        """Raise if the caller may list but not watch, instead of listing in a loop."""
        for store in self._essential():
            if store.error is not None and store.is_denied and store.denials > DENIALS_BORNE:
                raise store.error

    @property
    def trouble(self) -> str:
        """Why the figures may be outdated: a failing watch; "" if none fails."""
        failing = [store.error for store in self._essential() if store.error is not None]
        return f"no news from the API server: {failing[0]}" if failing else ""

    @property
    def heartbeat(self) -> Heartbeat:
        """Whether a dispatcher is running."""
        return self._heartbeat

    # -- watching ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the rights of the caller, and start the watches."""
        try:
            await self._probe()
        except DeniedError:
            if self._fallback is None:
                raise
            self._only, self._namespaces = self._fallback, (self._fallback,)
            await self._probe()
        self._heartbeat = await read_presence(self._client, self._config)
        self._pauses = await read_pauses(self._client)
        await self._kinds.refresh()
        pod_defaults = await list_defaults(self._client, self._namespaces)
        self._memory = replace(self._memory, pod_defaults=pod_defaults)
        for namespace in self._namespaces:
            own = Selection(namespace=namespace)
            self._appwrappers.append(self._watch(APPWRAPPERS, Document.json, _uid, own))
        if self._only is None:
            self._nodes.append(self._watch(NODES, _node, _uid, Selection()))
        pods = Selection(namespace=self._only)
        self._pods.append(self._watch(PODS, slim_pod, lambda one: one.pod.uid, pods))
        for namespace in self._shares or ():
            own = Selection(namespace=namespace)
            self._quotas.append(self._watch(QUOTA_SUBTREES, Document.json, _uid, own))
        self._watch_wrapped()
        self._spawn(self._look_for_kinds())
        self._spawn(self._listen())

    async def close(self) -> None:
        """Stop watching."""
        self._progress.done()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _probe(self) -> None:
        """Raise if a right is missing; a reflector would retry for ever."""
        places = [(APPWRAPPERS, namespace) for namespace in self._namespaces]
        places += [(NODES, None)] * (self._only is None) + [(PODS, self._only)]
        for resource, namespace in places:
            await self._knock(resource, namespace)
        try:
            for namespace in self._shares or ():
                await self._knock(QUOTA_SUBTREES, namespace)
        except DeniedError:
            if self._only is None:
                raise
            self._shares = None

    async def _knock(self, resource: Resource, namespace: str | None) -> None:
        selection = Selection(namespace=namespace, metadata_only=True)
        try:
            async with aclosing(self._client.list_pages(resource, selection, limit=1)) as pages:
                await anext(pages)
        except ApiError as error:
            raise explain_list(resource, error, self._only) from error

    def _watch(
        self,
        resource: Resource,
        slim: Callable[[Document], T],
        uid: Callable[[T], str],
        selection: Selection,
    ) -> Store[T]:
        def notify(came: bool) -> None:  # noqa: FBT001 - the store's callback
            self._changed.set()
            if came:
                self._progress.add(resource.plural)

        store = Store(uid, notify)
        self._spawn(Reflector(self._client, resource, store, slim, selection).run())
        return store

    def _watch_wrapped(self) -> None:
        for resource in self._kinds.wrapped():
            if resource != PODS and resource not in self._children:
                self._children[resource] = [
                    self._watch(
                        resource, Document.json, _uid, replace(WRAPPED, namespace=namespace)
                    )
                    for namespace in self._namespaces
                ]

    async def _look_for_kinds(self) -> None:
        while True:
            await self._client.clock.sleep(KINDS_S)
            try:
                news = await self._kinds.refresh()
            except KubeError:
                continue  # the watches report it
            if news:
                self._watch_wrapped()
                self._changed.set()

    async def _listen(self) -> None:
        while True:
            await self._client.clock.sleep(PRESENCE_POLL_S)
            heard = await read_presence(self._client, self._config)
            pauses = await self._read_pauses()
            if heard.presence is not self._heartbeat.presence or pauses != self._pauses:
                self._changed.set()
            self._heartbeat, self._pauses = heard, pauses

    async def _read_pauses(self) -> list[Json]:
        """Those of now; those of before if the API server does not answer."""
        try:
            return await read_pauses(self._client)
        except KubeError:
            return self._pauses

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._changed.set()

    # -- counting ------------------------------------------------------------------------------

    def _essential(self) -> Iterator[Store[Any]]:
        return chain(self._appwrappers, self._nodes, self._pods, self._quotas)

    def _is_complete(self) -> bool:
        """Whether everything is listed, except kinds that the caller may not list."""
        children = chain.from_iterable(self._children.values())
        return all(store.is_synced for store in self._essential()) and all(
            store.is_synced or store.is_denied or store.is_absent for store in children
        )

    async def _count(self) -> ComputedFigures | NamespaceFigures:
        self._progress.done()
        unseen = [kind for kind, stores in self._children.items() if _denied(stores)]
        if not self._warned and self._only is None:
            self._warned = True
            warn_of_unseen(unseen)
        inventory = Inventory(
            list(_all(self._appwrappers)),
            list(_all(self._nodes)),
            list(_all(self._pods)),
            {kind: list(_all(stores)) for kind, stores in self._children.items()},
            unseen,
            self._heartbeat,
            list(_all(self._quotas)) if self._shares is not None else None,
            self._pauses,
        )
        clock = self._client.clock
        began = clock.monotonic()
        figures = await compute(inventory, self._config, self._memory, clock.now_us())
        ended = clock.monotonic()
        self._resting_until = ended + LIVELY.pause_s(ended - began)
        return figures if self._only is None else NamespaceFigures(figures, self._only)


@asynccontextmanager
async def live(
    client: Client, config: Config, namespace: str | None = None
) -> AsyncIterator[WatchedFigures]:
    """Follow the cluster until the end of the block.

    A caller that may not list the whole cluster follows ``namespace``, if given.
    """
    watching = WatchedFigures(client, config, namespace)
    try:
        await watching.start()
        yield watching
    finally:
        await watching.close()


def _denied(stores: list[Store[Json]]) -> bool:
    return any(store.is_denied for store in stores)


def _all(stores: list[Store[T]]) -> Iterator[T]:
    return chain.from_iterable(store.objects.values() for store in stores)


def _uid(obj: Json) -> str:
    return str(obj["metadata"]["uid"])


def _node(document: Document) -> Json:
    """Without its version: the others of its fields that are read change rarely."""
    obj = slim_node(document)
    obj["metadata"].pop("resourceVersion", None)
    return obj
