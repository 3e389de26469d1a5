"""A file of the journal: frames, each with the length and the checksum of its body.

    length (4 bytes) | CRC-32 of the body (4 bytes) | body: kind (1 byte), payload (zlib)

The first frame of a file is its header, and the second one the snapshot, if there is one.
"""

from __future__ import annotations

import zlib
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEVEL = 1  # of zlib; higher ones save few bytes for much CPU
_HEAD_BYTES = 8
_BODY_BYTES_MAX = 1 << 30


class Kind(Enum):
    """The content of a frame."""

    HEADER = b"H"
    SNAPSHOT = b"W"
    STEPS = b"S"


class Frame(NamedTuple):
    """One frame, unpacked."""

    kind: Kind
    payload: bytes


class DamagedError(Exception):
    """The file ends within a frame, or a checksum is wrong."""


def pack(kind: Kind, payload: bytes) -> bytes:
    """The bytes of a frame."""
    body = kind.value + zlib.compress(payload, LEVEL)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def read(path: Path) -> Iterator[Frame]:
    """The frames of a file in order; raises ``DamagedError`` after the last valid one."""
    with path.open("rb") as file:
        offset = 0
        while head := file.read(_HEAD_BYTES):
            where = f"{path.name}: the frame at byte {offset}"
            length, checksum = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
            if length > _BODY_BYTES_MAX:
                raise DamagedError(f"{where} is damaged: a length of {length} bytes")
            body = file.read(length)
            if len(head) < _HEAD_BYTES or len(body) < length:
                raise DamagedError(f"{where} is cut off")
            if zlib.crc32(body) != checksum:
                raise DamagedError(f"{where} is damaged: wrong checksum")
            yield _unpack(body, where)
            offset += _HEAD_BYTES + length


def _unpack(body: bytes, where: str) -> Frame:
    try:
        return Frame(Kind(body[:1]), zlib.decompress(body[1:]))
    except (ValueError, zlib.error) as error:
        raise DamagedError(f"{where} is damaged: {error}") from error
