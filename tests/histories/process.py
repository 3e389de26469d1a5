"""One life of a dispatcher on stored objects.

Core, ``api`` and the controller's translation, executor and mirror are the real ones. Instead of
reflectors there are listeners of the store, whose news comes a moment later, kind by kind in order;
instead of a client and its HTTP there is client.py. A life takes a twentieth of the time of one
with all of the controller, which tests/faults plays.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from mcad.api import labels
from mcad.api.appwrapper import parse
from mcad.api.catalog import Resource
from mcad.api.config import Config, catalog_of, to_settings
from mcad.api.owner import Owner, controller_of
from mcad.api.pods import read_pod
from mcad.controller.event_translation import (
    EventTranslator,
    Readers,
    SlimPod,
    creation_order,
)
from mcad.controller.execute import Executor
from mcad.controller.mirror import Mirror
from mcad.controller.runtime import Controller
from mcad.controller.wakeup import Alarm
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event, Leading
from mcad.core.state.model import Pod
from mcad.kube.client import Client
from mcad.kube.recorder import Regarding
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi
from mcad.sim.store import Change
from tests.histories.client import StoredClient

Json = dict[str, Any]
QUIET_S = 0.02  # the inbox counts as drained after this long
NEWS_S = 0.02  # a watch tells a change so much later at most
WAY_S = 0.01
LINK_GRACE_S = 2.0  # before an owner that no watch reports is read
APPWRAPPERS, NODES, PODS = (labels.GROUP, "appwrappers"), ("", "nodes"), ("", "pods")


class Recorder:
    """Keeps the Events that are recorded: (name of the object, reason, note)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def record(
        self, regarding: Regarding, reason: str, note: str, *, action: str, warning: bool = False
    ) -> None:
        """Keep one."""
        del action, warning
        self.events.append((regarding.name, reason, note))


