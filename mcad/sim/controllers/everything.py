"""A subscription to the writes of all kinds, also of custom kinds that come later."""

from __future__ import annotations

from collections.abc import Callable

from mcad.sim.kinds import CRDS, EVENTS
from mcad.sim.registry import Registry
from mcad.sim.store import Change

Storage = tuple[str, str]


class Everything:
    """A subscription to all kinds but Events."""

    def __init__(self, registry: Registry, listener: Callable[[Storage, Change], None]) -> None:
        """``listener`` is called within the write, and for what exists at ``start`` as ADDED."""
        self._registry = registry
        self._listener = listener
        self._unsubscribe: dict[Storage, Callable[[], None]] = {}

    def start(self) -> None:
        for kind in self._registry.kinds.all():
            self._follow(kind.storage)

    def stop(self) -> None:
        for unsubscribe in self._unsubscribe.values():
            unsubscribe()
        self._unsubscribe.clear()

    def _follow(self, storage: Storage) -> None:
        if storage in self._unsubscribe or storage == EVENTS:
            return

        def heard(change: Change) -> None:
            self._listener(storage, change)
            if storage == CRDS and change.type != "DELETED":
                spec = change.obj["spec"]
                self._follow((spec["group"], spec["names"]["plural"]))

        store = self._registry.store
        for key, obj in list(store.items(storage)):
            heard(Change(store.version, "ADDED", key, obj, None))
        self._unsubscribe[storage] = store.listen(storage, heard)
