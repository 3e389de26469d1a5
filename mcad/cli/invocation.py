"""How this program was started, so that commands in hints can be pasted."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path


def invocation() -> str:
    """The command for this program: ``mcad`` if that is on PATH, else a path."""
    script = Path(sys.argv[0])
    if script.name == "kubectl-mcad":
        return "kubectl mcad"
    if script.name == "__main__.py" and script.parent.name == "mcad":
        return f"{_shortest(Path(sys.executable))} -m mcad"
    return _shortest(script) if script.name == "mcad" else "mcad"


def pasteable(text: str) -> str:
    """The text, with `mcad` commands in it as they can be typed here."""
    return text.replace("`mcad ", f"`{invocation()} ")


def _shortest(program: Path) -> str:
    """The name if the shell finds the program by it, else a path, relative if possible."""
    import shutil  # noqa: PLC0415 - for hints only

    found = shutil.which(program.name)
    if found is not None and os.path.abspath(found) == os.path.abspath(program):
        return program.name
    path = Path(os.path.abspath(program))  # not resolved: a venv's python is a link
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
