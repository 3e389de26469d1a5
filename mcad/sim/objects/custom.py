"""Custom objects as kube-apiserver decodes them: metadata is typed, the rest follows the schema.

Source: ``apiextensions-apiserver/pkg/apiserver/schema/objectmeta``, which does the same for the
resources that are embedded (``x-kubernetes-embedded-resource``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects import builtin
from mcad.sim.objects.causes import invalid, required, shown
from mcad.sim.objects.decoding import STRUCT, DecodeError, decode, wrong
from mcad.sim.objects.metavalidation import metadata_faults
from mcad.sim.objects.schema import Node, compiled, prune

_HEAD = ("apiVersion", "kind")
_ANY_NAME = "x"
_EMBEDDED = Kind("rbac.authorization.k8s.io", "", "", "", is_custom=True)
"""Stands for a kind whose names only have to be segments of a path."""


def decode_custom(obj: Json, schema: Json | Node) -> tuple[Json, list[str]]:
    """The object without what its schema does not know, and the paths of that.

    Raises ``DecodeError``.
    """
    node = compiled(schema)
    unknown: list[str] = []
    known: Json = dict(obj)
    if "metadata" in obj:
        known["metadata"], unknown = _metadata(obj["metadata"], "metadata")
    if node.embeds:
        known = _embedded(known, node, "", unknown, top=True)
    pruned, fields = prune(known, node)
    return pruned, sorted(unknown) + fields


def _metadata(value: Any, path: str) -> tuple[Json, list[str]]:
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        wrong(value, STRUCT, path)
    return decode(value, builtin.meta_type("ObjectMeta"), path)


def _embedded(value: Any, node: Node, path: str, unknown: list[str], *, top: bool = False) -> Any:
    """The value with the metadata of the embedded resources in it decoded."""
    if not node.embeds:
        return value
    if isinstance(value, list) and node.items is not None:
        return [
            _embedded(one, node.items, f"{path}[{index}]", unknown)
            for index, one in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    result: Json = {}
    for key, one in value.items():
        below = f"{path}.{key}" if path else key
        known = node.child(key)
        if node.embedded and not top and key in _HEAD and not isinstance(one, str):
            raise DecodeError(f"{below}: Invalid value: {shown(one)}: must be a string")
        if node.embedded and not top and key == "metadata":
            result[key], more = _metadata(one, below)
            unknown += more
        else:
            result[key] = one if known is None else _embedded(one, known, below, unknown)
    return result


def embedded_faults(obj: Json, schema: Json | Node) -> list[Cause]:
    """What is wrong with the heads and the metadata of embedded resources."""
    return list(_faults(obj, compiled(schema), ""))


def _faults(value: Any, node: Node, path: str) -> Iterator[Cause]:
    if not node.embeds:
        return
    if isinstance(value, list) and node.items is not None:
        for index, one in enumerate(value):
            yield from _faults(one, node.items, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    if node.embedded:
        yield from _head_faults(value, path)
    for key, one in value.items():
        known = node.child(key)
        if known is not None:
            yield from _faults(one, known, f"{path}.{key}" if path else key)


def _head_faults(value: Json, path: str) -> Iterator[Cause]:
    for key in _HEAD:
        if key not in value:
            yield required(f"{path}.{key}")
        elif not value[key]:
            yield invalid(f"{path}.{key}", value[key], "must not be empty")
    version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        yield invalid(f"{path}.apiVersion", version, detail)
    for fault in names.dns_1035_label(kind.lower()) if kind else ():
        detail = f"may have mixed case, but should otherwise match: {fault}"
        yield invalid(f"{path}.kind", kind, detail)
    metadata = value.get("metadata")
    if metadata:
        named = {"metadata": {"name": _ANY_NAME} | metadata}
        for cause in metadata_faults(_EMBEDDED, named):
            yield Cause(cause.reason, cause.message, f"{path}.{cause.field}")
