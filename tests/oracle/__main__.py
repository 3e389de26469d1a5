"""``python -m tests.oracle``: see the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.oracle.comparing import Result, compare, read_unfit, write_unfit

TESTS = ("tests/core", "tests/journal")
"""What is recorded if nothing else is named."""


def record(folder: Path, arguments: list[str]) -> int:
    """Run tests, and find out which Dispatchers do what they did without them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.oracle.recording"]
    command += ["--numprocesses", "2", *(arguments or TESTS)]
    done = subprocess.run(command, env=os.environ | {"MCAD_ORACLE": str(folder)}, check=False)
    if done.returncode:
        return done.returncode
    result = compare(folder)
    write_unfit(folder, result.differing)
    print(f"{_summary(result)} are unfit: tests reach into them")
    return 0


def main() -> int:
    """Record or compare."""
    match sys.argv[1:]:
        case ["record", folder, *arguments]:
            return record(Path(folder), arguments)
        case ["compare", folder]:
            result = compare(Path(folder), read_unfit(Path(folder)))
            for text in list(result.differing.values())[:20]:
                print(text)
            print(f"{_summary(result)} differ")
            return bool(result.differing)
    print("usage: python -m tests.oracle record FOLDER [PYTEST ARGUMENTS] | compare FOLDER")
    return 2


def _summary(result: Result) -> str:
    return (
        f"{result.dispatchers} dispatchers, {result.steps} steps, {result.commands} commands:"
        f" {len(result.differing)}"
    )


if __name__ == "__main__":
    sys.exit(main())
