"""Objects of built-in kinds as kube-apiserver decodes them: Go structs, and so no other fields.

Unknown fields and nulls fall away, quantities and times get their canonical form, and a value of a
wrong type is an error in the words of Go's ``encoding/json``, which people search the web for.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from mcad.kube.types import Json
from mcad.sim.objects.formats import date_time
from mcad.sim.objects.gotypes import go_name
from mcad.sim.objects.quantities import MALFORMED, canonical

STRING, BOOL, INT32, INT64, FLOAT = "string", "bool", "int32", "int64", "float64"
QUANTITY, INT_OR_STRING, TIME, MICRO_TIME = "quantity", "int-or-string", "time", "micro-time"
BYTES, ANY, LIST, MAP, STRUCT = "bytes", "any", "list", "map", "struct"

_LAYOUT = {TIME: "2006-01-02T15:04:05Z07:00", MICRO_TIME: "2006-01-02T15:04:05.000000Z07:00"}
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
    """A Go type; ``fields`` of a struct are found when they are first needed."""

    __slots__ = ("_fields", "_load", "kind", "name", "of")

    def __init__(
        self,
        kind: str,
        of: Type | None = None,
        name: str = "",
        load: Callable[[], Mapping[str, Type]] | None = None,
    ) -> None:
        """``of`` is the type of the items, ``name`` Go's for a struct or a kind of text."""
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

    @property
    def go(self) -> str:
        """What Go calls it."""
        if self.name:
            return f"v1.{self.name}"
        if self.kind == LIST:
            return f"[]{self.of.go if self.of else 'interface {}'}"
        if self.kind == MAP:
            if self.of is not None and self.of.kind == QUANTITY:
                return "v1.ResourceList"
            return f"map[string]{self.of.go if self.of else 'interface {}'}"
        return _GO.get(self.kind, self.kind)


_GO = {
    QUANTITY: "resource.Quantity",
    INT_OR_STRING: "int32",
    TIME: "string",
    MICRO_TIME: "string",
    BYTES: "[]uint8",
    ANY: "interface {}",
}


class _Place(NamedTuple):
    path: str
    """``spec.containers[0].name``"""
    where: str
    """The same in the words of Go: without indices, with embedded structs."""
    struct: str
    """Whose field it is."""


def decode(obj: Json, struct: Type) -> tuple[Json, list[str]]:
    """The object as it is stored and the paths of its unknown fields, in its own order.

    Raises ``DecodeError``.
    """
    unknown: list[str] = []
    decoded: Json = _struct(obj, struct, _Place("", "", ""), unknown)
    return decoded, unknown


def _struct(value: Json, struct: Type, at: _Place, unknown: list[str]) -> Json:
    result: Json = {}
    fields = struct.fields
    for key, one in value.items():
        field = fields.get(key)
        if field is None:
            unknown.append(f"{at.path}.{key}" if at.path else key)
        elif field.kind == STRING and type(one) is str:
            result[key] = one
        elif one is not None:
            name = go_name(struct.name, key)
            path = f"{at.path}.{key}" if at.path else key
            where = f"{at.where}.{name}" if at.where else name
            new = _value(one, field, _Place(path, where, struct.name), unknown)
            if new or field.kind not in {LIST, MAP}:  # Go leaves empty ones out (omitempty)
                result[key] = new
    for key in _ALWAYS.get(struct.name, ()):
        result.setdefault(key, None)
    return result


def _value(value: Any, wanted: Type, at: _Place, unknown: list[str]) -> Any:
    kind = wanted.kind
    if kind == STRUCT:
        if not isinstance(value, dict):
            _wrong(value, wanted, at)
        return _struct(value, wanted, at, unknown)
    if kind == LIST:
        return _list(value, wanted, at, unknown)
    if kind == MAP:
        return _map(value, wanted, at, unknown)
    if kind == ANY or (kind == FLOAT and type(value) in {int, float}):
        return value
    return _scalar(value, wanted, at)


