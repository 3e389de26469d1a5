"""What commands print, word by word: each file in golden/ is a session at one of the clusters.

A session consists of ``$ mcad ...`` lines, each followed by its output; the character that begins
a colour is written as ``<ESC>``. After an intended change,
``UPDATE_GOLDEN=1 pytest tests/cli/test_golden.py`` writes the files anew; read the difference.
"""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcad.cli.main import main
from tests.cli.cluster import crowd, labelled, reserved, tutorial, unplaced
from tests.cli.conftest import FakeEnvironment
from tests.cli.shares import shares
from tests.fakeapi import FakeApi

GOLDEN = Path(__file__).parent / "golden"

SESSIONS: dict[str, Callable[[], FakeApi]] = {
    "tutorial": tutorial,
    "crowd": crowd,
    "unplaced": unplaced,
    "reservations": reserved,
    "labels": labelled,
    "sorted": crowd,
    "colours": tutorial,
    "quota": shares,
    "errors": tutorial,
}


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name: str) -> None:
    path = GOLDEN / f"{name}.txt"
    expected = path.read_text()
    api = SESSIONS[name]()
    commands = [line for line in expected.splitlines() if line.startswith("$ ")]
    said = "\n".join(f"{command}\n{_type(api, command)}" for command in commands)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(said)
        return
    assert said == expected


def _type(api: FakeApi, command: str) -> str:
    program, *args = shlex.split(command.removeprefix("$ "))
    assert program == "mcad"
    result = CliRunner().invoke(main, args, obj=FakeEnvironment(api), env={"COLUMNS": "120"})
    code = f"[exit {result.exit_code}]\n" if result.exit_code else ""
    return result.output.replace("\x1b", "<ESC>") + code
