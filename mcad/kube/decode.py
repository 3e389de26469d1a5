"""JSON from an API server: taken apart without being read, and read whatever its depth.

One object must not make a whole list unreadable. What the fast decoder refuses (lone surrogates,
numbers beyond its range) is left to Python's, which takes it or says what is wrong. The server
stores objects of up to 10,000 levels, and both give up at Python's recursion limit: only then is
the text cut, and what is too deep becomes null. Code that uses an object has to refuse
one that is so deep; metadata are always whole.
"""

import json
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcad.kube.types import Json

LEVELS_KEPT = 300
"""Well within Python's recursion limit of 1000, also for code that takes three frames a level."""

REFUSED = (msgspec.MsgspecError, RecursionError)
"""What the fast decoder raises: the text is not what it expects, and may be good."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


_WIRE = {"version": "resourceVersion", "token": "continue", "remaining": "remainingItemCount"}


class ListMeta(Struct, rename=_WIRE):
    """The metadata of a list answer."""

    version: str | None = None
    token: str | None = None
    remaining: int | None = None


class Listed(Struct):
    """A list answer with objects that are still text. Go encodes an empty list as null at times."""

    metadata: ListMeta
    items: list[Raw] | None = None


class Line(Struct):
    """A line of a watch with an object that is still text."""

    type: str
    object: Raw


_ANYTHING = msgspec.json.Decoder()
_LISTED = msgspec.json.Decoder(Listed)
_LINE = msgspec.json.Decoder(Line)


def decode(raw: bytes | Raw) -> Any:
    """The value of a JSON text; raises ``ValueError``."""
    try:
        return _ANYTHING.decode(raw)
    except REFUSED:
        return _decode_slowly(bytes(raw))


def take_list(body: bytes | Json) -> Listed:
    """The objects of a list answer; raises ``ValueError`` if it is none."""
    value: Any = body
    if isinstance(body, bytes):
        try:
            return _LISTED.decode(body)
        except REFUSED:
            value = _decode_slowly(body)
    metadata, items = (value.get("metadata"), value.get("items")) if _is_map(value) else (None, 0)
    if not isinstance(metadata, dict) or not isinstance(items, list | None):
        raise ValueError("a list answer without metadata or items")
    version, token = metadata.get("resourceVersion"), metadata.get("continue")
    left = metadata.get("remainingItemCount")
    remaining = left if isinstance(left, int) else None
    return Listed(
        ListMeta(str(version or ""), str(token or ""), remaining),
        [_text(one) for one in items or ()],
    )


def take_line(line: bytes) -> Line:
    """The type and the object of a watch line; raises ``ValueError`` if it has not both."""
    try:
        return _LINE.decode(line)
    except REFUSED:
        value = _decode_slowly(line)
    kind, obj = (value.get("type"), value.get("object")) if _is_map(value) else (None, None)
    if not isinstance(kind, str) or not isinstance(obj, dict):
        raise ValueError("a watch line without type or object")
    return Line(kind, _text(obj))


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _text(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def _decode_slowly(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except RecursionError:
        return json.loads(_cut(raw))


def _cut(raw: bytes) -> bytes:
    """The text with null in the place of every map and list below ``LEVELS_KEPT`` levels."""
    pieces: list[bytes] = []
    depth = kept = 0
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == LEVELS_KEPT + 1:
                    pieces += (raw[kept : token.start()], b"null")
            case b"}" | b"]":
                if depth == LEVELS_KEPT + 1:
                    kept = token.end()
                depth -= 1
    if depth > LEVELS_KEPT:
        raise ValueError("it ends within a map or list")
    pieces.append(raw[kept:])
    return b"".join(pieces)
