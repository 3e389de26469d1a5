"""What decisions need to know of the cluster beyond nodes and pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.sim.registry import Registry
from mcad.sim.scheduling.fleet import PodInfo
from mcad.sim.scheduling.shapes import Labels
from mcad.sim.store import Change

Json = dict[str, Any]

_NO_LABELS: Labels = {}


class Around:
    """Namespaces, controllers and services, read when they are asked for."""

    def __init__(self, registry: Registry) -> None:
        """``on_service`` is to be told of all services."""
        self._registry = registry
        self._namespaces = registry.kind("v1", "Namespace")
        self._kinds = {
            "ReplicationController": registry.kind("v1", "ReplicationController"),
            "ReplicaSet": registry.kind("apps/v1", "ReplicaSet"),
            "StatefulSet": registry.kind("apps/v1", "StatefulSet"),
        }
        # By namespace and the first pair of the selector, so that a pod's few labels find them.
        self._selectors: dict[tuple[str, str, str], dict[str, Json]] = {}

    def on_service(self, change: Change) -> None:
        """A service was written."""
        namespace, name = change.key
        for obj, is_there in ((change.previous, False), (change.obj, change.type != "DELETED")):
            selector = ((obj or {}).get("spec") or {}).get("selector")
            if not selector:
                continue
            place = (namespace, *next(iter(selector.items())))
            found = self._selectors.setdefault(place, {})
            found.pop(name, None)
            if is_there:
                found[name] = selector
            if not found:
                del self._selectors[place]

    def namespace_labels(self, namespace: str) -> Labels:
        """The labels of a namespace."""
        found = self._registry.find(self._namespaces, ("", namespace)) or {}
        labels: Labels = (found.get("metadata") or {}).get("labels") or _NO_LABELS
        return labels

    def owner(self, kind: str, namespace: str, name: str) -> Json | None:
        """A ReplicationController, ReplicaSet or StatefulSet."""
        return self._registry.find(self._kinds[kind], (namespace, name))

    def service_selectors(self, pod: PodInfo) -> Iterator[Json]:
        """Selectors of the services that select this pod."""
        for key, value in pod.labels.items():
            for selector in self._selectors.get((pod.key[0], key, value), {}).values():
                if all(pod.labels.get(name) == wanted for name, wanted in selector.items()):
                    yield selector
