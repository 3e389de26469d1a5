"""Rules for the metadata of every object, and for all label selectors.

Source: apimachinery's ``pkg/api/validation`` and ``pkg/apis/meta/v1/validation``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects.causes import forbidden, invalid, required

ANNOTATIONS_SIZE_MAX = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_OWNER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_LABELS = frozenset({("", "Namespace")})
_DNS_1123_SERVICE = frozenset({("", "Service")})
_SEGMENTS = frozenset({"rbac.authorization.k8s.io"})
_LABELLED = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def metadata_faults(kind: Kind, obj: Json) -> list[Cause]:
    """Names, labels, annotations, owners and finalizers of a new or a changed object."""
    metadata = obj.get("metadata") or {}
    return [
        *_name_faults(kind, metadata),
        *label_faults(metadata.get("labels"), "metadata.labels"),
        *annotation_faults(metadata.get("annotations"), "metadata.annotations"),
        *_owner_faults(metadata.get("ownerReferences") or []),
        *_finalizer_faults(kind, metadata.get("finalizers") or []),
    ]


def name_form(kind: Kind) -> names.Form:
    """Which names the objects of a kind can have."""
    if kind.group in _SEGMENTS:
        return names.path_segment
    if (kind.group, kind.kind) in _LABELS | _DNS_1123_SERVICE:
        return names.dns_label
    return names.dns_subdomain


def _name_faults(kind: Kind, metadata: Json) -> Iterator[Cause]:
    form = name_form(kind)
    prefix, name = metadata.get("generateName") or "", metadata.get("name") or ""
    if prefix:
        # What is generated ends in letters and digits, so a prefix may end in anything.
        for fault in form(f"{prefix[:-1]}a" if prefix.endswith("-") else prefix):
            yield invalid("metadata.generateName", prefix, fault)
    if not name:
        if not prefix:
            yield required("metadata.name", "name or generateName is required")
        return
    for fault in form(name):
        yield invalid("metadata.name", name, fault)


def label_faults(labels: Json | None, field: str) -> Iterator[Cause]:
    """Faults of a map of labels."""
    for key, value in (labels or {}).items():
        for fault in names.label_key(key):
            yield invalid(field, key, fault)
        for fault in names.label_value(value):
            yield invalid(field, value, fault)


def annotation_faults(annotations: Json | None, field: str) -> Iterator[Cause]:
    """Faults of a map of annotations; their keys may have capitals in the prefix."""
    size = 0
    for key, value in (annotations or {}).items():
        size += len(key) + len(value)
        for fault in names.label_key(key.lower()):
            yield invalid(field, key, fault)
    if size > ANNOTATIONS_SIZE_MAX:
        detail = f"may not be more than {ANNOTATIONS_SIZE_MAX} bytes"
        yield Cause("FieldValueTooLong", f"Too long: {detail}", field)


def _owner_faults(owners: list[Json]) -> Iterator[Cause]:
    field = "metadata.ownerReferences"
    controller: Json | None = None
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if version.count("/") > 1 or not version.rpartition("/")[2]:
            yield invalid(f"{field}.apiVersion", version, "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"{field}.{key}", "", "must not be empty")
        if owner.get("kind") == "Event" and version in {"v1", "events.k8s.io/v1"}:
            named = {key: owner[key] for key in _OWNER if key in owner}
            group, _, short = version.rpartition("/")
            detail = f"{group}/{short}, Kind=Event is disallowed from being an owner"
            yield invalid(field, named, detail)
        if owner.get("controller"):
            if controller is not None:
                pair = [f"{one.get('kind')}/{one.get('name')}" for one in (controller, owner)]
                text = "Only one reference can have Controller set to true. Found "
                text += f'"true" in references for {pair[0]} and {pair[1]}'
                listed = [{key: one[key] for key in _OWNER if key in one} for one in owners]
                shown = json.dumps(listed, separators=(",", ":"))
                yield Cause("FieldValueInvalid", f"Invalid value: {shown}: {text}", field)
                return
            controller = owner


def _finalizer_faults(kind: Kind, finalizers: list[str]) -> Iterator[Cause]:
    field = "metadata.finalizers"
    for index, one in enumerate(finalizers):
        faults = names.label_key(one)
        for fault in faults:
            yield invalid(field, one, fault)
        if "/" not in one and one not in _STANDARD_FINALIZERS and not kind.is_custom:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{field}[{index}]", one, text)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield invalid(
            field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"
        )


def metadata_change_faults(new: Json, old: Json) -> Iterator[Cause]:
    """A new finalizer on an object that is being deleted."""
    before, after = old.get("metadata") or {}, new.get("metadata") or {}
    if not before.get("deletionTimestamp"):
        return
    added = [
        one for one in after.get("finalizers") or () if one not in before.get("finalizers", ())
    ]
    if added:
        listed = ", ".join(f'"{one}"' for one in added)
        detail = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        yield forbidden("metadata.finalizers", detail)


def selector_faults(selector: Any, field: str) -> Iterator[Cause]:
    """Faults of a LabelSelector."""
    if selector is None:
        return
    yield from label_faults(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression_faults(one, f"{field}.matchExpressions[{index}]")


def _expression_faults(one: Json, field: str) -> Iterator[Cause]:
    operator, values = one.get("operator", ""), one.get("values") or []
    takes = _LABELLED.get(operator)
    if takes is None:
        yield invalid(f"{field}.operator", operator, "not a valid selector operator")
    elif takes and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        yield required(f"{field}.values", detail)
    elif not takes and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden(f"{field}.values", detail)
    key = one.get("key", "")
    for fault in names.label_key(key):
        yield invalid(f"{field}.key", key, fault)
    for index, value in enumerate(values):
        for fault in names.label_value(value):
            yield invalid(f"{field}.values[{index}]", value, fault)