def _scalar(value: Any, wanted: Type, at: _Place) -> Any:
    kind = wanted.kind
    if kind == QUANTITY:
        return _quantity(value)
    if kind in _BITS or (kind == INT_OR_STRING and type(value) is not str):
        return _integer(value, wanted, at)
    if kind == BOOL:
        return value if isinstance(value, bool) else _wrong(value, wanted, at)
    if not isinstance(value, str):
        _wrong(value, wanted, at)
    if kind in _LAYOUT:
        return _time(value, kind)
    if kind == BYTES:
        _check_base64(value)
    return value


def _list(value: Any, wanted: Type, at: _Place, unknown: list[str]) -> list[Any]:
    if not isinstance(value, list):
        _wrong(value, wanted, at)
    item = wanted.of or Type(ANY)
    return [
        _zero(item)
        if one is None
        else _value(one, item, at._replace(path=f"{at.path}[{index}]"), unknown)
        for index, one in enumerate(value)
    ]


def _map(value: Any, wanted: Type, at: _Place, unknown: list[str]) -> Json:
    if not isinstance(value, dict):
        _wrong(value, wanted, at)
    item = wanted.of or Type(ANY)
    return {
        key: _zero(item)
        if one is None
        else _value(one, item, at._replace(path=f"{at.path}.{key}"), unknown)
        for key, one in value.items()
    }


_ZERO: dict[str, Any] = {STRING: "", BOOL: False, INT32: 0, INT64: 0, QUANTITY: "0", BYTES: ""}


def _zero(item: Type) -> Any:
    """What null is where Go has no pointer."""
    return {} if item.kind == STRUCT else _ZERO.get(item.kind)


def _integer(value: Any, wanted: Type, at: _Place) -> int:
    limit = 1 << _BITS.get(wanted.kind, _BITS[INT32])
    if type(value) is not int or not -limit <= value < limit:
        _wrong(value, wanted, at)
    number: int = value
    return number


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DecodeError(MALFORMED)
    try:
        return canonical(value.strip() if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _time(text: str, kind: str) -> str:
    if not date_time(text) or text[10] not in "Tt" or not _zone(text):
        known = text[:4].isdigit()
        _bad_time(text, kind, text[4:] if known else text, "-" if known else "2006")
    fraction = _FRACTION.search(text)
    digits = fraction[1] if fraction else ""
    if kind == MICRO_TIME and len(digits) > _MICRO_DIGITS:
        _bad_time(text, kind, text[text.index(digits) + _MICRO_DIGITS :], "Z07:00")
    digits = digits[:_MICRO_DIGITS].ljust(_MICRO_DIGITS, "0")
    moment = datetime.fromisoformat(_FRACTION.sub("", text).upper()).astimezone(UTC)
    second = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second}.{digits}Z" if kind == MICRO_TIME else f"{second}Z"


def _bad_time(text: str, kind: str, rest: str, wanted: str) -> NoReturn:
    layout = _LAYOUT[kind]
    raise DecodeError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{wanted}"')


def _zone(text: str) -> bool:
    return text[-1:] in {"Z", "z"} or text[-3:-2] == ":"


def _check_base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        bad = re.search(r"[^A-Za-z0-9+/=\r\n]", text)
        at = bad.start() if bad else len(text) // 4 * 4
        raise DecodeError(f"illegal base64 data at input byte {at}") from None


def _wrong(value: Any, wanted: Type, at: _Place) -> NoReturn:
    number = type(value) in {int, float} and wanted.kind in {INT32, INT64, INT_OR_STRING}
    shown = f" {value!r}" if number else ""
    raise DecodeError(
        f"json: cannot unmarshal {_json_type(value)}{shown} into Go struct field "
        f"{at.struct}.{at.where} of type {wanted.go}"
    )


def _json_type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
