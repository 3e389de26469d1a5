"""Canonical JSON: compact, sorted keys, ASCII. The recorded hash of a payload is a hash of it.

Python's encoder defines the form, because recorded hashes depend on it; for all that real manifests
hold, msgspec writes the same bytes at an eighth of the cost.
"""

import json
import re
from typing import Any

import msgspec

_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)
_FAST = msgspec.json.Encoder(order="sorted")

_DELETE = b"\x7f"  # the one ASCII character that Python escapes and msgspec does not
_DIGITS = bytes.maketrans(b"123456789-", b"0" * 10)
_NEITHER = bytes(set(range(256)) - set(b'0123456789e-"'))
_EXPONENT = re.compile(rb"\de-?\d+(?:[]},]|$)")
"""A number with an exponent, which Python writes otherwise (1e16 and 1e+16), or a text like it."""

_BRACKETS = bytes.maketrans(b"{}[]", b"()()")
_OTHERS = bytes(set(range(256)) - set(b"{}[]"))


def encode(value: Any, *, from_json: bool = False) -> bytes:
    """The text of a value; ``TypeError`` or ``ValueError`` if JSON cannot express it.

    ``from_json``: the value was decoded from JSON. If that is not known, msgspec is not used: it
    writes dates and the like without an error.
    """
    if from_json:
        try:
            text = _FAST.encode(value)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
            text = _DELETE  # a number of more than 64 bits, half a surrogate pair
        if text.isascii() and _DELETE not in text and not _has_exponent(text):
            return text
    return _ENCODER.encode(value).encode()


def _has_exponent(text: bytes) -> bool:
    # What is adjacent stays so without the rest, and to look for a text in what is left is six
    # times faster than for an expression in all of it.
    alike = text.translate(_DIGITS, _NEITHER)
    return b"0e0" in alike and _EXPONENT.search(text) is not None


def nests_deeper(text: bytes, levels: int) -> bool:
    """Whether a canonical text nests maps and lists deeper than ``levels``.

    Most texts have fewer brackets than that, even with those in strings. For the others there is an
    upper bound: one level for each map that is the value of a key, two for each list (its own, and
    that of a map in it; ``[[[[`` counts as two pairs, which covers its four levels). Only beyond
    that bound are the levels counted: without strings the text is brackets, and each round removes
    the innermost ones.
    """
    if len(text.translate(None, _OTHERS)) <= 2 * levels:
        return False
    lists = text.count(b":[") + text.count(b",[") + text.count(b"[[")
    if 2 + text.count(b":{") + 2 * lists <= levels:
        return False
    outside = text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    brackets = b"".join(outside).translate(_BRACKETS, _OTHERS)
    for _ in range(levels):
        brackets = brackets.replace(b"()", b"")
    return bool(brackets)
