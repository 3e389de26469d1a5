"""Holds wrapped objects that are seen before their AppWrapper, because each stream has its own
pace."""

from __future__ import annotations

from typing import Any

from mcad.api.catalog import Resource

Json = dict[str, Any]


class EarlyObjects:
    """Objects that are read again once their AppWrapper, with its pod sets, is known."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, tuple[Resource, Json]]] = {}
        self._waits_for: dict[str, str] = {}

    def put(self, appwrapper: str, resource: Resource, obj: Json) -> None:
        """Hold an object as it is now, until the AppWrapper with this uid is known."""
        uid = obj["metadata"]["uid"]
        self.drop(uid)
        self._of.setdefault(appwrapper, {})[uid] = (resource, obj)
        self._waits_for[uid] = appwrapper

    def take(self, appwrapper: str) -> list[tuple[Resource, Json]]:
        """Remove and return the objects that waited for this AppWrapper."""
        waited = self._of.pop(appwrapper, {})
        for uid in waited:
            del self._waits_for[uid]
        return list(waited.values())

    def drop(self, uid: str) -> None:
        """Forget an object: it no longer exists, or is about to be put again."""
        appwrapper = self._waits_for.pop(uid, "")
        if appwrapper:
            del self._of[appwrapper][uid]
            if not self._of[appwrapper]:
                del self._of[appwrapper]
