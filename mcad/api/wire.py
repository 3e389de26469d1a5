"""Reads JSON of unknown origin; no function raises, whatever its shape.

Also RFC 3339 times, which the core does not know.
"""

import json
from collections.abc import Container
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from mcad.core.state.units import Instant

Json = Any
"""A decoded JSON value."""

Map = dict[str, Json]
"""A decoded JSON object."""

_ENCODER = msgspec.json.Encoder(order="sorted")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INSTANTS = 1024  # an object has the same time in several places, and other objects have it too
_TIME_MAX = 64  # characters of a time, with any reasonable number of digits
_FIRST = (datetime(1000, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_INT64 = 2**63


def without_nulls(value: Json) -> Json:
    """The value without the fields of objects that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def fields_of_others(status: Json, ours: Container[str]) -> Map:
    """The fields of a status that are not ours."""
    return {key: value for key, value in as_map(status).items() if key not in ours}


def as_map(value: Json) -> Map:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Json) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def as_int(value: Json, default: int = 0) -> int:
    """The value if it is a whole number (a boolean is not), else the default.

    It is within 64 bits, as in Kubernetes. Only a field without a schema can have a larger number.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return default
    return min(max(value, -_INT64), _INT64 - 1)


def dig(value: Json, *keys: str) -> Json:
    """The value at the end of a chain of keys, None if a key is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def to_json(value: Json) -> bytes:
    """The compact JSON of a value with sorted keys; not for hashes (canonical.py)."""
    try:
        return _ENCODER.encode(value)
    except (msgspec.MsgspecError, ValueError, OverflowError):  # half a surrogate pair, say
        return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def read_json(text: bytes) -> Json:
    """The value of a JSON text, None if it cannot be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_instant(value: Json) -> Instant:
    """The microseconds since the epoch of an RFC 3339 time, 0 if it is malformed."""
    return _instant(value) if isinstance(value, str) and len(value) <= _TIME_MAX else 0


@lru_cache(_INSTANTS)
def _instant(text: str) -> Instant:
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError, OverflowError):
        return 0  # not a time, or a time without a zone


@lru_cache(_INSTANTS)
def format_instant(instant: Instant) -> str | None:
    """A MicroTime of Kubernetes: ``2023-07-21T11:18:27.082148Z``; None for 0, "never".

    Later than the year 9999 is its end, and earlier than the year 1000 is "never": a time has four
    digits for its year.
    """
    if not instant or instant < _FIRST:
        return None
    moment = _EPOCH + min(instant, _LAST) * _MICROSECOND
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def plural(count: int, noun: str) -> str:
    """``1 item``, ``2 items``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
