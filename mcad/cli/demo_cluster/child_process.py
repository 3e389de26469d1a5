"""Runs a command of the user while the demo cluster is up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mcad.cli.errors import show_error
from mcad.cli.start import SIGNALLED

NOT_RUN = 127  # the shells' exit code for a command that cannot be run


async def run_with(command: Sequence[str], settings: Mapping[str, str], stop: asyncio.Event) -> int:
    """Run a command with additional environment variables; returns the exit code of a shell.

    The command gets SIGTERM when ``stop`` is set.
    """
    try:
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **settings})
    except OSError as error:
        show_error(f"cannot run {command[0]}: {error.strerror}")
        return NOT_RUN
    stopping = asyncio.ensure_future(_end(process, stop))
    try:
        code = await process.wait()
    finally:
        stopping.cancel()
    return code if code >= 0 else SIGNALLED - code


async def _end(process: asyncio.subprocess.Process, stop: asyncio.Event) -> None:
    await stop.wait()
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)  # terminate() may take the exit code from asyncio
