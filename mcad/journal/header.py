"""The first frame of each file: the version that wrote it, and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcad.core.state.records import Struct
from mcad.core.state.settings import Settings
from mcad.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2
"""Of the files. It rises when an older version would misread them."""

SUFFIX = ".journal"
_NUMBER_DIGITS = 8


class Header(Struct, frozen=True):
    """The header of a file. ``session`` is unique per leadership.

    ``first`` is the number of the first step after the snapshot, 0 in the first file of a
    leadership.
    """

    session: str
    epoch: int
    settings: Settings
    first: int = 0
    version: str = __version__
    format: int = FORMAT


class UnknownVersionError(Exception):
    """The file was written by another version."""


def encode(header: Header) -> bytes:
    """The header as JSON, which every version can read."""
    return msgspec.json.encode(header)


def decode(payload: bytes, where: str) -> Header:
    """Raises ``UnknownVersionError``."""
    try:
        said = msgspec.json.decode(payload)
        version, number = str(said["version"]), said["format"]
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise UnknownVersionError(f"{where}: the header is not that of a journal") from error
    if (version, number) != (__version__, FORMAT):
        raise UnknownVersionError(
            f"{where}: written by mcad {version} (format {number}), this is mcad"
            f" {__version__} (format {FORMAT}): use the version that wrote it"
        )
    try:
        return msgspec.json.decode(payload, type=Header)
    except msgspec.MsgspecError as error:
        raise UnknownVersionError(f"{where}: the header is not understood: {error}") from error


def file_name(number: int) -> str:
    """A file name; names sort by age."""
    return f"{number:0{_NUMBER_DIGITS}}{SUFFIX}"


def files_of(folder: Path) -> list[Path]:
    """The complete files of a folder, oldest first."""
    return sorted(folder.glob(f"*{SUFFIX}"))