class Process:
    """A dispatcher from its start to its end; ``step`` is called with every event for the core."""

    quotas = None
    scale_ups = None

    def __init__(self, registry: Registry, config: Config, rng: Random, epoch: int) -> None:
        """``epoch`` is that of the Lease."""
        self._registry, self._config, self._rng, self._epoch = registry, config, rng, epoch
        served = [_entry(kind) for kind in registry.kinds.all()]
        catalog = catalog_of(config, served)
        self.dispatcher = Dispatcher(to_settings(config))
        self.recorder = Recorder()
        self._mirror = Mirror()
        client: Any = StoredClient(registry, rng, WAY_S)
        recorder: Any = self.recorder
        self._executor = Executor(client, self._mirror, recorder, self)
        self._translator = EventTranslator(
            self._mirror,
            Readers.of(config, lambda obj: parse(obj, catalog, from_json=True)),
            self.feed,
            self._ask_owner,
            self.dispatcher.cluster.judged,
        )
        self._alarm = Alarm(registry.clock, self._wake)
        self._inbox: deque[Event] = deque()
        self._is_stepping = self._is_woken = self.is_dead = False
        self._unlisten: list[Callable[[], None]] = []
        self._news: dict[tuple[str, str], deque[Callable[[], None]]] = {}

    def start(self) -> None:
        """List everything, and watch it from now on."""
        self.feed(Leading(self._epoch))
        store = self._registry.store
        wrappers = sorted((obj for _, obj in store.items(APPWRAPPERS)), key=creation_order)
        for obj in wrappers:
            self._translator.appwrapper_seen(obj, listed=True)
        kinds = [(NODES, self._node), (PODS, self._pod), *self._wrapped()]
        for storage, take in kinds:
            for key, obj in list(store.items(storage)):
                take(Change(store.version, "ADDED", key, obj, None))
        for storage, take in [(APPWRAPPERS, self._appwrapper), *kinds]:
            self._news[storage] = deque()
            self._unlisten.append(store.listen(storage, partial(self._heard, storage, take)))
        self._wake()

    def kill(self) -> None:
        """It is gone from now on."""
        self.is_dead = True
        self._alarm.close()
        for unlisten in self._unlisten:
            unlisten()
        for lane in self._executor.lanes.values():
            lane.cancel()

    # -- what the executor needs ---------------------------------------------------------------

    def feed(self, event: Event) -> None:
        """Feed an event to the core and execute its commands; never re-entrant."""
        if self.is_dead:
            return
        self._inbox.append(event)
        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._inbox:
                self._step(self._inbox.popleft())
        finally:
            self._is_stepping = False

    def observe_appwrapper(self, obj: Json) -> None:
        """Take an AppWrapper that was read after a conflict."""
        self._translator.appwrapper_seen(obj)

    def wake_at(self, at: int) -> None:
        """Send Decide at this instant."""
        if not self.is_dead:
            self._alarm.wake_at(at)

    def errored(self, uid: str, error: Exception) -> None:
        """An error of ours ends the history."""
        raise AssertionError(uid) from error

    # -- the loop ------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        for command in self.dispatcher.step(event, self._registry.clock.now_us()):
            self._executor.submit(command)
        if not isinstance(event, Decide):
            self._wake()

    def _wake(self) -> None:
        if not (self._is_woken or self.is_dead):
            self._is_woken = True
            asyncio.get_running_loop().call_later(QUIET_S, self._decide)

    def _decide(self) -> None:
        self._is_woken = False
        for lane in self._executor.lanes.values():
            lane.raise_failure()
        self.feed(Decide(may_dispatch=not self._executor.is_behind))

    # -- watches -------------------------------------------------------------------------------

    def _heard(
        self, storage: tuple[str, str], take: Callable[[Change], None], change: Change
    ) -> None:
        """The change is told later, and after those before it."""
        self._news[storage].append(partial(take, change))
        delay_s = self._rng.uniform(0, NEWS_S)
        asyncio.get_running_loop().call_later(delay_s, self._tell, storage)

    def _tell(self, storage: tuple[str, str]) -> None:
        if not self.is_dead:
            self._news[storage].popleft()()

    def _appwrapper(self, change: Change) -> None:
        if change.type == "DELETED":
            self._translator.appwrapper_gone(change.obj["metadata"]["uid"])
        else:
            self._translator.appwrapper_seen(change.obj)

    def _node(self, change: Change) -> None:
        if change.type == "DELETED":
            self._translator.node_gone(change.obj["metadata"]["uid"])
        else:
            self._translator.node_seen(self._translator.read_node(change.obj))

    def _pod(self, change: Change) -> None:
        obj = change.obj
        if change.type == "DELETED":
            self._translator.pod_gone(obj["metadata"]["uid"])
            return
        owner = controller_of(obj)
        is_item = owner is not None and owner.is_appwrapper
        self._translator.pod_seen(SlimPod(read_pod(obj), owner, obj if is_item else None))

    def _object(self, resource: Resource, change: Change) -> None:
        if change.type == "DELETED":
            self._translator.object_gone(change.obj["metadata"]["uid"])
        elif labels.APPWRAPPER_UID in labels.labels_of(change.obj):
            self._translator.object_seen(resource, change.obj)

    def _wrapped(self) -> list[tuple[tuple[str, str], Callable[[Change], None]]]:
        found = []
        for kind in self._registry.kinds.all():
            storage = kind.storage
            if storage != PODS and storage in self._config.allowed:
                found.append((storage, partial(self._object, _entry(kind))))
        return found

    def _ask_owner(self, pod: Pod, owner: Owner) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(LINK_GRACE_S, self._find_owner, pod.namespace, owner)

    def _find_owner(self, namespace: str, owner: Owner) -> None:
        if self.is_dead or not self._translator.is_owner_awaited(owner.uid):
            return
        version = f"{owner.group}/{owner.version}" if owner.group else owner.version
        kind = self._registry.kind(version, owner.kind)
        live = self._registry.find(kind, (namespace, owner.name))
        if live is not None and live["metadata"]["uid"] == owner.uid:
            self._translator.owner_found(owner.uid, controller_of(live), watched=False)


class WholeProcess:
    """A life with all of the controller: reflectors, client, and the embedded server's HTTP."""

    def __init__(self, registry: Registry, config: Config, rng: Random, epoch: int) -> None:
        """As ``Process``."""
        client = Client(SimApi(registry), registry.clock, rng)
        self._controller = Controller(client, config, identity=f"life-{epoch}", epoch=epoch)
        self._work: asyncio.Task[None] | None = None
        self.is_dead = False

    def start(self) -> None:
        """Begin to run."""
        self._work = asyncio.ensure_future(self._controller.run(asyncio.Event()))

    def kill(self) -> None:
        """It is gone from now on; raises what it failed with before."""
        self.is_dead = True
        if self._work is not None:
            if self._work.done():
                self._work.result()
            self._work.cancel()


def _entry(kind: Kind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
