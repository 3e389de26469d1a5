"""The files of an earlier commit, for tests of what a former release left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def check_out(commit: str, folder: Path, *paths: str) -> None:
    """Write these files and folders into ``folder``, as they were at that commit."""
    command = ["git", "archive", commit, *paths]
    archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
