"""Programs: how this one was started, so that hints can be pasted, and how others are run."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mcad.cli.errors import CliError

NOT_RUN = 127  # the shells' exit code for a command that cannot be run
SIGNALLED = 128  # and what they add to the number of the signal that ended one


def invocation() -> str:
    """``mcad`` where that is on PATH, else what leads to this very program."""
    script = Path(sys.argv[0])
    if script.name == "kubectl-mcad":
        return "kubectl mcad"
    if script.name == "__main__.py":
        return f"{_shortest(Path(sys.executable))} -m mcad"
    return _shortest(script)


def _shortest(program: Path) -> str:
    """Its bare name where the shell finds it by that, else a path, relative if it is below here."""
    found = shutil.which(program.name)
    if found is not None and os.path.abspath(found) == os.path.abspath(program):
        return program.name
    path = Path(os.path.abspath(program))  # not resolved: a venv's python is a link
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


async def run_with(command: Sequence[str], settings: Mapping[str, str], stop: asyncio.Event) -> int:
    """Run a command with these environment variables as well; its exit code, as a shell has it.

    It is asked to end when ``stop`` is set.
    """
    try:
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **settings})
    except OSError as error:
        failure = CliError(f"cannot run {command[0]}: {error.strerror}")
        failure.show()
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
        process.terminate()
