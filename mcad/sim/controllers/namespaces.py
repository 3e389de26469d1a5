"""Namespaces: what every new one gets, and how a deleted one is emptied.

Modelled after ``pkg/controller/namespace`` and the publishers of the default service account and
of the root certificates.
"""

from __future__ import annotations

from mcad.kube.types import Json
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.everything import Everything, Storage
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.kinds import EVENTS, Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.strategies import NAMESPACE_FINALIZER
from mcad.sim.writes import Write

ROOT_CERTIFICATES = "kube-root-ca.crt"
_GIVEN = {("", "serviceaccounts"): "default", ("", "configmaps"): ROOT_CERTIFICATES}


class Namespaces(Controller):
    """Keys are those of namespaces."""

    def __init__(self, registry: Registry, certificate: str = "") -> None:
        """``certificate`` is what ``kube-root-ca.crt`` holds (PEM)."""
        super().__init__(registry)
        self._kind = registry.kind("v1", "Namespace")
        self._certificate = certificate
        self._everything = Everything(registry, self._on_content)

    def start(self) -> None:
        self.watch(self._kind, lambda change: self.enqueue(change.key))
        self._everything.start()

    def stop(self) -> None:
        self._everything.stop()
        super().stop()

    def _on_content(self, storage: Storage, change: Change) -> None:
        """Something that has gone may have been the last, or must be made again."""
        if change.type == "DELETED" and change.key[0]:
            namespace = self.registry.find(self._kind, ("", change.key[0]))
            if namespace is not None and (
                _is_going(namespace) or _GIVEN.get(storage) == change.key[1]
            ):
                self.enqueue(("", change.key[0]))

    def reconcile(self, key: Key) -> None:
        namespace = self.registry.find(self._kind, key)
        if namespace is None:
            return
        if not _is_going(namespace):
            self._furnish(key[1])
        elif NAMESPACE_FINALIZER in (namespace["spec"].get("finalizers") or ()):
            self._empty(key)

    def _furnish(self, name: str) -> None:
        account = self.registry.kind("v1", "ServiceAccount")
        if self.registry.find(account, (name, "default")) is None:
            self.registry.create(account, name, {"metadata": {"name": "default"}})
        config = self.registry.kind("v1", "ConfigMap")
        if self.registry.find(config, (name, ROOT_CERTIFICATES)) is None:
            body = {"metadata": {"name": ROOT_CERTIFICATES}, "data": {"ca.crt": self._certificate}}
            self.registry.create(config, name, body)

    def _empty(self, key: Key) -> None:
        is_empty = True
        for kind in self._namespaced():
            for name, obj in list(self.registry.store.items(kind.storage, key[1])):
                self._delete(kind, name, obj)
            is_empty = is_empty and not any(self.registry.store.items(kind.storage, key[1]))
        if not is_empty:
            return

        def change(live: Json) -> Json:
            kept = [one for one in live["spec"]["finalizers"] if one != NAMESPACE_FINALIZER]
            spec = {name: value for name, value in live["spec"].items() if name != "finalizers"}
            return live | {"spec": spec | ({"finalizers": kept} if kept else {})}

        self.registry.patch(self._kind, key, change, Write(trusted=True, subresource="finalize"))

    def _namespaced(self) -> list[Kind]:
        """One kind for each storage; Events last, as deleting the others makes more."""
        kinds = {kind.storage: kind for kind in reversed(self.registry.kinds.all())}
        found = [kind for kind in kinds.values() if kind.namespaced]
        return sorted(found, key=lambda kind: (kind.storage == EVENTS, kind.storage))

    def _delete(self, kind: Kind, key: Key, obj: Json) -> None:
        if "deletionTimestamp" in obj["metadata"]:
            return
        try:
            options = Deletion(uid=obj["metadata"]["uid"], propagation="Background")
            self.registry.delete(kind, key, options)
        except Failure as failure:
            if failure.code != 404:
                raise


def _is_going(namespace: Json) -> bool:
    return "deletionTimestamp" in namespace["metadata"]
