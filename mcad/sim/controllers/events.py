"""Events (core/v1), recorded and thinned out as client-go's recorder does it, and forgotten.

Source of the rules: ``k8s.io/client-go/tools/record/events_cache.go``. The same event again only
counts up; more than ten of a kind about one object within ten minutes become one; and one source
may say no more than 25 things about one object, and one more every five minutes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcad.sim.failures import Failure
from mcad.sim.kinds import EVENTS
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds

Json = dict[str, Any]

_K = TypeVar("_K")
_V = TypeVar("_V")

NORMAL, WARNING = "Normal", "Warning"

TTL_S = 3600  # kube-apiserver --event-ttl
_REMEMBERED = 4096
_SIMILAR_MAX = 10
_SIMILAR_US = 600 * 1_000_000
_BURST = 25.0
_REFILL_PER_US = 1 / (300 * 1_000_000)
_COMBINED = "(combined from similar events): "


@dataclass(slots=True)
class _Similar:
    """Events about one object that differ in their message only."""

    messages: dict[str, None] = field(default_factory=dict)
    last_us: int = 0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_us: int


class Recorder:
    """Says what one component has to say about objects."""

    def __init__(self, registry: Registry, component: str, host: str = "") -> None:
        """``component`` as in ``source.component``; ``host`` is the node, for kubelets."""
        self._registry = registry
        self._kind = registry.kind("v1", "Event")
        self._component = component
        self._host = host
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._written: OrderedDict[tuple[str, ...], Key] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ...], _Bucket] = OrderedDict()

    def normal(self, obj: Json, reason: str, message: str, field_path: str = "") -> None:
        """Record that something went as it should; ``obj`` is as it is in the store."""
        self._record(obj, NORMAL, reason, message, field_path)

    def warning(self, obj: Json, reason: str, message: str, field_path: str = "") -> None:
        """Record that something is wrong."""
        self._record(obj, WARNING, reason, message, field_path)

    def _record(self, obj: Json, kind: str, reason: str, message: str, field_path: str) -> None:
        now_us = self._registry.clock.now_us()
        about = (obj["metadata"]["uid"], field_path, kind)
        similar_key = (*about, reason)
        full_key: tuple[str, ...] = (*similar_key, message)
        if self._is_one_of_many(similar_key, message, now_us):
            message, full_key = _COMBINED + message, similar_key
        if not self._may_speak(about[:1] + about[2:], now_us):
            return
        known = self._written.get(full_key)
        if known is not None and self._count_up(known, message, now_us):
            self._written.move_to_end(full_key)
            return
        written = self._create(obj, (kind, reason, message, field_path), now_us)
        if written is not None:
            _remember(self._written, full_key, written)

    def _is_one_of_many(self, key: tuple[str, ...], message: str, now_us: int) -> bool:
        known = self._similar.get(key)
        if known is None or now_us - known.last_us > _SIMILAR_US:
            known = _Similar()
        _remember(self._similar, key, known)
        known.last_us = now_us
        known.messages[message] = None
        if len(known.messages) < _SIMILAR_MAX:
            return False
        del known.messages[next(iter(known.messages))]
        return True

    def _may_speak(self, key: tuple[str, ...], now_us: int) -> bool:
        bucket = self._buckets.get(key) or _Bucket(_BURST, now_us)
        _remember(self._buckets, key, bucket)
        refill = (now_us - bucket.at_us) * _REFILL_PER_US
        bucket.tokens, bucket.at_us = min(bucket.tokens + refill, _BURST), now_us
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True

    def _count_up(self, key: Key, message: str, now_us: int) -> bool:
        """Whether the event was still there to be counted up."""

        def again(event: Json) -> Json:
            more = {"count": event.get("count", 1) + 1, "lastTimestamp": seconds(now_us)}
            return event | more | {"message": message}

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
        except Failure:  # as a namespace that is going; nobody waits for an event
            return None
        return namespace, created["metadata"]["name"]


class EventExpiry:
    """Forgets Events an hour after they were last written, as their lease in etcd does."""

    def __init__(self, registry: Registry, ttl_s: float = TTL_S) -> None:
        """Nothing is forgotten before ``start``."""
        self._registry = registry
        self._ttl_s = ttl_s
        self._due: deque[tuple[float, Key, str]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe: Any = None

    def start(self) -> None:
        """On the running loop."""
        for _, event in self._registry.store.items(EVENTS):
            self._see(event)
        self._unsubscribe = self._registry.store.listen(EVENTS, self._changed)

    def stop(self) -> None:
        """Forget nothing more."""
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


def _remember(known: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)


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
