"""Steps as bytes: time, event, and digests of the commands that answered it."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import msgspec

from mcad.core.commands import Command
from mcad.core.events import Event
from mcad.journal.words import encoded_without_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcad.core.state.units import Duration, Instant

_EVENTS: tuple[type[Any], ...] = get_args(Event)
_EVENT_CODES = {kind: code for code, kind in enumerate(_EVENTS)}
_COMMAND_CODES = {kind: code for code, kind in enumerate(get_args(Command))}
_DECODERS = [msgspec.msgpack.Decoder(kind) for kind in _EVENTS]
_encode = msgspec.msgpack.Encoder().encode
_decode_steps = msgspec.msgpack.Decoder(list[tuple[int, int, msgspec.Raw, bytes]]).decode
_ARRAY32 = b"\xdd"  # the msgpack type of an array whose length takes four bytes
DIGEST_BYTES = 4


class Step(NamedTuple):
    """One step of the core: its number since this process leads, its time, and its event."""

    number: int
    now: Instant
    event: Event
    digest: bytes  # of each command that it was answered with; empty if there were none


class CannotDecodeError(Exception):
    """The checksum is right, but the bytes are not steps of this version."""


def digest(commands: Iterable[Command]) -> bytes:
    """``DIGEST_BYTES`` of each command, in order; empty without commands."""
    return _joined_digests(map(_encoded, commands))


def digest_to_keep(commands: Iterable[Command]) -> bytes:
    """The digest of the commands of a core that replays the kept events."""
    return _joined_digests(map(encoded_without_words, map(_encoded, commands)))


def matching(commands: Iterable[Command], digests: bytes) -> Iterator[bool]:
    """For each command, whether its digest was recorded."""
    for number, command in enumerate(commands):
        at = number * DIGEST_BYTES
        yield digest((command,)) == digests[at : at + DIGEST_BYTES]


def _encoded(command: Command) -> bytes:
    content = (_COMMAND_CODES[type(command)], command)
    try:
        return _encode(content)
    except OverflowError:  # msgpack has integers of 64 bits; sums of amounts can be larger
        return _encode(repr(content))


def _joined_digests(encoded: Iterable[bytes]) -> bytes:
    return b"".join(blake2b(one, digest_size=DIGEST_BYTES).digest() for one in encoded)


def encode_step(after: Duration, event: Event, of_commands: bytes) -> bytes:
    """One step as bytes; ``after`` is the time since the previous step of the frame."""
    content = (after, _EVENT_CODES[type(event)], event, of_commands)
    return encoded_without_words(_encode(content))


def join_steps(first: int, now: Instant, steps: list[bytes]) -> bytes:
    """The payload of a frame: encoded steps, and number and time of the first."""
    head = first.to_bytes(8, "big") + now.to_bytes(8, "big")
    return b"".join((head, _ARRAY32, len(steps).to_bytes(4, "big"), *steps))


def split_steps(payload: bytes) -> Iterator[Step]:
    """The reverse of ``join_steps``; raises ``CannotDecodeError``."""
    number, now = int.from_bytes(payload[:8], "big"), int.from_bytes(payload[8:16], "big")
    try:
        for count, (after, code, event, made) in enumerate(_decode_steps(payload[16:])):
            now += after
            yield Step(number + count, now, _DECODERS[code].decode(event), made)
    except (msgspec.MsgspecError, IndexError) as error:
        raise CannotDecodeError(str(error)) from error
