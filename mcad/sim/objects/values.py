"""Values against the schema of a CRD, with the causes that kube-apiserver gives.

What is known is what the CRDs of people here say: types, texts, numbers, lists, required fields and
``anyOf``. Other keywords are passed over.

Sources: ``k8s.io/kube-openapi/pkg/validation/validate`` for the order and the words, and KEP-4008
for what an update may keep although it is invalid (ratcheting).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import invalid, not_supported, required, too_long, too_many
from mcad.sim.objects.formats import date_time
from mcad.sim.objects.schema import Node, compiled

_MISSING = object()
_BITS = {"int32": 31, "int64": 63}
_INT64 = 1 << 63
_PYTHON = {"string": str, "object": dict, "array": list, "boolean": bool}
_NO_PATH = "<nil>"  # what a field path that is not given prints as


def validate(obj: Json, schema: Json | Node, old: Json | None = None) -> list[Cause]:
    """What is wrong with an object, CEL rules aside (cel.py); ``old`` is what it replaces.

    What is wrong with a value that is the same in ``old`` is let be.
    """
    node = compiled(schema)
    return _check(obj, node, "", _MISSING if old is None else old)


def _check(value: Any, node: Node, path: str, old: Any) -> list[Cause]:
    if value is None and node.nullable:
        return []
    causes: list[Cause] = []
    if type(value) is not _PYTHON.get(node.type) or node.int_or_string:
        fault = _type_fault(value, node, path)
        if fault is not None:
            causes.append(fault)
    if node.choices:
        causes += _chosen(value, node.choices, path)
    if isinstance(value, dict):
        causes += _object(value, node, path, old)
    elif isinstance(value, list):
        causes += _list(value, node, path, old)
    if node.bounded:
        causes += _bounds(value, node.raw, path)
    elif node.type == "integer" and type(value) is float:
        causes += _number(value, node.raw, path)
    if causes and old is not _MISSING and _equal(old, value):
        return []
    return causes


def _bounds(value: Any, raw: Json, path: str) -> Iterator[Cause]:
    if isinstance(value, str):
        yield from _text(value, raw, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, raw, path)
    if "enum" in raw and not any(_equal(value, one) for one in raw["enum"]):
        supported = [one if isinstance(one, str) else json.dumps(one) for one in raw["enum"]]
        yield not_supported(path, value, supported)


# Types ------------------------------------------------------------------------------------------


def type_name(value: Any) -> str:
    """The JSON type of a value as messages name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _type_fault(value: Any, node: Node, path: str) -> Cause | None:
    wanted = "integer,string" if node.int_or_string else node.type
    if not wanted:
        return None
    actual = type_name(value)
    if actual == "integer" and not -_INT64 <= value < _INT64:
        # Such a number is a float in Go, and named so where an integer was wanted.
        actual, wanted = "float64", node.raw.get("format", wanted)
        if wanted not in _BITS:
            return None
    if actual == wanted or (node.int_or_string and actual in {"integer", "string"}):
        return None
    if wanted == "number" and actual == "integer":
        return None
    # The value in the message is the name of its type, as kube-openapi has it.
    text = f'Invalid value: "{actual}": {_in_body(path)} must be of type {wanted}: "{actual}"'
    return Cause("FieldValueTypeInvalid", text, path)


def _in_body(path: str) -> str:
    return f"{path} in body"


# Texts and numbers ------------------------------------------------------------------------------


def _text(value: str, raw: Json, path: str) -> Iterator[Cause]:
    if raw.get("format") == "date-time" and not date_time(value):
        shown = json.dumps(value, ensure_ascii=False)
        text = f"Invalid value: {shown}: {_in_body(path)} must be of type date-time: {shown}"
        yield Cause("FieldValueTypeInvalid", text, path)
    if (limit := raw.get("maxLength")) is not None and len(value) > limit:
        yield too_long(path, limit)
    elif (limit := raw.get("minLength")) is not None and len(value) < limit:
        detail = f"{_in_body(path)} should be at least {limit} chars long"
        yield invalid(path, value, detail)
    elif (pattern := raw.get("pattern")) and not _regex(pattern).search(value):
        yield invalid(path, value, f"{_in_body(path)} should match '{pattern}'")


@lru_cache(256)
def _regex(pattern: str) -> re.Pattern[str]:
    # In Go "$" is the end of the text; in Python it may stand before a last newline, too.
    ends = pattern.endswith("$") and not pattern.endswith("\\$")
    return re.compile(pattern[:-1] + r"\Z" if ends else pattern)


def _number(value: float, raw: Json, path: str) -> Iterator[Cause]:
    if raw.get("type") == "integer" and (fault := _integer(value, raw, path)):
        yield fault
        return
    if (limit := raw.get("maximum")) is not None and value > limit:
        yield invalid(path, value, f"{_in_body(path)} should be less than or equal to {limit}")
    if (limit := raw.get("minimum")) is not None and value < limit:
        yield invalid(path, value, f"{_in_body(path)} should be greater than or equal to {limit}")


def _integer(value: float, raw: Json, path: str) -> Cause | None:
    bits = _BITS.get(raw.get("format", ""))
    if isinstance(value, float) and not value.is_integer():
        kind = "integer (default format)"
    elif bits is not None and not -(1 << bits) <= value < 1 << bits:
        kind = f"integer with format {raw['format']}"
    else:
        return None
    return invalid(_NO_PATH, "", f"Checked value must be of type {kind} in {path}")


# Objects and lists ------------------------------------------------------------------------------


def _object(value: Json, node: Node, path: str, old: Any) -> list[Cause]:
    causes = [
        required(f"{path}.{name}" if path else name) for name in node.required if name not in value
    ]
    before = old if isinstance(old, dict) else {}
    for key, one in value.items():
        known = node.properties.get(key, node.additional)
        if known is not None:
            below = f"{path}.{key}" if path else key
            causes += _check(one, known, below, before.get(key, _MISSING))
    return causes


def _list(value: list[Any], node: Node, path: str, old: Any) -> list[Cause]:
    causes: list[Cause] = []
    if node.items is not None:
        before = _by_key(old, node) if isinstance(old, list) and value else {}
        for index, one in enumerate(value):
            previous = before.get(_map_key(one, node), _MISSING) if before else _MISSING
            causes += _check(one, node.items, f"{path}[{index}]", previous)
    if node.bounded:
        causes += _size_of_list(value, node.raw, path)
    return causes


def _size_of_list(value: list[Any], raw: Json, path: str) -> Iterator[Cause]:
    size = len(value)
    if (limit := raw.get("minItems")) is not None and size < limit:
        yield invalid(path, size, f"{_in_body(path)} should have at least {limit} items")
    if (limit := raw.get("maxItems")) is not None and size > limit:
        yield too_many(path, size, limit)


def _map_key(item: Any, node: Node) -> str:
    keys = {name: item.get(name) for name in node.map_keys} if isinstance(item, dict) else {}
    return json.dumps(keys, sort_keys=True)


def _by_key(items: list[Any], node: Node) -> dict[str, Any]:
    """The items of a list of type map; those of other lists have no counterpart (KEP-4008)."""
    return {_map_key(one, node): one for one in items} if node.list_type == "map" else {}


def _chosen(value: Any, choices: Iterable[Node], path: str) -> Iterator[Cause]:
    """What is wrong if none of ``anyOf`` takes the value."""
    tries = [_check(value, one, path, _MISSING) for one in choices]
    if all(tries):
        yield invalid(_NO_PATH, "", f'"{path}" must validate at least one schema (anyOf)')
        yield from tries[0]


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values; True is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)
