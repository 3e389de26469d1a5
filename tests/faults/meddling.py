"""Somebody edits an AppWrapper at the worst moment: just before a write that is about it."""

from __future__ import annotations

import itertools
import json
from enum import Enum
from typing import Any

from mcad.api import labels
from mcad.controller.kinds import APPWRAPPERS
from mcad.kube.port import Request
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi
from tests.faults.scenarios import NAMESPACE
from tests.manifests import config_map

Json = dict[str, Any]
_COUNT = itertools.count()
STORAGE = (APPWRAPPERS.group, APPWRAPPERS.plural)


class Edit(Enum):
    """What somebody does to the AppWrapper that a write is about, just before it."""

    DROPPED = "somebody drops the first item"
    ADDED = "somebody adds an item in front"
    SWAPPED = "somebody turns the items round"
    REPLACED = "somebody puts another item in the place of the first"
    TOGGLED = "somebody suspends it, or lets it go, and thinks better of it at once"


def meddle(request: Request, registry: Registry, edit: Edit | None) -> None:
    """Edit the AppWrapper that a write is about; with None, annotate one whose status it is."""
    name = _concerned(request, registry)
    found = registry.store.get(STORAGE, (NAMESPACE, name))
    if found is None or (edit is None and "/appwrappers/" not in request.path):
        return
    for patch in _patches(found, edit):
        path = APPWRAPPERS.path(NAMESPACE, name)
        answer = SimApi(registry).answer(
            Request("PATCH", path, body=patch, content_type="application/merge-patch+json")
        )
        # v1beta2 promises that the number of items and their templates stay as they are: 422.
        assert answer.status == 200 or (edit is not None and answer.status == 422), answer


def _concerned(request: Request, registry: Registry) -> str:
    """The name of the AppWrapper that a write is about, "" if it is about none."""
    parts = request.path.strip("/").split("/")
    if APPWRAPPERS.plural in parts:
        return parts[parts.index(APPWRAPPERS.plural) + 1]
    if request.method == "POST":
        body = request.body
        obj = json.loads(body) if isinstance(body, bytes) else body
    else:
        group = "" if parts[0] == "api" else parts[1]
        obj = registry.store.get((group, parts[-2]), (NAMESPACE, parts[-1]))
    return str(labels.labels_of(obj or {}).get(labels.APPWRAPPER, ""))


def _patches(found: Json, edit: Edit | None) -> list[Json]:
    match edit:
        case None:
            return [{"metadata": {"annotations": {"somebody": f"was here {next(_COUNT)}"}}}]
        case Edit.TOGGLED:
            now = bool(found["spec"].get("suspend"))
            return [{"spec": {"suspend": suspend}} for suspend in (not now, now)]
        case _:
            return [{"spec": _edited(found, edit)}]


def _edited(obj: Json, edit: Edit) -> Json:
    """The spec's items after the edit; one item alone is neither dropped nor replaced."""
    later = "components" in obj["spec"]
    items = obj["spec"]["components"] if later else obj["spec"]["resources"]["GenericItems"]
    key = "template" if later else "generictemplate"
    extra = {key: config_map(f"extra-{obj['metadata']['name']}")}
    match edit:
        case Edit.DROPPED:
            items = items[1:] or items
        case Edit.ADDED:
            items = [extra, *items]
        case Edit.SWAPPED:
            items = items[::-1]
        case Edit.REPLACED:
            items = [extra, *items[1:]] if len(items) > 1 else items
    return {"components": items} if later else {"resources": {"GenericItems": items}}
