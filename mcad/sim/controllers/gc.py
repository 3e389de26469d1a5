"""The garbage collector: deletes objects whose owners are gone.

Modelled after ``pkg/controller/garbagecollector`` and the Kubernetes docs, "Owners and Dependents".
The graph is kept by uid with every write, so nothing is ever searched for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcad.kube.types import Json
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.everything import Everything, Storage
from mcad.sim.deletion import FOREGROUND, ORPHAN, Deletion, Propagation
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key

_COLLECT, _DISOWN, _FINISH = "collect", "disown", "finish"


@dataclass(eq=False, slots=True)
class _Item:
    """One object of the graph."""

    storage: Storage
    key: Key
    references: list[Json] = field(default_factory=list)


class GarbageCollector(Controller):
    """Keys are an action and a uid."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._everything = Everything(registry, self._on_change)
        self._items: dict[str, _Item] = {}
        self._dependants: dict[str, dict[str, None]] = {}  # by uid of the owner

    def start(self) -> None:
        """Read everything, then look for objects without their owners."""
        self._items.clear()
        self._dependants.clear()
        self._everything.start()

    def stop(self) -> None:
        self._everything.stop()
        super().stop()

    # -- the graph -----------------------------------------------------------------------------

    def _on_change(self, storage: Storage, change: Change) -> None:
        metadata = change.obj["metadata"]
        uid = metadata["uid"]
        if change.type == "DELETED":
            self._forget(uid)
            return
        item = self._items.get(uid)
        if item is None:
            item = self._items[uid] = _Item(storage, change.key)
        references = metadata.get("ownerReferences") or []
        if references != item.references:
            self._relate(uid, item, references)
        if "deletionTimestamp" in metadata:
            finalizers = metadata.get("finalizers") or ()
            if ORPHAN in finalizers:
                self.enqueue((_DISOWN, uid))
            elif FOREGROUND in finalizers:
                self.enqueue((_FINISH, uid))

    def _relate(self, uid: str, item: _Item, references: list[Json]) -> None:
        before = item.references
        item.references = references
        for owner in before:
            self._unrelate(uid, owner["uid"])
        for owner in references:
            self._dependants.setdefault(owner["uid"], {})[uid] = None
        for owner in before:  # perhaps it waited for this one
            self._look_at_owner(owner["uid"])
        if references:
            self.enqueue((_COLLECT, uid))

    def _forget(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        if item is not None:
            for owner in item.references:
                self._unrelate(uid, owner["uid"])
                self._look_at_owner(owner["uid"])
        for dependant in self._dependants.get(uid, ()):
            self.enqueue((_COLLECT, dependant))

    def _unrelate(self, uid: str, owner: str) -> None:
        dependants = self._dependants.get(owner)
        if dependants is not None:
            dependants.pop(uid, None)
            if not dependants:
                del self._dependants[owner]

    def _look_at_owner(self, uid: str) -> None:
        owner = self._find(uid)
        if owner is not None and _waits_for_dependants(owner):
            self.enqueue((_FINISH, uid))

    def _find(self, uid: str) -> Json | None:
        item = self._items.get(uid)
        found = None if item is None else self.registry.store.get(item.storage, item.key)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    # -- work ----------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        action, uid = key
        obj = self._find(uid)
        if obj is None:
            return
        match action:
            case "collect":
                self._collect(uid, obj)
            case "disown":
                self._disown(uid, obj)
            case _:
                self._finish(uid, obj)

    def _collect(self, uid: str, obj: Json) -> None:
        """Delete it if it has no owner any more (``attemptToDeleteItem``)."""
        metadata = obj["metadata"]
        references = metadata.get("ownerReferences") or []
        if not references or "deletionTimestamp" in metadata:
            return
        solid, dangling, waiting = self._classify(obj, references)
        if solid:
            gone = {one["uid"] for one in (*dangling, *waiting)}
            if gone:
                self._drop_references(uid, obj, gone)
        elif waiting and self._dependants.get(uid):
            if any(self._is_waiting(one) for one in self._dependants[uid]):
                self._unblock(uid, obj)  # a circle of owners would wait for itself
            self._delete(uid, obj, "Foreground")
        else:
            self._delete(uid, obj, _present_policy(metadata))

    def _finish(self, uid: str, obj: Json) -> None:
        """Let go of an owner whose dependants are gone; otherwise delete them."""
        if not _waits_for_dependants(obj):
            return
        blocking = [one for one in self._dependants.get(uid, ()) if self._blocks(one, uid)]
        for dependant in self._dependants.get(uid, ()):
            self.enqueue((_COLLECT, dependant))
        if not blocking:
            self._drop_finalizer(uid, obj, FOREGROUND)

    def _disown(self, uid: str, obj: Json) -> None:
        """Take the owner out of its dependants, then let it go."""
        for dependant in list(self._dependants.get(uid, ())):
            found = self._find(dependant)
            if found is not None:
                self._drop_references(dependant, found, {uid})
        self._drop_finalizer(uid, obj, ORPHAN)

    # -- what there is -------------------------------------------------------------------------

    def _classify(
        self, obj: Json, references: list[Json]
    ) -> tuple[list[Json], list[Json], list[Json]]:
        """Owners that are there, that are not, and that wait for their dependants to go."""
        solid: list[Json] = []
        dangling: list[Json] = []
        waiting: list[Json] = []
        for reference in references:
            kind = self.registry.kinds.by_kind(reference["apiVersion"], reference["kind"])
            namespace = obj["metadata"].get("namespace") or ""
            if kind is None or (kind.namespaced and not namespace):
                solid.append(reference)  # not known, so it is not collected
                continue
            key = (namespace if kind.namespaced else "", reference["name"])
            owner = self.registry.store.get(kind.storage, key)
            if owner is None or owner["metadata"]["uid"] != reference["uid"]:
                dangling.append(reference)
            elif _waits_for_dependants(owner):
                waiting.append(reference)
            else:
                solid.append(reference)
        return solid, dangling, waiting

    def _is_waiting(self, uid: str) -> bool:
        found = self._find(uid)
        return found is not None and _waits_for_dependants(found)

    def _blocks(self, uid: str, owner: str) -> bool:
        item = self._items.get(uid)
        return item is not None and any(
            one["uid"] == owner and one.get("blockOwnerDeletion") for one in item.references
        )

    def _kind(self, uid: str, obj: Json) -> Kind:
        """The kind to write it as; raises Failure if it is served no longer."""
        kind = self.registry.kinds.by_kind(obj["apiVersion"], obj["kind"])
        if kind is None:
            storage = self._items[uid].storage
            kind = next((one for one in self.registry.kinds.all() if one.storage == storage), None)
        if kind is None:
            raise Failure(404, "NotFound", f"{obj['kind']} is not served")
        return kind

    # -- writes --------------------------------------------------------------------------------

    def _delete(self, uid: str, obj: Json, policy: Propagation) -> None:
        try:
            options = Deletion(uid=uid, propagation=policy)
            self.registry.delete(self._kind(uid, obj), key_of(obj), options)
        except Failure as failure:
            if failure.code != 404:
                raise

    def _drop_references(self, uid: str, obj: Json, gone: set[str]) -> None:
        def change(live: Json) -> Json:
            references = live["metadata"].get("ownerReferences") or ()
            kept = [one for one in references if one["uid"] not in gone]
            return _with(live, "ownerReferences", kept)

        self.registry.patch(self._kind(uid, obj), key_of(obj), change)

    def _unblock(self, uid: str, obj: Json) -> None:
        def change(live: Json) -> Json:
            references = live["metadata"].get("ownerReferences") or ()
            open_ = [one | {"blockOwnerDeletion": False} for one in references]
            return _with(live, "ownerReferences", open_)

        self.registry.patch(self._kind(uid, obj), key_of(obj), change)

    def _drop_finalizer(self, uid: str, obj: Json, name: str) -> None:
        def change(live: Json) -> Json:
            kept = [one for one in live["metadata"].get("finalizers") or () if one != name]
            return _with(live, "finalizers", kept)

        self.registry.patch(self._kind(uid, obj), key_of(obj), change)


def _with(obj: Json, name: str, values: list[Any]) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != name}
    return obj | {"metadata": metadata | ({name: values} if values else {})}


def _waits_for_dependants(obj: Json) -> bool:
    metadata = obj["metadata"]
    return "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or ())


def _present_policy(metadata: Json) -> Propagation:
    finalizers = metadata.get("finalizers") or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
