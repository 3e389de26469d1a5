"""The base of every simulated controller: a queue of keys that are reconciled one after the other.

As in client-go's controllers nothing is done within the write that caused it: a change enqueues a
key, and ``reconcile`` looks at the present state of that key later. A key that waits is not
enqueued twice. Writes go through the registry like all others, so a conflict is possible and is
answered by looking again.

A controller with a ``lag_s`` looks at a key that much later, as one whose informer or queue is
behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key

RETRY_S = 0.1
RETRY_S_MAX = 60.0


class Controller:
    """Base class; ``start`` is called on the running loop."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.lag_s = 0.0
        self._waiting: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._is_scheduled = False
        self._unsubscribe: list[Any] = []

    # -- for subclasses ------------------------------------------------------------------------

    def start(self) -> None:
        """Subscribe with ``self.watch`` and enqueue what is there already."""
        raise NotImplementedError  # pragma: no cover - abstract

    def reconcile(self, key: Key) -> None:
        """Bring one object closer to what its spec says; may raise Failure to be called again."""
        raise NotImplementedError  # pragma: no cover - abstract

    def watch(self, kind: Kind, listener: Any) -> None:
        """``listener(change: Change)`` for what exists (as ADDED) and for every change."""
        for key, obj in list(self.registry.store.items(kind.storage)):
            listener(Change(self.registry.store.version, "ADDED", key, obj, None))
        self._unsubscribe.append(self.registry.store.listen(kind.storage, listener))

    def enqueue(self, key: Key) -> None:
        """Reconcile this key soon, or after the lag."""
        if key in self._queued:
            return
        self._queued.add(key)
        if self.lag_s:
            asyncio.get_running_loop().call_later(self.lag_s, self._arrived, key)
        else:
            self._arrived(key)

    def enqueue_after(self, key: Key, seconds: float) -> None:
        """Reconcile this key at a time; an earlier time for the same key stays."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(seconds, 0.0)
        known = self._timers.get(key)
        if known is not None:
            if known.when() <= at:
                return
            known.cancel()
        self._timers[key] = loop.call_at(at, self._due, key)

    def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._queued.clear()

    # -- the loop ------------------------------------------------------------------------------

    def _arrived(self, key: Key) -> None:
        if key in self._queued:  # not stopped meanwhile
            self._waiting.append(key)
            self._schedule()

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.enqueue(key)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Reconcile one key, so that other controllers run in between."""
        self._is_scheduled = False
        if not self._waiting:
            return
        key = self._waiting.popleft()
        self._queued.discard(key)
        try:
            self.reconcile(key)
        except Failure:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            self.enqueue_after(key, min(RETRY_S * 2 ** min(count, 10), RETRY_S_MAX))
        else:
            self._failures.pop(key, None)
        finally:
            if self._waiting:  # also after a fault of ours, which must not stop the others
                self._schedule()
