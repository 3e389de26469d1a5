"""Writes the journal to a ring of files while the dispatcher runs.

The dispatcher never depends on it: whatever fails here is logged once, and the dispatcher goes on
without a journal. Only the user of the process can read the files.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from mcad.core.state.records import Struct, replace
from mcad.journal import codec, header, snapshot
from mcad.journal.frames import Kind, pack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcad.core.cluster import Cluster
    from mcad.core.commands import Command
    from mcad.core.events import Event
    from mcad.core.state.units import Instant
    from mcad.journal.header import Header

_log = logging.getLogger(__name__)

FRAME_BYTES = 64 * 1024  # before compression
_MODE = 0o600


class Limits(Struct, frozen=True):
    """``files`` are kept; a new one begins when one has ``file_bytes``."""

    files: int = 8
    file_bytes: int = 32 * 1024 * 1024


class Journal:
    """The journal of one leadership.

    ``note`` every step, ``flush`` once a second, ``close`` at the end.
    """

    def __init__(self, folder: Path, first: Header, cluster: Cluster, limits: Limits) -> None:
        """Begin a file in the folder, which is created; raises ``OSError``."""
        self._folder, self._header, self._limits = folder, first, limits
        self._cluster = cluster
        self._count = 0  # of the steps
        self._steps: list[bytes] = []  # of the present frame
        self._size = 0  # of these, in bytes
        self._begun: Instant = 0  # when the first of them was
        self._last: Instant = 0
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*.part"):
            left.unlink()
        present = header.files_of(folder)
        self._number = int(present[-1].stem) + 1 if present else 1
        self._file: BinaryIO | None = _create(folder / header.file_name(self._number), first)
        self._next: _NextFile | None = None
        self._file.flush()
        self._prune()

    @property
    def is_changing_over(self) -> bool:
        """Whether the next file is being started."""
        return self._next is not None

    def note(self, now: Instant, event: Event, commands: Sequence[Command]) -> None:
        """Record a step."""
        if self._file is None:
            return
        if not self._steps:
            self._begun = self._last = now
        try:
            step = codec.encode_step(now - self._last, event, codec.digest_to_keep(commands))
        except Exception as error:  # noqa: BLE001 - the dispatcher goes on
            self.flush()  # what came before
            self._end(error)
            return
        self._steps.append(step)
        self._size += len(step)
        self._count += 1
        self._last = now
        if self._size >= FRAME_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write recorded steps."""
        if self._file is None:
            return
        try:
            self._flush(self._file)
        except Exception as error:  # noqa: BLE001 - the dispatcher goes on
            self._end(error)

    def close(self) -> None:
        """Write the rest and end."""
        self.flush()
        self._give_up()

    def _flush(self, file: BinaryIO) -> None:
        if self._steps:
            first = self._count - len(self._steps)
            frame = pack(Kind.STEPS, codec.join_steps(first, self._begun, self._steps))
            self._steps, self._size = [], 0
            file.write(frame)
            file.flush()
            if self._next is not None:
                self._next.frames.append(frame)
        if self._next is not None:
            self._change_over(file, self._next)
        elif file.tell() >= self._limits.file_bytes:
            path = self._folder / header.file_name(self._number + 1)
            self._next = _NextFile(path, replace(self._header, first=self._count), self._cluster)

    def _change_over(self, file: BinaryIO, following: _NextFile) -> None:
        if not following.is_begun():
            return
        file.close()
        self._file, self._next = following.take_over(), None
        self._number += 1
        self._prune()

    def _prune(self) -> None:
        for path in header.files_of(self._folder)[: -self._limits.files]:
            path.unlink()

    def _end(self, error: Exception) -> None:
        if self._file is not None:
            _log.error("the journal ends here error=%s", error)
        self._give_up()

    def _give_up(self) -> None:
        if self._next is not None:
            self._next.give_up()
        if self._file is not None:
            with suppress(OSError):  # what it still holds
                self._file.close()
        self._file, self._next, self._steps = None, None, []


class _NextFile:
    """A file that a child process begins with the snapshot, while the parent makes steps.

    To pickle a core with 10,000 running AppWrappers takes seconds, to fork takes milliseconds.
    Until the child has ended, frames are written to the previous file and kept for this one.
    """

    def __init__(self, path: Path, first: Header, cluster: Cluster) -> None:
        self._path, self._part = path, path.with_suffix(".part")
        self.frames: list[bytes] = []
        self._child = os.fork()
        if self._child == 0:
            _begin(self._part, first, cluster)

    def is_begun(self) -> bool:
        """Whether the child has ended; raises ``OSError`` if it failed."""
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if status:
            raise OSError(f"no snapshot was written (status {status})")
        return pid != 0

    def take_over(self) -> BinaryIO:
        """Rename the file, with all frames recorded meanwhile; returns it."""
        file = self._part.open("ab")
        file.write(b"".join(self.frames))
        file.flush()
        self._part.rename(self._path)
        return file

    def give_up(self) -> None:
        """End the child; what it has written is of no use."""
        with suppress(ChildProcessError):  # it has ended, and that was noticed
            if os.waitpid(self._child, os.WNOHANG)[0] == 0:
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)
        self._part.unlink(missing_ok=True)


def _create(path: Path, first: Header) -> BinaryIO:
    """A new file with its header that only its owner can read; raises ``OSError``."""
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb")
    file.write(pack(Kind.HEADER, header.encode(first)))
    return file


def _begin(path: Path, first: Header, cluster: Cluster) -> None:
    """Run in the child, which uses no open file of the parent and never returns."""
    status = 1
    try:
        gc.disable()  # it would copy every page
        with _create(path, first) as file:
            file.write(pack(Kind.SNAPSHOT, snapshot.take(cluster)))
        status = 0
    finally:
        os._exit(status)
