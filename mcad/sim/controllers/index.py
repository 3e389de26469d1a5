"""Indexes by owner and by selector, so that a change does not cost a look at all objects.

One index per kind of dependents (pods, ReplicaSets) is shared by all
controllers; it is brought up to date within each write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcad.kube.selectors import LabelMatch, label_selector, nothing
from mcad.kube.types import Json
from mcad.sim.controllers.pods import controller_of, labels_of
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key

OnOwned = Callable[[Change, Key], None]
_Label = tuple[str, str, str]  # namespace, key, value


class OwnedIndex:
    """All objects of one kind, by the uid of their controller and by their labels."""

    def __init__(self, registry: Registry, kind: Kind) -> None:
        self.registry = registry
        self.kind = kind
        self._owned: dict[str, dict[Key, Json]] = {}
        self._labelled: dict[_Label, dict[Key, None]] = {}
        self._by_owner_kind: dict[str, list[OnOwned]] = {}
        self._on_any: list[Callable[[Change], None]] = []
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Take in what there is, and every change from now on; twice does no harm."""
        if self._unsubscribe is None:
            for key, obj in self.registry.store.items(self.kind.storage):
                self._put(key, obj)
            self._unsubscribe = self.registry.store.listen(self.kind.storage, self._changed)

    def stop(self) -> None:
        """End; the listeners are forgotten."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        self._owned.clear()
        self._labelled.clear()
        self._by_owner_kind.clear()
        self._on_any.clear()

    def listen(self, owner_kind: str, listener: OnOwned) -> None:
        """Call ``listener(change, key of the owner)`` for dependents of that kind of owner."""
        self._by_owner_kind.setdefault(owner_kind, []).append(listener)

    def listen_all(self, listener: Callable[[Change], None]) -> None:
        """Call ``listener(change)`` for every owner."""
        self._on_any.append(listener)

    def owned(self, uid: str) -> list[Json]:
        """The objects that this one controls, in the order of their creation."""
        return list(self._owned.get(uid, {}).values())

    def selected(self, namespace: str, selector: Json | None) -> list[Json]:
        """The objects of a namespace that a LabelSelector selects."""
        matches = matcher(selector)
        return [obj for obj in self._candidates(namespace, selector) if matches(labels_of(obj))]

    def orphans(self, namespace: str, selector: Json | None) -> list[Json]:
        """The selected objects without a controller."""
        return [one for one in self.selected(namespace, selector) if controller_of(one) is None]

    def _candidates(self, namespace: str, selector: Json | None) -> Iterator[Json]:
        store = self.registry.store
        pairs = (selector or {}).get("matchLabels") or {}
        if not pairs:
            yield from (obj for _, obj in store.items(self.kind.storage, namespace))
            return
        sets: list[dict[Key, None]] = [
            self._labelled.get((namespace, *pair), {}) for pair in pairs.items()
        ]
        fewest = min(sets, key=len)
        for key in tuple(fewest):
            obj = store.get(self.kind.storage, key)
            if obj is not None:
                yield obj

    def _changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._drop(change.key, change.previous or change.obj)
        else:
            if change.previous is not None and _is_moved(change.previous, change.obj):
                self._drop(change.key, change.previous)
            self._put(change.key, change.obj, change.previous)
        self._tell(change)

    def _put(self, key: Key, obj: Json, previous: Json | None = None) -> None:
        owner = controller_of(obj)
        if owner is not None:
            self._owned.setdefault(owner["uid"], {})[key] = obj
        if previous is None or _is_moved(previous, obj):
            for label in labels_of(obj).items():
                self._labelled.setdefault((key[0], *label), {})[key] = None

    def _drop(self, key: Key, obj: Json) -> None:
        owner = controller_of(obj)
        if owner is not None:
            _discard(self._owned, owner["uid"], key)
        for label in labels_of(obj).items():
            _discard(self._labelled, (key[0], *label), key)

    def _tell(self, change: Change) -> None:
        now, before = controller_of(change.obj), None
        if change.previous is not None and _is_moved(change.previous, change.obj):
            before = controller_of(change.previous)
        for owner in (now, before if before != now else None):
            for listener in self._by_owner_kind.get(owner["kind"], ()) if owner else ():
                listener(change, (change.key[0], owner["name"] if owner else ""))
        for any_listener in self._on_any:
            any_listener(change)


class SelectorIndex:
    """Selectors of many objects, so that the labels of one pod find those that select it."""

    def __init__(self) -> None:
        self._where: dict[Key, _Label] = {}
        self._at: dict[_Label, dict[Key, LabelMatch]] = {}

    def put(self, key: Key, selector: Json | None) -> None:
        """``key`` now selects this; the empty selector selects all."""
        self.drop(key)
        pairs = (selector or {}).get("matchLabels") or {}
        first = next(iter(pairs.items()), ("", ""))
        self._where[key] = place = (key[0], *first)
        self._at.setdefault(place, {})[key] = matcher(selector)

    def drop(self, key: Key) -> None:
        """``key`` selects nothing any more."""
        place = self._where.pop(key, None)
        if place is not None:
            _discard(self._at, place, key)

    def matching(self, namespace: str, labels: Mapping[str, str]) -> list[Key]:
        """The keys in the namespace whose selectors match these labels."""
        places = [(namespace, "", ""), *((namespace, *pair) for pair in labels.items())]
        return [
            key
            for place in places
            for key, matches in self._at.get(place, {}).items()
            if matches(labels)
        ]


def matcher(selector: Json | None) -> LabelMatch:
    """What a LabelSelector selects; a malformed one, which a server refuses, selects nothing."""
    try:
        return label_selector(selector)
    except ValueError:
        return nothing


def _is_moved(previous: Json, obj: Json) -> bool:
    """Whether it changed its labels or its owners."""
    before, now = previous["metadata"], obj["metadata"]
    return bool(
        before.get("labels") != now.get("labels")
        or before.get("ownerReferences") != now.get("ownerReferences")
    )


def _discard(sets: dict[Any, dict[Key, Any]], name: Any, key: Key) -> None:
    members = sets.get(name)
    if members is not None:
        members.pop(key, None)
        if not members:
            del sets[name]
