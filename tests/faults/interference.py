"""What excuses a dispatcher that does not keep its word, by what is stored alone: others changed
what the word was about, or did something to the cluster that could not be foreseen."""

from __future__ import annotations

from typing import Any

from mcad.api import labels
from mcad.kube.kinds import NODES, QUOTA_SUBTREES
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.edits import STORAGE, WRAPPED
from tests.faults.scenarios import items_of
from tests.faults.weather import Weather

Json = dict[str, Any]
WORLD = [(one.group, one.plural) for one in (NODES, QUOTA_SUBTREES)]


class Interference:
    """Watches what people do; ``since`` is asked about a word that was given at some time."""

    def __init__(self, registry: Registry, weather: Weather) -> None:
        self._registry, self._weather = registry, weather
        self._edited: dict[str, float] = {}  # by uid, when its manifest became what it is
        self._disturbed = 0.0
        self._kept: set[tuple[str, tuple[str, str]]] = set()  # what somebody's finalizer keeps
        registry.store.listen(STORAGE, self._heard)
        for storage in WORLD:
            registry.store.listen(storage, self._changed)
        for storage in WRAPPED:
            registry.store.listen(storage, self._meddled)

    def since(self, uid: str, then: float) -> bool:
        """Whether there is one for a word that was given to this AppWrapper then."""
        if self._weather.denies(then, self._now()):
            return True
        return bool(self._kept) or max(self._disturbed, self._edited.get(uid, 0.0)) >= then

    def is_named_alike(self, obj: Json) -> bool:
        """Whether another owner has a name that it needs."""
        uid = obj["metadata"]["uid"]
        names = {(made["kind"], made["metadata"]["name"]) for made in items_of(obj)}
        return any(
            (one["kind"], key[1]) in names and _owner(one) != uid
            for storage in WRAPPED
            for key, one in self._registry.store.items(storage)
        )

    def _now(self) -> float:
        return self._registry.clock.monotonic()

    def _heard(self, change: Change) -> None:
        obj, was = change.obj, change.previous
        if change.type != "MODIFIED" or was is None or _wish(obj) != _wish(was):
            self._edited[obj["metadata"]["uid"]] = self._now()

    def _changed(self, change: Change) -> None:
        obj, was = change.obj, change.previous
        if change.type != "MODIFIED" or was is None or obj.get("spec") != was.get("spec"):
            self._disturbed = self._now()

    def _meddled(self, change: Change) -> None:
        """A finalizer keeps it, or it has no owner, or was left behind."""
        obj, was = change.obj, change.previous
        key = obj["kind"], change.key
        is_kept = "example.com/keep" in obj["metadata"].get("finalizers", ())
        if change.type != "DELETED" and is_kept:
            self._kept.add(key)
        elif key in self._kept:
            self._kept.remove(key)
            self._disturbed = self._now()
        is_orphaned = was is not None and _has_owner(was) and not _has_owner(obj)
        if not _owner(obj) or is_orphaned:
            self._disturbed = self._now()


def _owner(obj: Json) -> str:
    return str(labels.labels_of(obj).get(labels.APPWRAPPER_UID, ""))


def _has_owner(obj: Json) -> bool:
    return bool(obj["metadata"].get("ownerReferences"))


def _wish(obj: Json) -> tuple[Any, ...]:
    meta = obj["metadata"]
    is_deleted = "deletionTimestamp" in meta
    return obj["spec"], meta.get("labels"), meta.get("annotations"), is_deleted
