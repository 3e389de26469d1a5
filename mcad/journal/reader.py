"""Reads the steps of a folder, by leadership and in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcad.core.cluster import Cluster
from mcad.journal import codec, frames, header, snapshot
from mcad.journal.codec import Step
from mcad.journal.frames import Kind

if TYPE_CHECKING:
    from pathlib import Path

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
    """The next steps are those of a core in this state."""

    cluster: Cluster


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
    expected, is_after_gap = -1, True
    for path in session.files:
        try:
            first = _header(path).first
            if first == 0:
                expected = 0
                yield Begin(Cluster(session.header.settings))
            for frame in frames.read(path):
                if frame.kind is Kind.SNAPSHOT and expected < first:
                    if not is_after_gap:
                        yield Gap(f"{path.name}: steps {expected} to {first - 1} are missing")
                    yield Begin(snapshot.restore(frame.payload))
                    expected = first
                elif frame.kind is Kind.STEPS:
                    for step in codec.split_steps(frame.payload):
                        if step.number == expected:
                            expected += 1
                            yield step
            is_after_gap = False
        except UNREADABLE as error:
            is_after_gap = True
            yield Gap(str(error))


def _header(path: Path) -> Header:
    frame = next(frames.read(path), None)
    if frame is None or frame.kind is not Kind.HEADER:
        raise frames.DamagedError(f"{path.name}: no header")
    return header.decode(frame.payload, path.name)
