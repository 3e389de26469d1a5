"""Events (core/v1), recorded as client-go's recorder does it, and forgotten.

The same event again only counts up. Many that differ are not made one, nor held back.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Any

from mcad.kube.types import Json
from mcad.sim.failures import Failure
from mcad.sim.kinds import EVENTS
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds

NORMAL, WARNING = "Normal", "Warning"

TTL_S = 3600  # kube-apiserver --event-ttl
_REMEMBERED = 4096


class Recorder:
    """Writes the Events of one component."""

    def __init__(self, registry: Registry, component: str, host: str = "") -> None:
        """``component`` as in ``source.component``; ``host`` is the node, for kubelets."""
        self._registry = registry
        self._kind = registry.kind("v1", "Event")
        self._component = component
        self._host = host
        self._written: OrderedDict[tuple[str, ...], Key] = OrderedDict()

    def normal(self, obj: Json, reason: str, message: str, field_path: str = "") -> None:
        """Record that something went as it should; ``obj`` is as it is in the store."""
        self._record(obj, NORMAL, reason, message, field_path)

    def warning(self, obj: Json, reason: str, message: str, field_path: str = "") -> None:
        """Record that something is wrong."""
        self._record(obj, WARNING, reason, message, field_path)

    def _record(self, obj: Json, kind: str, reason: str, message: str, field_path: str) -> None:
        now_us = self._registry.clock.now_us()
        what = (obj["metadata"]["uid"], field_path, kind, reason, message)
        known = self._written.get(what)
        if known is not None and self._count_up(known, now_us):
            self._written.move_to_end(what)
            return
        written = self._create(obj, (kind, reason, message, field_path), now_us)
        if written is not None:
            self._written[what] = written
            self._written.move_to_end(what)
            if len(self._written) > _REMEMBERED:
                self._written.popitem(last=False)

    def _count_up(self, key: Key, now_us: int) -> bool:
        """Whether the event was still there to be counted up."""

        def again(event: Json) -> Json:
            more = {"count": event.get("count", 1) + 1, "lastTimestamp": seconds(now_us)}
            return event | more

        try:
            self._registry.patch(self._kind, key, again)
        except Failure:
            return False
        return True

    def _create(self, obj: Json, what: tuple[str, str, str, str], now_us: int) -> Key | None:
        kind, reason, message, field_path = what
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or "default"
        # Names are made of the time in nanoseconds. Our clock may stand still between two events,
        # but the version never does, so the sum of both only grows.
        unique = now_us * 1000 + self._registry.store.version
        source = {"component": self._component} | ({"host": self._host} if self._host else {})
        event = {
            "metadata": {"name": f"{metadata['name']}.{unique:x}", "namespace": namespace},
            "involvedObject": _reference(obj, field_path),
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": seconds(now_us),
            "lastTimestamp": seconds(now_us),
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
        try:
            created = self._registry.create(self._kind, namespace, event)
        except Failure:  # as a namespace that is going; nothing waits for an event
            return None
        return namespace, created["metadata"]["name"]


class EventExpiry:
    """Forgets Events an hour after they were last written, as their lease in etcd does."""

    def __init__(self, registry: Registry, ttl_s: float = TTL_S) -> None:
        self._registry = registry
        self._ttl_s = ttl_s
        self._due: deque[tuple[float, Key, str]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe: Any = None

    def start(self) -> None:
        for _, event in self._registry.store.items(EVENTS):
            self._see(event)
        self._unsubscribe = self._registry.store.listen(EVENTS, self._changed)

    def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _changed(self, change: Change) -> None:
        if change.type != "DELETED":
            self._see(change.obj)

    def _see(self, event: Json) -> None:
        metadata = event["metadata"]
        at = asyncio.get_running_loop().time() + self._ttl_s
        key = (metadata["namespace"], metadata["name"])
        self._due.append((at, key, metadata["resourceVersion"]))
        self._wait()

    def _wait(self) -> None:
        if self._timer is None and self._due:
            self._timer = asyncio.get_running_loop().call_at(self._due[0][0], self._forget)

    def _forget(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._due and self._due[0][0] <= now:
            _, key, version = self._due.popleft()
            event = self._registry.store.get(EVENTS, key)
            if event is not None and event["metadata"]["resourceVersion"] == version:
                self._registry.store.remove(EVENTS, key)
        self._wait()


def _reference(obj: Json, field_path: str) -> Json:
    metadata = obj["metadata"]
    reference = {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": obj["apiVersion"],
        "resourceVersion": metadata["resourceVersion"],
        "fieldPath": field_path,
    }
    return {key: value for key, value in reference.items() if value}
