"""A live state in as few words as possible, and the objects that the tables start from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mcad.api.catalog import WELL_KNOWN
from mcad.api.children import read_child
from mcad.api.manifest import render
from mcad.core.state.model import Child, ItemState, Wanted
from tests.api.builders import WIDGET, Map, accepted, v1beta1

RUNS, ENDED, FAILED = ItemState.PROGRESSING, ItemState.SUCCEEDED, ItemState.FAILED
PAUSED, RETRIES, UNKNOWN = ItemState.SUSPENDED, ItemState.RETRYING, ItemState.UNKNOWN

SERVED = {one.kind: one for one in (*WELL_KNOWN, WIDGET)}

_NOTHING: Mapping[str, Any] = MappingProxyType({})

Pods = int | tuple[int, int] | None
"""Pods now, or (now, later), of one set."""


class State(NamedTuple):
    """An object with a status, and what it says. ``spec`` and ``metadata`` are what a client has
    changed since its creation, ``says`` more fields of the Child."""

    thing: Map
    status: Map
    pods: list[Pods]
    state: ItemState = RUNS
    spec: Mapping[str, Any] = _NOTHING
    metadata: Mapping[str, Any] = _NOTHING
    says: Mapping[str, Any] = _NOTHING


States = dict[str, State]


def stored(state: State) -> Map:
    """The object as the API server has it, after its creation and what followed."""
    parsed = accepted(v1beta1(state.thing))
    made: Map = json.loads(render(parsed.manifests[0], parsed.workload, 0, 1))
    made["status"] = state.status
    made["metadata"] |= state.metadata
    made.get("spec", {}).update(state.spec)
    return made


def read(state: State) -> Child:
    """What it says."""
    sets = accepted(v1beta1(state.thing)).workload.sets
    return read_child(stored(state), SERVED[state.thing["kind"]], sets)


def wants(pods: list[Pods]) -> tuple[Wanted | None, ...]:
    """The pods of each set as the core has them."""
    return tuple(
        one if one is None else Wanted(*one) if isinstance(one, tuple) else Wanted(one)
        for one in pods
    )


AT = "2026-03-02T09:00:00Z"
AT_MICROS = 1_772_442_000_000_000
EARLIER = "2026-03-02T08:59:00Z"


def condition(kind: str, status: str = "True", **more: Any) -> Map:
    return {"type": kind, "status": status, "lastTransitionTime": AT, **more}


def conditions(*kinds: str, **more: Any) -> Map:
    """A status with these conditions."""
    return {"conditions": [condition(kind) for kind in kinds], **more}


def written_by(manager: str, *path: str) -> Map:
    """Metadata by which a client was the last to write the field at a path."""
    fields: Map = {}
    for key in reversed(path):
        fields = {f"f:{key}": fields}
    return {"managedFields": [{"manager": manager, "time": AT, "fieldsV1": fields}]}
