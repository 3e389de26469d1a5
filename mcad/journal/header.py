"""What each file says first: by which version it was written, and with which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import mcad
from mcad.core.state.records import Struct
from mcad.core.state.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2
"""Of the files. It rises when an older version would misread them."""

SUFFIX = ".journal"
_NUMBER_DIGITS = 8


class Header(Struct, frozen=True):
    """One file of one leadership, whose ``session`` no other one has; ``first`` is the number of
    the first step after its snapshot, 0 in a file that begins with the leadership."""

    session: str
    epoch: int
    settings: Settings
    first: int = 0
    version: str = mcad.__version__
    format: int = FORMAT


class UnknownVersionError(Exception):
    """A file that another version wrote."""


def encode(header: Header) -> bytes:
    """As JSON, which every version can read as far as it has to."""
    return msgspec.json.encode(header)


def decode(payload: bytes, where: str) -> Header:
    """Raises ``UnknownVersionError``."""
    try:
        said = msgspec.json.decode(payload)
        version, number = str(said["version"]), said["format"]
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise UnknownVersionError(f"{where}: the header is not that of a journal") from error
    if (version, number) != (mcad.__version__, FORMAT):
        raise UnknownVersionError(
            f"{where}: written by mcad {version} (format {number}), this is mcad"
            f" {mcad.__version__} (format {FORMAT}): use the version that wrote it"
        )
    try:
        return msgspec.json.decode(payload, type=Header)
    except msgspec.MsgspecError as error:
        raise UnknownVersionError(f"{where}: the header is not understood: {error}") from error


def file_name(number: int) -> str:
    """Names sort as the files were begun."""
    return f"{number:0{_NUMBER_DIGITS}}{SUFFIX}"


def files_of(folder: Path) -> list[Path]:
    """The whole files of a folder, oldest first."""
    return sorted(folder.glob(f"*{SUFFIX}"))
