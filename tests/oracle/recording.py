"""A pytest plugin that writes down every step of every Dispatcher, and the reader of that.

A file is a sequence of msgpack values in zlib. Each worker writes one. A value is the settings of a
new Dispatcher, a step of one, or the end of a test, after which its Dispatchers are of no interest.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.settings import Settings
from mcad.core.state.units import Instant

SUFFIX = ".steps"
BEGIN, STEP, END = 0, 1, 2
EVENTS: tuple[Any, ...] = get_args(Event)
COMMANDS: tuple[Any, ...] = get_args(Command)

_EVENT_CODES = {kind: code for code, kind in enumerate(EVENTS)}
_COMMAND_CODES = {kind: code for code, kind in enumerate(COMMANDS)}
_encode = msgspec.msgpack.Encoder().encode
_CHUNK = 1 << 16


def encoded(command: Command) -> bytes:
    """A command with everything in it."""
    return _encode((_COMMAND_CODES[type(command)], command))


class _Writer:
    """The file of this process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}{SUFFIX}").open("wb")
        self._packer = zlib.compressobj(1)

    def write(self, *value: object) -> None:
        """Add a value."""
        content = _encode(value)
        self._file.write(self._packer.compress(len(content).to_bytes(4, "big") + content))

    def close(self) -> None:
        """Write what is left."""
        self._file.write(self._packer.flush())
        self._file.close()


class Plugin:
    """Patches the Dispatcher for as long as the tests run."""

    def __init__(self, folder: Path) -> None:
        self._writer = _Writer(folder)
        self._numbers = count(1)
        begin, step, plugin = Dispatcher.__init__, Dispatcher.step, self

        def patched_begin(self: Dispatcher, settings: Settings) -> None:
            begin(self, settings)
            number = next(plugin._numbers)
            self.oracle_number = number  # type: ignore[attr-defined]
            plugin._writer.write(BEGIN, number, settings, os.environ.get("PYTEST_CURRENT_TEST", ""))

        def patched_step(self: Dispatcher, event: Event, now: Instant) -> tuple[Command, ...]:
            commands = step(self, event, now)
            number = self.oracle_number  # type: ignore[attr-defined]
            try:
                made = [encoded(one) for one in commands]
                plugin._writer.write(STEP, number, now, _EVENT_CODES[type(event)], event, made)
            except TypeError:  # the test has put an object of its own into it
                plugin._writer.write(STEP, number, now, 0, None, [])
            return commands

        Dispatcher.__init__ = patched_begin  # type: ignore[method-assign]
        Dispatcher.step = patched_step  # type: ignore[method-assign]

    def pytest_runtest_logfinish(self) -> None:
        """Dispatchers of this test are not heard of any more."""
        self._writer.write(END)

    def pytest_sessionfinish(self) -> None:
        """Everything is written."""
        self._writer.close()


def pytest_configure(config: pytest.Config) -> None:
    """Record, in each worker that runs tests."""
    folder = os.environ.get("MCAD_ORACLE")
    is_worker = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if folder and is_worker:
        config.pluginmanager.register(Plugin(Path(folder)))


def read(path: Path) -> Iterator[list[Any]]:
    """The values of a file."""
    unpacker, rest = zlib.decompressobj(), b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            rest += unpacker.decompress(chunk)
            at = 0
            while len(rest) >= at + 4:
                end = at + 4 + int.from_bytes(rest[at : at + 4], "big")
                if end > len(rest):
                    break
                yield msgspec.msgpack.decode(rest[at + 4 : end])
                at = end
            rest = rest[at:]
