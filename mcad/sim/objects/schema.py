"""Structural schemas of CRDs (apiextensions v1): pruning, defaulting and unknown fields.

A schema is compiled once (``compiled``) into nodes that are fast to walk; values.py checks values
against them. Sources: "Extend the Kubernetes API with CustomResourceDefinitions", sections on
pruning and defaulting, and ``k8s.io/apiextensions-apiserver/pkg/apiserver/schema``.

Objects are never changed: what a function returns shares the parts that stay the same.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from mcad.kube.types import Json

_CACHED = 256
_META = frozenset({"apiVersion", "kind", "metadata"})
_ABSENT = object()
_SAYS_NOTHING = frozenset(
    {"type", "properties", "items", "additionalProperties", "required", "description", "default"}
)
"""Keywords of which nothing follows but what the other slots say."""


class Node:
    """One compiled schema; ``raw`` is what it was compiled from."""

    __slots__ = (
        "additional",
        "bounded",
        "choices",
        "default",
        "embedded",
        "embeds",
        "has_default",
        "int_or_string",
        "items",
        "list_type",
        "map_keys",
        "nullable",
        "preserve",
        "properties",
        "raw",
        "required",
        "type",
    )

    def __init__(self, raw: Json) -> None:
        """Compile a structural schema; what it does not say is not checked."""
        self.raw = raw
        self.type: str = raw.get("type", "")
        self.properties = {name: Node(one) for name, one in (raw.get("properties") or {}).items()}
        additional = raw.get("additionalProperties")
        self.additional = Node(additional) if isinstance(additional, dict) else None
        items = raw.get("items")
        self.items = Node(items) if isinstance(items, dict) else None
        self.required = tuple(raw.get("required") or ())
        self.preserve = bool(raw.get("x-kubernetes-preserve-unknown-fields")) or additional is True
        self.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        self.int_or_string = bool(raw.get("x-kubernetes-int-or-string"))
        self.nullable = bool(raw.get("nullable"))
        self.has_default = raw.get("default") is not None
        self.default = raw.get("default")
        self.list_type: str = raw.get("x-kubernetes-list-type", "")
        self.choices = tuple(map(Node, raw.get("anyOf") or ()))
        self.bounded = any(key not in _SAYS_NOTHING and not key.startswith("x-") for key in raw)
        self.map_keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())

        below = [*self.properties.values(), self.additional, self.items]
        self.embeds: bool = self.embedded or any(one.embeds for one in below if one)

    def child(self, name: str) -> Node | None:
        """The schema of a field, None if it has none."""
        return self.properties.get(name, self.additional)


_compiled: OrderedDict[int, Node] = OrderedDict()


def compiled(schema: Json | Node) -> Node:
    """The nodes of a schema, which must not change any more; the last ones are remembered."""
    if isinstance(schema, Node):
        return schema
    node = _compiled.get(id(schema))
    if node is None or node.raw is not schema:
        node = Node(schema)  # keeps the schema alive, so that its id stays its own
        _compiled[id(schema)] = node
        if len(_compiled) > _CACHED:
            _compiled.popitem(last=False)
    return node


def prune(obj: Json, schema: Json | Node) -> tuple[Json, list[str]]:
    """The object without the fields that its schema does not know, and their paths, sorted.

    apiVersion, kind and metadata of the object and of embedded resources stay as they are
    (objectmeta.py sees to those).
    """
    unknown: list[str] = []
    pruned: Json = _prune(obj, compiled(schema), "", unknown, embedded=True)
    return pruned, sorted(unknown)


def default(obj: Json, schema: Json | Node) -> Json:
    """The object with the defaults of its schema, and without nulls where null is not allowed."""
    defaulted: Json = _default(obj, compiled(schema))
    return defaulted


def _prune(
    value: Any, node: Node | None, path: str, unknown: list[str], *, embedded: bool = False
) -> Any:
    if isinstance(value, dict):
        return _prune_object(value, node, path, unknown, embedded=embedded)
    if isinstance(value, list):
        items = node.items if node is not None else None
        if node is not None and node.preserve:
            if items is None:
                return value
            return _same(value, [_skip(one, items, path, unknown) for one in value])
        pruned = [_prune(one, items, f"{path}[{i}]", unknown) for i, one in enumerate(value)]
        return _same(value, pruned)
    return value


def _prune_object(
    value: Json, node: Node | None, path: str, unknown: list[str], *, embedded: bool
) -> Json:
    if node is None:
        unknown.extend(_join(path, key) for key in value)
        return {} if value else value
    embedded = embedded or node.embedded
    preserve = node.preserve
    if preserve and not node.properties and node.additional is None:
        return value
    changed = False
    pruned: Json = {}
    for key, one in value.items():
        if embedded and key in _META:
            pruned[key] = one
            continue
        known = node.properties.get(key, node.additional)
        if known is None:
            if preserve:
                pruned[key] = one
                continue
            changed = True
            if path or key not in _META:
                unknown.append(_join(path, key))
            continue
        new = pruned[key] = _prune(one, known, _join(path, key), unknown)
        changed = changed or new is not one
    return pruned if changed else value


def _skip(value: Any, node: Node, path: str, unknown: list[str]) -> Any:
    """Inside a list that preserves unknown fields, only what is known is pruned."""
    if isinstance(value, dict) and not node.preserve:
        return {
            key: one if (known := node.child(key)) is None else _prune(one, known, path, unknown)
            for key, one in value.items()
        }
    return _prune(value, node, path, unknown)


def _default(value: Any, node: Node) -> Any:
    if isinstance(value, dict):
        return _default_object(value, node)
    if isinstance(value, list) and node.items is not None:
        return _same(value, [_default_item(one, node.items) for one in value])
    return value


def _default_item(value: Any, node: Node) -> Any:
    if value is None and not node.nullable:
        return copy.deepcopy(node.default)
    return _default(value, node)


def _default_object(value: Json, node: Node) -> Json:
    changed = False
    result: Json = {}
    for key, one in value.items():
        known = node.properties.get(key, node.additional)
        if known is None:
            result[key] = one
        elif one is None and not known.nullable:
            changed = True
            if known.has_default:
                result[key] = _default(copy.deepcopy(known.default), known)
        else:
            new = result[key] = _default(one, known)
            changed = changed or new is not one
    for key, known in node.properties.items():
        if known.has_default and value.get(key, _ABSENT) is _ABSENT:
            changed = True
            result[key] = _default(copy.deepcopy(known.default), known)
    return result if changed else value


def _same(old: list[Any], new: list[Any]) -> list[Any]:
    return old if all(map(_is, old, new)) else new


def _is(left: Any, right: Any) -> bool:
    return left is right


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
