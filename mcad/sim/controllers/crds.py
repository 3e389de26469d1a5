"""A CustomResourceDefinition that is deleted goes after all its objects (the API's "finalizer").

Modelled after ``k8s.io/apiextensions-apiserver/pkg/controller/finalizer``.
"""

from __future__ import annotations

from typing import Any

from mcad.kube.types import Json
from mcad.sim.controllers.base import Controller
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.strategies import CRD_CLEANUP


class CustomResourceCleanup(Controller):
    """Keys are those of CustomResourceDefinitions."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._kind = registry.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        self._awaited: dict[str, Any] = {}  # by name of the CRD: ends the watch of its objects

    def start(self) -> None:
        self.watch(self._kind, self._on_definition)

    def stop(self) -> None:
        for unsubscribe in self._awaited.values():
            unsubscribe()
        self._awaited.clear()
        super().stop()

    def _on_definition(self, change: Change) -> None:
        if change.type != "DELETED" and _is_due(change.obj):
            self.enqueue(change.key)

    def reconcile(self, key: Key) -> None:
        """Delete the objects of one definition, and let it go behind the last."""
        crd = self.registry.find(self._kind, key)
        if crd is None or not _is_due(crd):
            return
        kinds = self.registry.kinds.custom(key[1])
        storage = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        if kinds:
            for name, obj in list(self.registry.store.items(storage)):
                self._delete(kinds[0], name, obj)
        if kinds and self.registry.store.count(storage):
            if key[1] not in self._awaited:
                self._awaited[key[1]] = self.registry.store.listen(
                    storage, lambda change: self._on_object(change, key)
                )
            return
        unsubscribe = self._awaited.pop(key[1], None)
        if unsubscribe is not None:
            unsubscribe()
        self._let_go(key)

    def _on_object(self, change: Change, key: Key) -> None:
        if change.type == "DELETED":
            self.enqueue(key)

    def _delete(self, kind: Kind, key: Key, obj: Json) -> None:
        if "deletionTimestamp" in obj["metadata"]:
            return
        try:
            self.registry.delete(kind, key, Deletion(uid=obj["metadata"]["uid"]))
        except Failure as failure:
            if failure.code != 404:
                raise

    def _let_go(self, key: Key) -> None:
        def change(live: Json) -> Json:
            metadata = live["metadata"]
            kept = [one for one in metadata["finalizers"] if one != CRD_CLEANUP]
            return live | {"metadata": metadata | {"finalizers": kept}}

        self.registry.patch(self._kind, key, change)


def _is_due(crd: Json) -> bool:
    metadata = crd["metadata"]
    return "deletionTimestamp" in metadata and CRD_CLEANUP in (metadata.get("finalizers") or ())
