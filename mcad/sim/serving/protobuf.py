"""Protobuf bodies of requests, as the same JSON objects.

kubectl 1.36 writes protobuf wherever it knows the type (``create namespace``, ``create
deployment``, the deletions of ``drain``, ``auth can-i``) and has no second try: without this, the
first command at the demo's cluster would be refused. Answers are JSON, which it accepts. The
envelope is ``runtime.Unknown`` behind four magic bytes (Kubernetes docs, "Kubernetes Protobuf
encoding"). Names and types come from the OpenAPI schemas, numbers from ``protonumbers.txt``, which
``make golden`` writes out of the Go types. Numbers are never used twice, so older clients are
understood as well.

Go writes every field that is no pointer, its zero included; zeros are left out here as they are in
JSON (``omitempty``).
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from mcad.kube.types import Json
from mcad.sim.kinds import Kind
from mcad.sim.objects import builtin
from mcad.sim.times import EPOCH, micros, seconds

Wire = int | bytes

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_META = "meta.v1"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10
_DEPTH_MAX = 100
_YEAR_1 = (EPOCH.replace(year=1) - EPOCH).total_seconds()
_REF = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class _Numbered:
    """One numbered field: its JSON name, or the component that it embeds."""

    name: str
    is_pointer: bool = False
    is_embedded: bool = False


class ProtobufError(ValueError):
    """Bytes that are no object of a kind that is known here."""


class UnknownKindError(ProtobufError):
    """The envelope could be read: ``about`` has the apiVersion and the kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(
            f"the embedded cluster reads no {kind} of {api_version} in protobuf; a real cluster"
            " does: send JSON"
        )
        self.about: Json = {"apiVersion": api_version, "kind": kind}


def decode(body: bytes) -> Json:
    """The object, with apiVersion and kind; raises ProtobufError."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body does not start with the mark of a Kubernetes object")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    about = dict(_fields(_bytes(envelope.get(1, b""))))
    api_version, kind = (_text(about.get(number, b"")) for number in (1, 2))
    component, schemas = _schemas(api_version, kind)
    decoded = _Message(schemas).decode(_bytes(envelope.get(2, b"")), component, 0)
    return {"apiVersion": api_version, "kind": kind} | decoded


@lru_cache(64)
def _schemas(api_version: str, kind: str) -> tuple[str, Mapping[str, Json]]:
    """Name of the component, and the schemas that it needs."""
    group, _, version = api_version.rpartition("/")
    described = Kind(group, version, kind.lower(), kind)
    component = _DELETE_OPTIONS if kind == "DeleteOptions" else builtin.component_name(described)
    schemas = builtin.components([described])
    if not component or not _numbers(_short(component)):
        raise UnknownKindError(api_version, kind)
    return component, schemas


def _short(component: str) -> str:
    return ".".join(component.split(".")[-3:])


class _Message:
    """Decodes messages by their schemas."""

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        self._schemas = schemas

    def decode(self, data: bytes, component: str, depth: int) -> Json:
        if depth > _DEPTH_MAX:
            raise ProtobufError("the object is nested too deeply")
        properties = (self._schemas.get(component) or {}).get("properties") or {}
        result: Json = {}
        self._read(data, _short(component), properties, result, depth)
        return result

    def _read(self, data: bytes, message: str, properties: Json, result: Json, depth: int) -> None:
        known = _numbers(message)
        for number, value in _fields(data):
            field = known.get(number)
            if field is None:
                continue  # of a newer version, as the real server does
            if field.is_embedded:
                self._read(_bytes(value), field.name, properties, result, depth)
            elif field.name in properties:
                self._take(field, value, properties[field.name], result, depth)

    def _take(self, field: _Numbered, value: Wire, schema: Json, result: Json, depth: int) -> None:
        if schema.get("type") == "array":
            item = self._value(value, schema["items"], depth)
            result.setdefault(field.name, []).append(item)
        elif "additionalProperties" in schema:
            entry = dict(_fields(_bytes(value)))
            found = self._value(entry.get(2, b""), schema["additionalProperties"], depth)
            result.setdefault(field.name, {})[_text(entry.get(1, b""))] = found
        else:
            found = self._value(value, schema, depth)
            is_zero = "allOf" not in schema and found in ("", 0, False) and not field.is_pointer
            if found is not None and not is_zero:
                result[field.name] = found

    def _value(self, value: Wire, schema: Json, depth: int) -> Any:
        reference = next((one["$ref"] for one in schema.get("allOf", ())), "").removeprefix(_REF)
        if reference:
            special = _SPECIAL.get(_short(reference))
            return (
                special(_bytes(value))
                if special
                else self.decode(_bytes(value), reference, depth + 1)
            )
        match schema.get("type"):
            case "string":
                raw = _bytes(value)
                is_binary = schema.get("format") == "byte"
                return base64.b64encode(raw).decode() if is_binary else _text(raw)
            case "boolean":
                return bool(value)
            case "integer":
                return _signed(value)
            case "number":
                return struct.unpack("<d", _bytes(value))[0]
        return _raw(_bytes(value))


def _quantity(data: bytes) -> str:
    return _text(dict(_fields(data)).get(1, b"0"))


def _int_or_string(data: bytes) -> int | str:
    parts = dict(_fields(data))
    return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))


def _time(data: bytes) -> str | None:
    instant = _instant_us(data)
    return None if instant is None else seconds(instant)


def _micro_time(data: bytes) -> str | None:
    instant = _instant_us(data)
    return None if instant is None else micros(instant)


def _instant_us(data: bytes) -> int | None:
    """Microseconds since the epoch; None for Go's zero time, which is in the year 1."""
    parts = dict(_fields(data))
    whole, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
    if not parts or whole <= _YEAR_1:
        return None
    return whole * 1_000_000 + nanos // 1000


def _raw(data: bytes) -> Any:
    """``runtime.RawExtension`` and ``FieldsV1``: JSON in a message of its own."""
    inner = _bytes(dict(_fields(data)).get(1, b""))
    try:
        return json.loads(inner) if inner else None
    except ValueError as error:
        raise ProtobufError(f"a raw extension is not JSON: {error}") from error


_SPECIAL = {
    "api.resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
}


# -- the wire format ---------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """Number and value of every field, in order (protobuf.dev, "Encoding")."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire_type} is not used by Kubernetes")
        end = position + size
        if end > len(data):
            raise ProtobufError("the body ends within a field")
        yield number, data[position:end]
        position = end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(_VARINT_BYTES_MAX):
        if position >= len(data):
            raise ProtobufError("the body ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, position
    raise ProtobufError("a number has more than ten bytes")


def _signed(value: Wire) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a number was expected")
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: Wire) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("a message or a text was expected")
    return value


def _text(value: Wire) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"a text is not UTF-8: {error}") from error


# -- numbers of fields ---------------------------------------------------------------------------


@cache
def _numbers(component: str) -> Mapping[int, _Numbered]:
    """The fields of ``core.v1.PodSpec`` by number; none if the message is not known."""
    return dict(_parse(_table().get(component, "")))


@cache
def _table() -> Mapping[str, str]:
    lines = files(__package__).joinpath("protonumbers.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


def _parse(text: str) -> Iterator[tuple[int, _Numbered]]:
    number = 0
    for word in text.split():
        jump, found, name = word.rpartition("=")
        number = int(jump) if found else number + 1
        yield number, _Numbered(name.strip("+*"), name.endswith("*"), name.startswith("+"))
