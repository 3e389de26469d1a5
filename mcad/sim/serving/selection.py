"""What a list or watch covers: a namespace, labels and fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcad.kube.selectors import labels as label_selection
from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.kinds import EVENTS, Kind
from mcad.sim.selectors import fields as field_selection
from mcad.sim.serving.routing import Target

Reader = Callable[[Json], str]


def _read(*path: str, default: str = "") -> Reader:
    def reader(obj: Any) -> str:
        for part in path:
            obj = obj.get(part) if isinstance(obj, dict) else None
        return _text(default if obj is None else obj)

    return reader


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_META = {"metadata.name": _read("metadata", "name")}
_META_NAMESPACED = _META | {"metadata.namespace": _read("metadata", "namespace")}

# The fields that each kind can be selected by (``GetAttrs`` of its registry strategy).
_FIELDS: dict[tuple[str, str], dict[str, Reader]] = {
    ("", "pods"): {
        "spec.nodeName": _read("spec", "nodeName"),
        "spec.restartPolicy": _read("spec", "restartPolicy"),
        "spec.schedulerName": _read("spec", "schedulerName"),
        "spec.serviceAccountName": _read("spec", "serviceAccountName"),
        "spec.hostNetwork": _read("spec", "hostNetwork", default="false"),
        "status.phase": _read("status", "phase"),
        "status.podIP": _read("status", "podIP"),
        "status.nominatedNodeName": _read("status", "nominatedNodeName"),
    },
    ("", "nodes"): {"spec.unschedulable": _read("spec", "unschedulable", default="false")},
    ("", "namespaces"): {"status.phase": _read("status", "phase")},
    ("", "secrets"): {"type": _read("type")},
    ("", "events"): {
        **{
            f"involvedObject.{name}": _read("involvedObject", name)
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
        },
        "involvedObject.fieldPath": _read("involvedObject", "fieldPath"),
        "reason": _read("reason"),
        "reportingComponent": _read("reportingComponent"),
        "source": _read("source", "component"),
        "type": _read("type"),
    },
    ("", "services"): {
        "spec.clusterIP": _read("spec", "clusterIP"),
        "spec.type": _read("spec", "type"),
    },
    ("", "replicationcontrollers"): {"status.replicas": _read("status", "replicas", default="0")},
    ("apps", "replicasets"): {"status.replicas": _read("status", "replicas", default="0")},
    ("batch", "jobs"): {"status.successful": _read("status", "succeeded", default="0")},
}


_IN_EVENTS_GROUP = {"involvedObject": "regarding", "reportingComponent": "reportingController"}


@dataclass(frozen=True, slots=True)
class Selection:
    """A predicate on stored objects."""

    namespace: str | None
    labels: Callable[[Mapping[str, str]], bool] | None
    fields: Callable[[Json], bool] | None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out but by namespace."""
        return self.labels is None and self.fields is None

    def covers(self, obj: Json) -> bool:
        """Whether the object belongs to it."""
        metadata = obj["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if self.labels is not None and not self.labels(metadata.get("labels") or {}):
            return False
        return self.fields is None or self.fields(obj)


def select(target: Target, params: Mapping[str, str]) -> Selection:
    """The selection that a query asks for; raises Failure 400 for a selector it cannot have."""
    labels = fields = None
    if text := params.get("labelSelector"):
        try:
            labels = label_selection(text)
        except ValueError as error:
            raise failures.bad_request(str(error)) from error
    field_text = params.get("fieldSelector") or ""
    if field_text:
        try:
            fields = field_selection(field_text, selectable(target.kind))
        except ValueError as error:
            raise failures.bad_request(_unselectable(target.kind, str(error))) from error
    return Selection(target.namespace, labels, fields)


def _unselectable(kind: Kind, error: str) -> str:
    """Kinds that have no fields of their own leave the refusal to the generic code."""
    start, found, name = error.partition("field label not supported: ")
    if not found or start or kind.is_custom or kind.storage in _FIELDS:
        return error
    known = ", ".join(f'"{one}"' for one in ("metadata.name", "metadata.namespace"))
    return f'"{name}" is not a known field selector: only {known}'


def selectable(kind: Kind) -> dict[str, Reader]:
    """The fields by which objects of a kind can be selected."""
    meta = _META_NAMESPACED if kind.namespaced else _META
    own = _FIELDS.get(kind.storage, {})
    if kind.storage == EVENTS and kind.group:
        own = {_IN_EVENTS_GROUP.get(part, part) + rest: one for (part, rest), one in _split(own)}
    return meta | own


def _split(fields: dict[str, Reader]) -> Iterator[tuple[tuple[str, str], Reader]]:
    for name, reader in fields.items():
        part, dot, rest = name.partition(".")
        yield (part, dot + rest), reader
