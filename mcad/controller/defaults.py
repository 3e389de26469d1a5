"""Watches what admission adds to pods: LimitRanges, RuntimeClasses and PriorityClasses (C5), and
Kueue's WorkloadPriorityClasses where they are served at the start.

They are not essential: without the right to list them the controller goes on without them, and the
watch reports it once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from mcad.api.appwrapper import Parsed
from mcad.api.defaults import (
    PodDefaults,
    PriorityClass,
    class_value,
    read_limit_range,
    read_priority_class,
    read_runtime_class,
)
from mcad.controller.streams import Stream
from mcad.core.events import AppWrapperSeen, Event
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.reflector import Reflector
from mcad.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mcad.controller.mirror import Manifests, Mirror
    from mcad.core.state.model import Workload

Json = dict[str, Any]

LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)

WORKLOAD_PRIORITY_CLASSES = ("kueue.x-k8s.io", "workloadpriorityclasses")

SLICE = 50
"""AppWrappers that are read again without a pause: about 10 ms in which other tasks wait."""


class Host(Protocol):
    """What is needed of the controller."""

    def feed(self, event: Event) -> None:
        """Feed an event to the core."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task that ends with the controller."""
        ...


class Defaults:
    """Keeps ``pod_defaults`` up to date; feeds every AppWrapper whose demand has changed."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        host: Host,
        namespaces: Sequence[str] = (),
        served: Callable[[tuple[str, str]], Resource | None] = lambda _: None,
    ) -> None:
        """``namespaces`` are the watched namespaces of AppWrappers; empty means all. ``served``
        finds a kind by group and plural."""
        self.pod_defaults = PodDefaults()
        self._client = client
        self._mirror = mirror
        self._host = host
        self._served = served
        self._namespaces: Sequence[str | None] = namespaces or (None,)
        self._places: dict[str, str] = {}  # uid -> namespace of a LimitRange, name of a class
        self._priorities: dict[str, tuple[str, PriorityClass]] = {}  # uid -> name, content
        self._workload_priorities: dict[str, str] = {}  # uid -> name
        self._streams: list[Stream[Json]] = []
        self._settled = asyncio.Event()

    def completed(self, work: Workload, manifests: Manifests) -> Workload:
        """An AppWrapper with the demand that its pods will have."""
        if manifests.may_have_defaults or self.pod_defaults.concerns_more(work):
            return self.pod_defaults.completed(Parsed(work, manifests.texts())).workload
        return work

    def watch(self) -> None:
        """Start the watches; called once."""
        now = self._client.clock.monotonic
        ranges = Stream("limitranges", self._range_seen, self._range_gone, self._judge, now)
        classes = Stream(
            "runtimeclasses.node.k8s.io", self._class_seen, self._class_gone, self._judge, now
        )
        priorities = Stream(
            "priorityclasses.scheduling.k8s.io",
            self._priority_seen,
            self._priority_gone,
            self._judge,
            now,
        )
        self._streams = [ranges, classes, priorities]
        self._follow(LIMIT_RANGES, ranges, self._namespaces)
        self._follow(RUNTIME_CLASSES, classes, (None,))
        self._follow(PRIORITY_CLASSES, priorities, (None,))
        self._watch_workload_priorities()

    def _watch_workload_priorities(self) -> None:
        resource = self._served(WORKLOAD_PRIORITY_CLASSES)
        if resource is None:
            return
        self.pod_defaults.workload_priorities = {}
        stream = Stream(
            "workloadpriorityclasses.kueue.x-k8s.io",
            self._workload_priority_seen,
            self._workload_priority_gone,
            self._judge,
            self._client.clock.monotonic,
        )
        self._streams.append(stream)
        self._follow(resource, stream, (None,))

    async def known(self) -> None:
        """Return when each kind is listed, or its list has failed."""
        await self._settled.wait()

    def _follow(
        self, resource: Resource, stream: Stream[Json], namespaces: Sequence[str | None]
    ) -> None:
        reflectors = [
            Reflector(
                self._client,
                resource,
                stream.part(namespace or ""),
                Document.json,
                Selection(namespace=namespace),
            )
            for namespace in namespaces
        ]
        for reflector in reflectors:
            self._host.spawn(reflector.run())

    def _judge(self, _: Stream[Json]) -> None:
        if all(stream.is_synced or stream.error for stream in self._streams):
            self._settled.set()

    # -- the watched objects -------------------------------------------------------------------

    def _range_seen(self, obj: Json) -> None:
        uid, namespace = obj["metadata"]["uid"], obj["metadata"]["namespace"]
        self._places[uid] = namespace
        if self.pod_defaults.put_range(namespace, uid, read_limit_range(obj)):
            self._read_anew_in(namespace)

    def _range_gone(self, uid: str) -> None:
        namespace = self._places.pop(uid, "")
        if self.pod_defaults.drop_range(namespace, uid):
            self._read_anew_in(namespace)

    def _class_seen(self, obj: Json) -> None:
        self._places[obj["metadata"]["uid"]] = name = obj["metadata"]["name"]
        if self.pod_defaults.put_class(name, read_runtime_class(obj)):
            self._read_anew_with_classes()

    def _class_gone(self, uid: str) -> None:
        name = self._places.pop(uid, "")
        if name not in self._places.values() and self.pod_defaults.drop_class(name):
            self._read_anew_with_classes()

    def _priority_seen(self, obj: Json) -> None:
        uid, name, found = obj["metadata"]["uid"], obj["metadata"]["name"], read_priority_class(obj)
        _, known = self._priorities.get(uid, (name, PriorityClass()))
        self._priorities[uid] = name, found
        if self.pod_defaults.put_priority(name, found):
            self._read_anew_with_classes(known, found)

    def _priority_gone(self, uid: str) -> None:
        name, known = self._priorities.pop(uid, ("", PriorityClass()))
        again = any(name == other for other, _ in self._priorities.values())
        if not again and self.pod_defaults.drop_priority(name):
            self._read_anew_with_classes(known)

    def _workload_priority_seen(self, obj: Json) -> None:
        name = obj["metadata"]["name"]
        values = self.pod_defaults.workload_priorities
        if values is None:
            return
        is_new, values[name] = name not in values, class_value(obj)
        self._workload_priorities[obj["metadata"]["uid"]] = name
        if is_new:
            works = (seat.workload for seat in self._mirror.all())
            self._read_anew([work.uid for work in works if work.priority_label == name])

    def _workload_priority_gone(self, uid: str) -> None:
        name = self._workload_priorities.pop(uid, "")
        again = name in self._workload_priorities.values()
        if self.pod_defaults.workload_priorities is not None and not again:
            self.pod_defaults.workload_priorities.pop(name, None)

    # -- the AppWrappers concerned ------------------------------------------------------------

    def _read_anew_in(self, namespace: str) -> None:
        works = (seat.workload for seat in self._mirror.all())
        self._read_anew([work.uid for work in works if work.namespace == namespace])

    def _read_anew_with_classes(self, *ones: PriorityClass) -> None:
        """Read again what names a class, or every AppWrapper if the changed one is or was the
        default and says ``Never``: a new default changes no priority."""
        concerns_all = any(one.never and one.everywhere for one in ones)
        self._read_anew(
            [
                seat.workload.uid
                for seat in self._mirror.all()
                if concerns_all or seat.manifests.may_have_defaults
            ]
        )

    def _read_anew(self, uids: list[str]) -> None:
        if uids:
            self._host.spawn(self._in_slices(uids))

    async def _in_slices(self, uids: list[str]) -> None:
        for begin in range(0, len(uids), SLICE):
            for uid in uids[begin : begin + SLICE]:
                self._feed(uid)
            await self._client.clock.sleep(0)

    def _feed(self, uid: str) -> None:
        seat = self._mirror.get(uid)
        if seat is None:
            return
        work = self.pod_defaults.with_defaults(seat.workload, seat.manifests.texts())
        if work != seat.workload:
            seat.workload = work
            self._host.feed(AppWrapperSeen(replace(work, persisted=None)))
