"""The scale-up requests as their watches show them, reported to the core when they change.

A request may have several objects. A request without an AppWrapper that waits for it is reported as
well: the core withdraws it. It decides nothing, and writes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mcad.api.scale_up.answers import Sight, asked_by, read, together
from mcad.api.scale_up.settings import Via
from mcad.core.events import ScaleUpGone, ScaleUpSeen
from mcad.core.state.scale_up import ScaleUpState

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from mcad.controller.mirror import Mirror
    from mcad.core.events import Event
    from mcad.core.state.scale_up import Key
    from mcad.core.state.units import Instant
    from mcad.kube.clock import Clock

Json = dict[str, Any]
_log = logging.getLogger(__name__)

PENDING = frozenset({ScaleUpState.ASKED, ScaleUpState.ACCEPTED})


class Held(Struct, frozen=True):
    """An object of a request."""

    via: Via
    namespace: str
    name: str
    sight: Sight


class Book:
    """All objects of requests by (uid, attempt), and by their own uids."""

    def __init__(
        self,
        mirror: Mirror,
        clock: Clock,
        feed: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
    ) -> None:
        """``spawn`` runs a task that ends with the controller."""
        self._mirror = mirror
        self._clock = clock
        self._feed = feed
        self._spawn = spawn
        self._requests: dict[Key, dict[str, Held]] = {}
        self._key_of: dict[str, Key] = {}
        self._reported: dict[Key, Sight] = {}
        self._due: dict[Key, Instant] = {}
        self._refused: dict[Key, str] = {}  # in the words of the autoscaler's Events
        self._deleted: set[str] = set()  # uids of objects that the watch has not seen go yet
        self.silent: set[Key] = set()  # requests of which not all objects are created yet

    def __contains__(self, key: Key) -> bool:
        return key in self._requests

    def objects(self, key: Key) -> list[Held]:
        """The known objects of a request."""
        return list(self._requests.get(key, {}).values())

    def uids(self, key: Key) -> frozenset[str]:
        """The uids of the known objects of a request."""
        return frozenset(self._requests.get(key, ()))

    def namespaces(self, key: Key) -> Sequence[str]:
        """The namespaces in which a request may have objects; empty if that is unknown."""
        seat = self._mirror.get(key[0])
        if seat is not None:
            return (seat.workload.namespace,)
        return sorted({one.namespace for one in self.objects(key)})

    def refuse(self, key: Key, words: str) -> None:
        """Note that the autoscaler adds no nodes for a request; its objects do not say so."""
        self._refused[key] = words
        self.report(key)

    def seen(self, via: Via, obj: Json) -> None:
        """Take a new or changed object. One in the namespace of another AppWrapper than that of
        its label says nothing about it."""
        metadata, key = obj["metadata"], asked_by(obj)
        uid, namespace = metadata["uid"], metadata.get("namespace", "")
        seat = self._mirror.get(key[0])
        is_foreign = seat is not None and seat.workload.namespace != namespace
        if not key[0] or is_foreign or uid in self._deleted:
            return
        self._key_of[uid] = key
        held = Held(via, namespace, metadata["name"], read(via, obj))
        self._requests.setdefault(key, {})[uid] = held
        self.report(key)

    def gone(self, uid: str) -> Key | None:
        """An object does not exist any more. Returns the request if this was its last one."""
        self._deleted.discard(uid)
        key = self._key_of.pop(uid, None)
        if key is None:
            return None
        del self._requests[key][uid]
        if self._requests[key]:
            self.report(key)
            return None
        self._forget(key)
        return key

    def forget_kind(self, via: Via) -> list[Key]:
        """The kind is not installed any more, and with it went all of its objects. Returns the
        requests of which nothing is left."""
        uids = [
            uid
            for objects in self._requests.values()
            for uid, held in objects.items()
            if held.via is via
        ]
        return [key for key in map(self.gone, uids) if key is not None]

    def deleted(self, key: Key) -> None:
        """Nothing is left of a request; its watch may say so later."""
        for uid in self._requests.get(key, {}):
            self._deleted.add(uid)
            self._key_of.pop(uid, None)
        self._forget(key)
        self._feed(ScaleUpGone(*key))

    def report(self, key: Key) -> None:
        """Tell the core how far a request is, if that has changed."""
        objects = self._requests.get(key)
        if not objects or key in self.silent:
            return
        now = self._clock.now_us()
        whole = together([held.sight for held in objects.values()])
        sight = whole.at(now)
        if key in self._refused and sight.state in PENDING:
            sight = replace(sight, state=ScaleUpState.FAILED, message=self._refused[key])
        self._look_again(key, whole.later_at if whole.later_at > now else 0)
        if self._reported.get(key) == sight:
            return
        self._reported[key] = sight
        words = f" message={sight.message}" if sight.message else ""
        _log.info("scale-up request object=%s state=%s%s", sight.title, sight.state.value, words)
        self._feed(
            ScaleUpSeen(
                *key,
                state=sight.state,
                message=sight.message,
                since=sight.since,
                object=sight.title,
                until_bound=self._is_named_by_pods(objects.values()),
            )
        )

    @staticmethod
    def _is_named_by_pods(objects: Iterable[Held]) -> bool:
        return any(held.via is Via.PROVISIONING_REQUEST for held in objects)

    def _look_again(self, key: Key, at: Instant) -> None:
        if at and self._due.get(key) != at:
            self._spawn(self._report_at(key, at))
        if at:
            self._due[key] = at
        else:
            self._due.pop(key, None)

    async def _report_at(self, key: Key, at: Instant) -> None:
        """Report a request again at an instant, unless something has changed until then."""
        await self._clock.sleep(max(0.0, (at - self._clock.now_us()) / 1e6))
        if self._due.get(key) == at:
            self.report(key)

    def _forget(self, key: Key) -> None:
        self._requests.pop(key, None)
        self._reported.pop(key, None)
        self._due.pop(key, None)
        self._refused.pop(key, None)
        self.silent.discard(key)
