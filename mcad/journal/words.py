"""Leaves the words of others out: all that is in quotation marks (core/state/quotation.py).

Each word and each number becomes a digest of it, and punctuation stays. So the core that replays a
journal decides as the recorded one: equal words are equal still, and so are words that differ in
their numbers or in names in quotes only. The digests have a key that is not kept, so that a short
word cannot be found by trying.
"""

import os
import re
from hashlib import blake2b
from typing import Any

import msgspec

from mcad.core.state.quotation import BEGIN, END

_KEY = os.urandom(16)
_QUOTED = re.compile(f"{BEGIN}[^{END}]*")  # a text that was cut has no end
_RUN = re.compile(r"[0-9]+|[^\W0-9_]+")
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_MARK = BEGIN.encode()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def without_words(text: str) -> str:
    """The text with digests for the words of others."""
    return _QUOTED.sub(lambda found: _RUN.sub(_digest, found[0]), text) if BEGIN in text else text


def encoded_without_words(encoded: bytes) -> bytes:
    """The same of every text in a value in msgpack."""
    return _encode(_cleaned(_decode(encoded))) if _MARK in encoded else encoded


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return without_words(value)
        case list():
            return [_cleaned(one) for one in value]
        case dict():
            return {key: _cleaned(one) for key, one in value.items()}
        case _:
            return value


def _digest(run: re.Match[str]) -> str:
    found = blake2b(run[0].encode(), digest_size=4, key=_KEY)
    if run[0][0] in "0123456789":
        return str(int.from_bytes(found.digest()))
    return found.hexdigest().translate(_LETTERS)
