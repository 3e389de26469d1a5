"""An AppWrapper is edited at the worst moment: just before a write that is about it."""

from __future__ import annotations

import itertools
import json
from enum import Enum
from typing import Any

from mcad.api import labels
from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.port import Request
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi
from tests.faults.upheavals import STORAGE, Upheaval, Upheavals
from tests.manifests import config_map

Json = dict[str, Any]
_COUNT = itertools.count()
__all__ = ["STORAGE", "WRAPPED", "Edit", "Editor", "patches"]
WRAPPED = [("", "configmaps"), ("", "pods"), ("apps", "deployments"), ("batch", "jobs")]


class Edit(Enum):
    """What a user does to the AppWrapper that a write is about, just before it."""

    DROPPED = "the first item is dropped"
    ADDED = "an item is added in front"
    SWAPPED = "the items are turned round"
    REPLACED = "another item takes the place of the first"
    TOGGLED = "it is suspended or resumed, and that is undone at once"
    DELETED = "it is deleted"


class Editor:
    """A user that knows of every write before the server does."""

    def __init__(self, registry: Registry, upheavals: Upheavals) -> None:
        self._registry = registry
        self._upheavals = upheavals

    def about(self, request: Request) -> Json | None:
        """The AppWrapper that a write is about, None if it is about none."""
        namespace, name = self._place(request)
        found: Json | None = self._registry.store.get(STORAGE, (namespace, name)) if name else None
        return found

    def others(self, about: Json | None) -> list[Json]:
        """All AppWrappers but this one."""
        return [obj for _, obj in self._registry.store.items(STORAGE) if obj is not about]

    def touch(self, request: Request) -> None:
        """Edit the AppWrapper whose status a write is about, in what does not matter."""
        if "/appwrappers/" in request.path and (found := self.about(request)) is not None:
            hint = {"dispatchDuration": {"expected": next(_COUNT)}}  # of no effect
            self._patch(found, {"spec": {"schedulingSpec": hint}})

    def edit(self, request: Request, edit: Edit) -> None:
        """Edit the AppWrapper that a write is about."""
        if (found := self.about(request)) is None:
            return
        if edit is Edit.DELETED:
            self._delete(found)
        for patch in patches(found, edit):
            self._patch(found, patch)

    def upset(self, request: Request, upheaval: Upheaval) -> None:
        """Let it happen to the AppWrapper that a write is about."""
        if (found := self.about(request)) is not None:
            self._upheavals.befall(found, upheaval)

    def _delete(self, found: Json) -> None:
        path = _path(found)
        answer = SimApi(self._registry).answer(Request("DELETE", path))
        assert answer.status == 200, answer

    def _patch(self, found: Json, patch: Json) -> None:
        path = _path(found)
        answer = SimApi(self._registry).answer(
            Request("PATCH", path, body=patch, content_type="application/merge-patch+json")
        )
        assert answer.status == 200, answer

    def _place(self, request: Request) -> tuple[str, str]:
        """The namespace and the name of the AppWrapper."""
        parts = request.path.strip("/").split("/")
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
        if APPWRAPPERS.plural in parts:
            return namespace, parts[parts.index(APPWRAPPERS.plural) + 1]
        if request.method == "POST":
            body = request.body
            obj = json.loads(body) if isinstance(body, bytes) else body
        else:
            group = "" if parts[0] == "api" else parts[1]
            obj = self._registry.store.get((group, parts[-2]), (namespace, parts[-1]))
        return namespace, str(labels.labels_of(obj or {}).get(labels.APPWRAPPER, ""))


def _path(found: Json) -> str:
    return APPWRAPPERS.path(found["metadata"]["namespace"], found["metadata"]["name"])


def patches(found: Json, edit: Edit) -> list[Json]:
    """What the edit does to an AppWrapper, one patch after the other; none if it can do nothing.

    v1beta2 promises that the number of items and their templates stay as they are, and one item
    alone is neither dropped, swapped nor replaced.
    """
    if edit is Edit.TOGGLED:
        now = bool(found["spec"].get("suspend"))
        return [{"spec": {"suspend": suspend}} for suspend in (not now, now)]
    if edit is Edit.DELETED or "components" in found["spec"]:
        return []
    items = found["spec"]["resources"]["GenericItems"]
    extra = {"generictemplate": config_map(f"extra-{found['metadata']['name']}")}
    if extra in items:
        return []  # its name would be there twice
    if edit is Edit.ADDED:
        edited = [extra, *items]
    elif len(items) == 1:
        return []
    elif edit is Edit.SWAPPED:
        edited = items[::-1]
    else:
        edited = items[1:] if edit is Edit.DROPPED else [extra, *items[1:]]
    return [{"spec": {"resources": {"GenericItems": edited}}}]
