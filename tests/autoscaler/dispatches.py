"""Looks at every dispatch in a growing world: are there nodes for all of its pods?

It does not ask the dispatcher: it puts the pods on the nodes of the store, beside all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mcad.api import labels
from mcad.sim.scheduling.shapes import Shapes
from mcad.sim.store import Change, Store
from tests.autoscaler.room import Room, pods_of
from tests.faults.edits import STORAGE
from tests.faults.scenarios import items_of

Json = dict[str, Any]
Attempt = tuple[str, int]
"""Of an AppWrapper: its uid, and the number."""
NODES, PODS = ("", "nodes"), ("", "pods")


def attempt_of(pod: Json) -> Attempt | None:
    """The attempt that made a pod; None of placeholder pods and of pods of no AppWrapper."""
    tags = labels.labels_of(pod)
    if labels.APPWRAPPER_UID not in tags or labels.SCALE_UP_UID in tags:
        return None
    return tags[labels.APPWRAPPER_UID], int(tags[labels.ATTEMPT])


def has_ended(pod: Json) -> bool:
    """Whether a pod needs no room any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def declared(appwrapper: Json) -> list[list[Json]]:
    """The pods that the items of an AppWrapper run at once."""
    namespace = appwrapper["metadata"]["namespace"]
    specs = [item["spec"] for item in items_of(appwrapper)]
    return [
        pods_of({"template": spec["template"]}, namespace, spec["parallelism"]) for spec in specs
    ]


class Dispatches:
    """The attempts of a world, and those that began without nodes for all of their pods."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shapes = Shapes()
        self._made: dict[Attempt, Counter[int]] = {}  # pods that there have been, by item
        self._declared: dict[Attempt, list[list[Json]]] = {}
        self.nodes: dict[Attempt, list[Json]] = {}  # that were there when it began
        self.without_nodes: list[str] = []
        store.listen(STORAGE, self._said)
        store.listen(PODS, self._heard)

    def is_replacement(self, pod: Json) -> bool:
        """Whether a pod that was just made takes the place of another one."""
        attempt = attempt_of(pod)
        if attempt is None or attempt not in self._declared:
            return False
        item = _item(pod)
        return self._made[attempt][item] > len(self._declared[attempt][item])

    def _heard(self, change: Change) -> None:
        if change.type == "ADDED" and (attempt := attempt_of(change.obj)) is not None:
            self._made.setdefault(attempt, Counter())[_item(change.obj)] += 1

    def _said(self, change: Change) -> None:
        obj = change.obj
        attempt = begun(obj)
        if change.type == "DELETED" or attempt is None or attempt in self._declared:
            return
        room = self._room()
        room.place_all(_gpus_first(self._others()))
        self._declared[attempt] = declared(obj)
        self.nodes[attempt] = [node for _, node in self._store.items(NODES)]
        pods = _gpus_first(self._to_come(attempt))
        if missing := room.place_all(pods):
            name = obj["metadata"]["name"]
            self.without_nodes.append(f"{name}: {len(missing)} of {len(pods)} pods have no room")

    def _to_come(self, attempt: Attempt) -> Iterator[Json]:
        """The pods of an attempt that are not made yet."""
        made = self._made.get(attempt, Counter())
        for item, pods in enumerate(self._declared[attempt]):
            yield from pods[made[item] :]

    def _room(self) -> Room:
        """What the pods that have nodes leave; placeholder pods make way."""
        room = Room(self._shapes, "")
        for _, node in self._store.items(NODES):
            room.add(node)
        for _, pod in self._store.items(PODS):
            if labels.SCALE_UP_UID not in labels.labels_of(pod) and not has_ended(pod):
                room.bind(pod)
        return room

    def _others(self) -> Iterator[Json]:
        """The pods that have no node yet, and those that are still to be made."""
        for _, pod in self._store.items(PODS):
            if attempt_of(pod) and not pod["spec"].get("nodeName") and not has_ended(pod):
                yield pod
        for _, obj in self._store.items(STORAGE):
            attempt = begun(obj)
            if attempt is not None and attempt in self._declared:
                yield from self._to_come(attempt)


def begun(appwrapper: Json) -> Attempt | None:
    """The attempt that is dispatched, if one is."""
    record = (appwrapper.get("status") or {}).get("dispatch") or {}
    if record.get("phase") not in ("creating", "dispatched"):
        return None
    return appwrapper["metadata"]["uid"], int(record["attempt"])


def _item(pod: Json) -> int:
    return int(labels.labels_of(pod)[labels.ITEM])


def _gpus_first(pods: Iterable[Json]) -> list[Json]:
    """Those for which fewer nodes come into question."""
    return sorted(pods, key=lambda pod: not pod["spec"].get("tolerations"))
