"""Reads the steps of a folder, by leadership and in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcad.journal import codec, frames, header, snapshot
from mcad.journal.codec import Step
from mcad.journal.frames import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from mcad.core.cluster import Cluster
    from mcad.journal.header import Header

UNREADABLE = (
    frames.DamagedError,
    header.UnknownVersionError,
    codec.CannotDecodeError,
    snapshot.CannotRestoreError,
    OSError,
)


@dataclass
class Session:
    """The files of one leadership, oldest first."""

    header: Header  # of the first of them
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Begin:
    """The next steps need a core with this memory, or a new one if None."""

    cluster: Cluster | None


@dataclass(frozen=True, slots=True)
class Gap:
    """The steps up to the next ``Begin`` cannot be read."""

    why: str


def sessions(folder: Path) -> tuple[list[Session], list[str]]:
    """The leaderships of a folder, and errors of files that belong to none."""
    found: dict[str, Session] = {}
    wrong = []
    for path in header.files_of(folder):
        try:
            first = _header(path)
        except UNREADABLE as error:
            wrong.append(str(error))
            continue
        found.setdefault(first.session, Session(first)).files.append(path)
    return list(found.values()), wrong


def steps(session: Session) -> Iterator[Step | Begin | Gap]:
    """All steps in order; files overlap, and each step is returned once."""
    expected: int | None = None
    for path in session.files:
        first = _header(path)
        if first.first == 0:
            expected = 0
            yield Begin(None)
        try:
            for frame in frames.read(path):
                if frame.kind is Kind.SNAPSHOT and (expected is None or expected < first.first):
                    expected = first.first
                    yield Begin(snapshot.restore(frame.payload))
                elif frame.kind is Kind.STEPS and expected is not None:
                    for step in codec.split_steps(frame.payload):
                        if step.number == expected:
                            expected += 1
                            yield step
        except UNREADABLE as error:
            yield Gap(str(error))


def _header(path: Path) -> Header:
    for frame in frames.read(path):
        if frame.kind is Kind.HEADER:
            return header.decode(frame.payload, path.name)
        break
    raise frames.DamagedError(f"{path.name}: no header")
