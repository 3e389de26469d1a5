"""The running controller: watches, the one loop around the core, and an orderly end.

It owns no decision. Everything that happens enters the core through ``feed``, one event after the
other; ``Decide`` is sent when the inbox has been drained for a moment (core rule R5), and never
before every kind is synced (protocol P11).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mcad.api import labels
from mcad.api.config import Config, to_settings
from mcad.api.owner import Owner
from mcad.controller.adoption import Adoption
from mcad.controller.alarm import Alarm
from mcad.controller.execute import Executor
from mcad.controller.kinds import (
    APPWRAPPERS,
    NODES,
    PODS,
    Kinds,
    catalog_entry,
    wrapped_pairs,
)
from mcad.controller.lookups import Lookups
from mcad.controller.metrics import Metrics
from mcad.controller.mirror import Mirror
from mcad.controller.preflight import Preflight, await_installed
from mcad.controller.sightings import PodSighting, Sightings, slim_pod
from mcad.controller.streams import Part, Stream
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event, KindWatched
from mcad.core.model import Instant, Pod
from mcad.kube.client import Client, Selection
from mcad.kube.discovery import Discovery
from mcad.kube.errors import KubeError
from mcad.kube.recorder import Recorder, Reporter
from mcad.kube.reflector import Reflector
from mcad.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

Json = dict[str, Any]
_log = logging.getLogger(__name__)

EVERYWHERE: tuple[str | None, ...] = (None,)

QUIET_S = 0.003  # the inbox counts as drained after this long without a change
COALESCE_S = 0.020  # and is decided on after this long at the latest (core rule R5)
SILENT_RETRY_S = 1.0  # how often a silent stream is looked at again (P14)
PULSE_S = 20.0  # without any event, so that a quiet cluster does not look like a stalled loop
DRAIN_S = 3.0  # SIGTERM ends the process within 5 s
EVENT_WRITERS = 2


class Controller:
    """One process's dispatcher on one cluster."""

    def __init__(
        self,
        client: Client,
        config: Config,
        *,
        identity: str,
        preflight: Preflight | None = None,
    ) -> None:
        """``identity`` names this process in Events; it should be unique.

        ``preflight`` judges the CRD before AppWrappers are looked at, and their first list before
        anything is done; its ``Unfit`` ends ``run``. Without one the cluster is taken as it is.
        """
        self.config = config
        self.clock = client.clock
        self.dispatcher = Dispatcher(to_settings(config))
        self._client = client
        self._preflight = preflight
        self._mirror = Mirror()
        self._kinds = Kinds(Discovery(client), config)
        self._recorder = Recorder(client, Reporter(f"{labels.GROUP}/mcad", identity))
        own = config.impersonate
        creator = own.user if own is not None else (lambda _: "")
        self.executor = Executor(client, self._mirror, self._recorder, self, creator=creator)
        self._sightings = Sightings(
            self._mirror, lambda: self._kinds.catalog, self.feed, self._ask_owner
        )
        # Beside another controller, told to coexist, its finalizers are its own.
        alone = preflight is None or not preflight.coexist
        self._adoption = Adoption(client, self._recorder, self._spawn) if alone else None
        self._lookups = Lookups(client, self._kinds, self._sightings)
        self._alarm = Alarm(self.clock, self._wake)
        self._inbox: deque[Event] = deque()
        self._stepping = False
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.streams: dict[tuple[str, str], Stream[Any]] = {}
        self._namespaces = config.watch_namespaces or EVERYWHERE
        self.metrics = Metrics(self.dispatcher.world, self.streams, self.executor.lanes, self.clock)
        self.is_synced = False
        self.stepped_at = self.clock.monotonic()

    # -- life --------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; raises what killed it."""
        try:
            self._spawn(self._start())
            await self._decide_until(stop)
        finally:
            await self._shut_down()

    async def _start(self) -> None:
        await self._find_kinds()
        self._watch_all()
        for _ in range(EVENT_WRITERS):
            self._spawn(self._recorder.run())
        self._spawn(self._lookups.look_for_kinds(self._is_kind_missing, self._watch_wrapped))
        self._spawn(self._pulse())

    async def _pulse(self) -> None:
        """Decide now and then: what `/healthz` tells is that this still works."""
        while True:
            await self.clock.sleep(PULSE_S)
            self._wake()

    async def _find_kinds(self) -> None:
        """The first discovery; without it no AppWrapper can be read."""
        pause = 0.5
        while True:
            try:
                await self._kinds.refresh()
            except KubeError as error:
                _log.warning("discovery failed error=%s", error)
                await self.clock.sleep(pause)
                pause = min(pause * 2, 10.0)
            else:
                return

    async def _decide_until(self, stop: asyncio.Event) -> None:
        stopping = self._spawn(stop.wait())
        while not stop.is_set():
            changing = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((changing, stopping), return_when=asyncio.FIRST_COMPLETED)
            changing.cancel()
            if stop.is_set():
                return
            await self._drain()
            self.raise_failure()
            if self.is_synced:
                self.feed(Decide(may_dispatch=self._streams_alive()))

    async def _drain(self) -> None:
        """Wait until nothing more comes in, but not for long."""
        until = self.clock.monotonic() + COALESCE_S
        while self._changed.is_set() and self.clock.monotonic() < until:
            self._changed.clear()
            await self.clock.sleep(QUIET_S)

    async def _shut_down(self) -> None:
        """Begin nothing, finish what is under way; whatever is cut off, the protocol allows for."""
        self._alarm.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        lanes = self.executor.lanes.values()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(lane.drain() for lane in lanes))
                await self._recorder.drain()
        for lane in lanes:
            lane.cancel()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._wake()

    def raise_failure(self) -> None:
        """Raise what a background task died of: it is a bug, and going on would hide it."""
        if self._failure is not None:
            raise self._failure
        for lane in self.executor.lanes.values():
            lane.raise_failure()

    # -- the loop around the core --------------------------------------------------------------

    def feed(self, event: Event) -> None:
        """Give an event to the core and carry out what it commands; never re-entrant."""
        self._inbox.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._inbox:
                self._step(self._inbox.popleft())
        finally:
            self._stepping = False

    def _step(self, event: Event) -> None:
        self.stepped_at = self.clock.monotonic()
        commands = self.dispatcher.step(event, self.clock.now_us())
        for command in commands:
            self.metrics.count(command)
            self.executor.submit(command)
        if not isinstance(event, Decide):
            self._wake()

    def wake_at(self, at: Instant) -> None:
        """Send Decide at this instant."""
        self._alarm.wish(at)

    def _wake(self) -> None:
        self._changed.set()

    def _streams_alive(self) -> bool:
        """Whether capacity is known to be what it seems; if not, look again soon (P14)."""
        now = self.clock.monotonic()
        silent = [s.name for s in self._essential() if s.is_silent(now)]
        if silent:
            _log.warning("nothing is dispatched: silent streams=%s", ",".join(silent))
            self._alarm.wish(self.clock.now_us() + int(SILENT_RETRY_S * 1e6))
        return not silent

    # -- watches -------------------------------------------------------------------------------

    def _watch_all(self) -> None:
        seen = self._sightings
        appwrappers: Stream[Json] = Stream(
            "appwrappers",
            self._appwrapper_seen,
            seen.appwrapper_gone,
            self._stream_changed,
            batch=self._appwrappers_listed,
        )
        self._watch(APPWRAPPERS, appwrappers, namespaces=self._namespaces)
        # Nodes and pods are watched everywhere: whoever uses a node uses it up.
        nodes = Stream("nodes", seen.node_seen, seen.node_gone, self._stream_changed)
        self._watch(NODES, nodes)
        pods: Stream[PodSighting] = Stream(
            "pods", seen.pod_seen, seen.pod_gone, self._stream_changed
        )
        self._watch(PODS, pods, slim=slim_pod)
        self._watch_wrapped()

    def _appwrappers_listed(self, objs: list[Json]) -> None:
        if self._preflight is not None:
            self._preflight.listed(objs)
        self._sightings.appwrappers_listed(objs)
        for obj in objs:
            self._adopt(obj)

    def _appwrapper_seen(self, obj: Json) -> None:
        self._sightings.appwrapper_seen(obj)
        self._adopt(obj)

    def _adopt(self, obj: Json) -> None:
        if self._adoption is not None:
            self._adoption.seen(obj)

    def _watch_wrapped(self) -> None:
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
            self.feed(KindWatched(resource.group, resource.plural, False, "not listed yet"))
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
        slim: Callable[[Json], Any] = lambda obj: obj,
        label_selector: str = "",
        namespaces: Sequence[str | None] = EVERYWHERE,
    ) -> None:
        self.streams[resource.group, resource.plural] = stream
        pairs = []
        for namespace in namespaces:
            selection = Selection(namespace=namespace, label_selector=label_selector)
            part = stream.part()
            pairs.append((part, Reflector(self._client, resource, part, slim, selection)))
        self._spawn(self._follow(resource, pairs))

    async def _follow(
        self, resource: Resource, pairs: list[tuple[Part[Any], Reflector[Any]]]
    ) -> None:
        if resource is APPWRAPPERS and self._preflight is not None:
            parts = [part for part, _ in pairs]
            await await_installed(self._preflight.installed, parts, self.clock)
        for _, reflector in pairs:
            self._spawn(reflector.run())

    def _essential(self) -> list[Stream[Any]]:
        essential = (APPWRAPPERS, NODES, PODS)
        return [self.streams[r.group, r.plural] for r in essential]

    def _stream_changed(self, stream: Stream[Any]) -> None:
        key = next(k for k, known in self.streams.items() if known is stream)
        if stream.error:
            _log.warning("cannot list kind=%s error=%s", stream.name, stream.error)
        if key not in ((APPWRAPPERS.group, APPWRAPPERS.plural), ("", "nodes"), ("", "pods")):
            self.feed(KindWatched(*key, stream.is_synced, stream.error))
        self._pass_barrier()

    def _pass_barrier(self) -> None:
        """P11: every kind is listed; a wrapped kind that cannot be listed blocks only its users."""
        if self.is_synced:
            return
        settled = all(s.is_synced or s.error for s in self.streams.values())
        if settled and all(s.is_synced for s in self._essential()):
            self.is_synced = True
            _log.info("synced appwrappers=%d", len(self._mirror))
            self._wake()

    # -- reads outside of the watches ------------------------------------------------------------

    def observe_appwrapper(self, obj: Json) -> None:
        """An AppWrapper that was read because a write met a conflict."""
        self._sightings.appwrapper_seen(obj)

    def _ask_owner(self, pod: Pod, owner: Owner) -> None:
        self._spawn(self._lookups.find_owner(pod.namespace, owner))

    def _is_kind_missing(self) -> bool:
        return any(pair not in self.streams for pair in wrapped_pairs(self.config))
