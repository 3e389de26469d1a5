"""Objects of built-in kinds as kube-apiserver decodes them: with the fields of their type only.

Unknown fields and nulls fall away, quantities and times get their canonical form, and a value of a
wrong type is an error that names the field.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from mcad.kube.types import Json
from mcad.sim.objects.formats import date_time
from mcad.sim.objects.quantities import MALFORMED, canonical

STRING, BOOL, INT32, INT64, FLOAT = "string", "bool", "int32", "int64", "float64"
QUANTITY, INT_OR_STRING, TIME, MICRO_TIME = "quantity", "int-or-string", "time", "micro-time"
BYTES, ANY, LIST, MAP, STRUCT = "bytes", "any", "list", "map", "struct"

_TIMES = {TIME, MICRO_TIME}
_MICRO_DIGITS = 6
_BITS = {INT32: 31, INT64: 63}
_FRACTION = re.compile(r"[.,](\d+)")


_ALWAYS = {
    "ClusterRole": ("rules",),
    "ContainerStateRunning": ("startedAt",),
    "ContainerStateTerminated": ("startedAt", "finishedAt"),
    "DaemonSetCondition": ("lastTransitionTime",),
    "DeploymentCondition": ("lastUpdateTime", "lastTransitionTime"),
    "JobCondition": ("lastProbeTime", "lastTransitionTime"),
    "NodeCondition": ("lastHeartbeatTime", "lastTransitionTime"),
    "PodCondition": ("lastProbeTime", "lastTransitionTime"),
    "ReplicaSetCondition": ("lastTransitionTime",),
    "Role": ("rules",),
    "StatefulSetCondition": ("lastTransitionTime",),
}
"""What is shown as null where it is missing: Go has no pointer there that omitempty could drop."""


class DecodeError(ValueError):
    """A body that kube-apiserver answers with 400."""


class Type:
    """A type; ``fields`` of a struct are found when they are first needed."""

    __slots__ = ("_fields", "_load", "kind", "name", "of")

    def __init__(
        self,
        kind: str,
        of: Type | None = None,
        name: str = "",
        load: Callable[[], Mapping[str, Type]] | None = None,
    ) -> None:
        """``of`` is the type of the items, ``name`` that of a struct."""
        self.kind = kind
        self.of = of
        self.name = name
        self._load = load
        self._fields: Mapping[str, Type] | None = None

    @property
    def fields(self) -> Mapping[str, Type]:
        """The fields of a struct by their JSON names."""
        if self._fields is None:
            self._fields = self._load() if self._load is not None else {}
        return self._fields


def decode(obj: Json, struct: Type, path: str = "") -> tuple[Json, list[str]]:
    """The object as it is stored and the paths of its unknown fields, in its own order.

    ``path`` is where it stands. Raises ``DecodeError``.
    """
    unknown: list[str] = []
    decoded: Json = _struct(obj, struct, path, unknown)
    return decoded, unknown


def _struct(value: Json, struct: Type, path: str, unknown: list[str]) -> Json:
    result: Json = {}
    fields = struct.fields
    for key, one in value.items():
        field = fields.get(key)
        if field is None:
            unknown.append(f"{path}.{key}" if path else key)
        elif field.kind == STRING and type(one) is str:
            result[key] = one
        elif one is not None:
            new = _value(one, field, f"{path}.{key}" if path else key, unknown)
            if new or field.kind not in {LIST, MAP}:  # Go leaves empty ones out (omitempty)
                result[key] = new
    for key in _ALWAYS.get(struct.name, ()):
        result.setdefault(key, None)
    return result


def _value(value: Any, wanted: Type, path: str, unknown: list[str]) -> Any:
    kind = wanted.kind
    if kind == STRUCT:
        if not isinstance(value, dict):
            wrong(value, kind, path)
        return _struct(value, wanted, path, unknown)
    if kind == LIST:
        return _list(value, wanted, path, unknown)
    if kind == MAP:
        return _map(value, wanted, path, unknown)
    if kind == ANY or (kind == FLOAT and type(value) in {int, float}):
        return value
    return _scalar(value, kind, path)


def _scalar(value: Any, kind: str, path: str) -> Any:
    if kind == QUANTITY:
        return _quantity(value)
    if kind in _BITS or (kind == INT_OR_STRING and type(value) is not str):
        limit = 1 << _BITS.get(kind, _BITS[INT32])
        fits = type(value) is int and -limit <= value < limit
        return value if fits else wrong(value, kind, path)
    if kind == BOOL:
        return value if isinstance(value, bool) else wrong(value, kind, path)
    if not isinstance(value, str):
        wrong(value, kind, path)
    if kind in _TIMES:
        return _time(value, kind, path)
    if kind == BYTES:
        _check_base64(value, path)
    return value


def _list(value: Any, wanted: Type, path: str, unknown: list[str]) -> list[Any]:
    if not isinstance(value, list):
        wrong(value, LIST, path)
    item = wanted.of or Type(ANY)
    return [
        _zero(item) if one is None else _value(one, item, f"{path}[{index}]", unknown)
        for index, one in enumerate(value)
    ]


def _map(value: Any, wanted: Type, path: str, unknown: list[str]) -> Json:
    if not isinstance(value, dict):
        wrong(value, MAP, path)
    item = wanted.of or Type(ANY)
    return {
        key: _zero(item) if one is None else _value(one, item, f"{path}.{key}", unknown)
        for key, one in value.items()
    }


_ZERO: dict[str, Any] = {STRING: "", BOOL: False, INT32: 0, INT64: 0, QUANTITY: "0", BYTES: ""}


def _zero(item: Type) -> Any:
    """What null is where Go has no pointer."""
    return {} if item.kind == STRUCT else _ZERO.get(item.kind)


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DecodeError(MALFORMED)
    try:
        return canonical(value.strip() if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _time(text: str, kind: str, path: str) -> str:
    fraction = _FRACTION.search(text)
    digits = fraction[1] if fraction else ""
    has_zone = text[-1:] in {"Z", "z"} or text[-3:-2] == ":"
    too_fine = kind == MICRO_TIME and len(digits) > _MICRO_DIGITS
    if not date_time(text) or text[10] not in "Tt" or not has_zone or too_fine:
        raise DecodeError(f'{path}: "{text}" is no time: write it like 2006-01-02T15:04:05Z')
    digits = digits[:_MICRO_DIGITS].ljust(_MICRO_DIGITS, "0")
    moment = datetime.fromisoformat(_FRACTION.sub("", text).upper()).astimezone(UTC)
    second = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second}.{digits}Z" if kind == MICRO_TIME else f"{second}Z"


def _check_base64(text: str, path: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError(f"{path}: illegal base64 data") from None


def wrong(value: Any, wanted: str, path: str) -> NoReturn:
    """Refuse a value of another type than ``wanted``, one of the names above."""
    raise DecodeError(f"{path}: {_NEEDED[wanted]} is needed, not {_FOUND.get(type(value), 'this')}")


_NEEDED = {
    STRING: "a text",
    BOOL: "true or false",
    INT32: "a whole number",
    INT64: "a whole number",
    FLOAT: "a number",
    INT_OR_STRING: "a whole number or a text",
    TIME: "a time",
    MICRO_TIME: "a time",
    BYTES: "a text",
    LIST: "a list",
    MAP: "a map",
    STRUCT: "a map",
}
_FOUND: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a map",
}
