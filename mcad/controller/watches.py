"""Every watch of the controller, and whether what they tell is complete (P11) and fresh (P14).

It decides nothing: the core is told which kinds can be seen, and the loop around it asks here
whether it may decide at all.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mcad.api import labels
from mcad.controller.kinds import APPWRAPPERS, NODES, PODS, Kinds, catalog_entry
from mcad.controller.sightings import PodSighting, Sightings, slim_node, slim_pod
from mcad.controller.streams import Part, Stream
from mcad.core.events import Event, KindWatched
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mcad.kube.resource import Resource

Json = dict[str, Any]
_log = logging.getLogger(__name__)

EVERYWHERE: tuple[str | None, ...] = (None,)
ESSENTIAL = tuple((kind.group, kind.plural) for kind in (APPWRAPPERS, NODES, PODS))


class Host(Protocol):
    """What the watches need of the controller around them."""

    def feed(self, event: Event) -> None:
        """Take an event for the core."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> object:
        """Run a task that ends with the controller."""
        ...

    async def await_served(self, parts: Sequence[Part[Any]]) -> None:
        """Return when AppWrappers can be listed; that long, tell ``parts`` how it stands."""
        ...

    def appwrappers_listed(self, objs: list[Json]) -> None:
        """Take the AppWrappers of the first list."""
        ...

    def appwrapper_seen(self, obj: Json) -> None:
        """Take a new or changed AppWrapper."""
        ...

    def synced(self) -> None:
        """Hear that the barrier is passed; once."""
        ...


class Watches:
    """The streams by (group, plural), and the barrier that they pass once."""

    def __init__(
        self,
        client: Client,
        kinds: Kinds,
        sightings: Sightings,
        host: Host,
        namespaces: Sequence[str] = (),
    ) -> None:
        """``namespaces`` are those whose AppWrappers are looked at; none means all."""
        self._client = client
        self._kinds = kinds
        self._sightings = sightings
        self._host = host
        self._namespaces = namespaces or EVERYWHERE
        self.streams: dict[tuple[str, str], Stream[Any]] = {}
        self.is_synced = False

    def silent(self, now: float) -> list[str]:
        """The kinds that decisions rest on and that may be dead, at a monotonic second (P14)."""
        return [stream.name for stream in self._essential() if stream.is_silent(now)]

    def watch_all(self) -> None:
        """Begin; called once, when the kinds are known."""
        seen = self._sightings
        appwrappers: Stream[Json] = Stream(
            "appwrappers",
            self._host.appwrapper_seen,
            seen.appwrapper_gone,
            self._stream_changed,
            batch=self._host.appwrappers_listed,
        )
        self._watch(APPWRAPPERS, appwrappers, namespaces=self._namespaces)
        # Nodes and pods are watched everywhere: whoever uses a node uses it up.
        nodes = Stream("nodes", seen.node_seen, seen.node_gone, self._stream_changed)
        self._watch(NODES, nodes, slim=slim_node)
        pods: Stream[PodSighting] = Stream(
            "pods", seen.pod_seen, seen.pod_gone, self._stream_changed
        )
        self._watch(PODS, pods, slim=slim_pod)
        self.watch_wrapped()

    def watch_wrapped(self) -> None:
        """One label-selected watch for every kind that may be wrapped (P7), pods aside."""
        for resource in self._kinds.wrapped():
            if (resource.group, resource.plural) in self.streams:
                continue
            stream: Stream[Json] = Stream(
                f"{resource.plural}.{resource.group}".rstrip("."),
                partial(self._sightings.object_seen, catalog_entry(resource)),
                self._sightings.object_gone,
                self._stream_changed,
            )
            self._host.feed(KindWatched(resource.group, resource.plural, False, "not listed yet"))
            self._watch(
                resource,
                stream,
                label_selector=labels.APPWRAPPER_UID,
                namespaces=self._namespaces if resource.namespaced else EVERYWHERE,
            )

    def _watch(
        self,
        resource: Resource,
        stream: Stream[Any],
        *,
        slim: Callable[[Document], Any] = Document.json,
        label_selector: str = "",
        namespaces: Sequence[str | None] = EVERYWHERE,
    ) -> None:
        self.streams[resource.group, resource.plural] = stream
        pairs = []
        for namespace in namespaces:
            selection = Selection(namespace=namespace, label_selector=label_selector)
            part = stream.part()
            pairs.append((part, Reflector(self._client, resource, part, slim, selection)))
        self._host.spawn(self._follow(resource, pairs))

    async def _follow(
        self, resource: Resource, pairs: list[tuple[Part[Any], Reflector[Any]]]
    ) -> None:
        if resource is APPWRAPPERS:
            await self._host.await_served([part for part, _ in pairs])
        for _, reflector in pairs:
            self._host.spawn(reflector.run())

    def _essential(self) -> list[Stream[Any]]:
        return [self.streams[pair] for pair in ESSENTIAL]

    def _stream_changed(self, stream: Stream[Any]) -> None:
        key = next(k for k, known in self.streams.items() if known is stream)
        if stream.error:
            _log.warning("cannot list kind=%s error=%s", stream.name, stream.error)
        if key not in ESSENTIAL:
            self._host.feed(KindWatched(*key, stream.is_synced, stream.error))
        self._pass_barrier()

    def _pass_barrier(self) -> None:
        """P11: every kind is listed; a wrapped kind that cannot be listed blocks only its users."""
        if self.is_synced:
            return
        settled = all(stream.is_synced or stream.error for stream in self.streams.values())
        if settled and all(stream.is_synced for stream in self._essential()):
            self.is_synced = True
            self._host.synced()
