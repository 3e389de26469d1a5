"""Wrapped objects that are seen before their AppWrapper: each stream has its own pace."""

from __future__ import annotations

from typing import Any

from mcad.api.catalog import Resource

Json = dict[str, Any]


class Early:
    """They wait here to be read anew with what their AppWrapper says of them."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, tuple[Resource, Json]]] = {}
        self._waits_for: dict[str, str] = {}

    def put(self, appwrapper: str, resource: Resource, obj: Json) -> None:
        """An object as it is now; ``appwrapper`` is the uid of the one that is to come."""
        uid = obj["metadata"]["uid"]
        self.drop(uid)
        self._of.setdefault(appwrapper, {})[uid] = (resource, obj)
        self._waits_for[uid] = appwrapper

    def take(self, appwrapper: str) -> list[tuple[Resource, Json]]:
        """The AppWrapper is here: what waited for it."""
        waited = self._of.pop(appwrapper, {})
        for uid in waited:
            del self._waits_for[uid]
        return list(waited.values())

    def drop(self, uid: str) -> None:
        """The object no longer exists, or is about to be put anew."""
        appwrapper = self._waits_for.pop(uid, "")
        if appwrapper:
            del self._of[appwrapper][uid]
            if not self._of[appwrapper]:
                del self._of[appwrapper]
