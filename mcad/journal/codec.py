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
    return b"".join(_digest_of(_encoded(command)) for command in commands)


def digest_to_keep(commands: Iterable[Command]) -> bytes:
    """The same of what a core commands that replays the kept events."""
    encoded = map(_encoded, commands)
    return b"".join(_digest_of(encoded_without_words(one)) for one in encoded)


def _encoded(command: Command) -> bytes:
    content = (_COMMAND_CODES[type(command)], command)
    try:
        return _encode(content)
    except OverflowError:  # msgpack has integers of 64 bits; sums of amounts can be larger
        return _encode(repr(content))


def _digest_of(encoded: bytes) -> bytes:
    return blake2b(encoded, digest_size=DIGEST_BYTES).digest()


def matching(commands: Iterable[Command], digests: bytes) -> Iterator[bool]:
    """For each command, whether its digest was recorded."""
    for number, command in enumerate(commands):
        at = number * DIGEST_BYTES
        yield _digest_of(_encoded(command)) == digests[at : at + DIGEST_BYTES]


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
