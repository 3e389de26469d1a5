"""Ctrl-C and SIGTERM at each moment of a start: none is lost, and the exit code is the documented.

In one process, the signal comes in the n-th turn of the event loop; a few processes get it while
Python imports.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mcad.cli.errors import INTERRUPTED, TERMINATED
from mcad.cli.main import main
from tests.cli.cluster import kubeconfig, tutorial
from tests.serving import served

pytestmark = pytest.mark.filterwarnings(
    # asyncio loses the socket or the child of a start that is cancelled while it makes it
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
PATIENCE_S = 20.0  # for a start, and for the end after the signal, on a busy machine
TURNS = 50
REST_S = 1.0  # a start with fewer turns is over by then


class Striking(asyncio.SelectorEventLoop):
    """Sends this process a signal at the beginning of its n-th turn, or when it rests before."""

    def __init__(self, number: signal.Signals, turn: int) -> None:
        super().__init__()
        self._number = number
        self._left = turn
        self._end = time.monotonic() + PATIENCE_S
        self.call_later(REST_S, self._strike)

    def _strike(self) -> None:
        if self._left > 0:
            self._left = 0
            signal.raise_signal(self._number)

    def _run_once(self) -> None:
        if self._left == 1:
            self._strike()
        self._left -= 1
        if time.monotonic() > self._end:
            self._end += PATIENCE_S  # to close what is open
            raise TimeoutError("it runs on as if there had been no signal")
        super()._run_once()  # type: ignore[misc]  # asyncio's own


@pytest.fixture
def struck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """Runs ``mcad`` and sends it a signal in the n-th turn of its loop."""
    monkeypatch.setattr("mcad.cli.commands.run.start_logging", lambda level, form: None)

    def run(number: signal.Signals, turn: int, *args: str) -> Result:
        loop = Striking(number, turn)
        monkeypatch.setattr("asyncio.events.new_event_loop", lambda: loop)
        return CliRunner().invoke(main, args)

    yield run
    gc.collect()  # what asyncio lost is warned of here, not in another test


def with_login(folder: Path, url: str) -> str:
    """The path of a kubeconfig whose user logs in with a program, which takes some turns."""
    path = Path(kubeconfig(folder, url))
    api = "client.authentication.k8s.io/v1"
    given = {"apiVersion": api, "kind": "ExecCredential", "status": {"token": "t"}}
    plugin = {"apiVersion": api, "command": "echo", "args": [json.dumps(given)]}
    config = yaml.safe_load(path.read_text())
    config["users"][0]["user"] = {"exec": plugin | {"interactiveMode": "Never"}}
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("command", "led"), [(("run", "--http", "127.0.0.1:0"), False), (("ui", "--no-browser"), True)]
)
def test_a_signal_in_any_turn_of_its_start_ends_the_dispatcher_and_the_page(
    command: tuple[str, ...],
    number: signal.Signals,
    struck: Callable[..., Result],
    tmp_path: Path,
    *,
    led: bool,
) -> None:
    codes = {}
    with served(tutorial(led=led)) as url:
        args = (*command, "--kubeconfig", with_login(tmp_path, url))
        for turn in range(2, TURNS + 2):  # in the first one no handler is there yet
            codes[turn] = struck(number, turn, *args).exit_code
    assert {turn: code for turn, code in codes.items() if code != 0} == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_any_turn_of_its_start_ends_the_served_cluster(
    number: signal.Signals, struck: Callable[..., Result], tmp_path: Path
) -> None:
    path = tmp_path / "config"
    codes = {}
    for turn in range(2, TURNS + 2):
        codes[turn] = struck(number, turn, "demo", "--serve", "--kubeconfig", str(path)).exit_code
        assert not path.exists()
    assert {turn: code for turn, code in codes.items() if code != 0} == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_command_of_the_served_cluster_is_not_for_the_command(
    number: signal.Signals,
    struck: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ended(*_: object) -> int:
        return 7

    command = ("demo", "--serve", "--kubeconfig", str(tmp_path / "config"), "--", "true")
    monkeypatch.setattr("mcad.cli.commands.demo.run_with", ended)
    codes = [struck(number, 2, *command).exit_code]
    while codes[-1] != 7:
        codes.append(struck(number, len(codes) + 2, *command).exit_code)
    assert codes == [*[128 + number] * (len(codes) - 1), 7]
    assert len(codes) > 3, "the start takes some turns"


@pytest.mark.parametrize("args", [("get",), ("events", "a"), ("demo", "--pause", "60")])
def test_an_interruption_in_any_turn_ends_a_command(
    args: tuple[str, ...], struck: Callable[..., Result], tmp_path: Path
) -> None:
    with served(tutorial()) as url:
        config = ("--kubeconfig", with_login(tmp_path, url)) if args[0] != "demo" else ()
        codes = {
            turn: struck(signal.SIGINT, turn, *args, *config).exit_code
            for turn in range(1, 12)  # of a read there are no more
        }
    assert set(codes.values()) == {INTERRUPTED}


IMPORTING = """\
import os, signal, sys

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Strike())
sys.argv = ["mcad", "run", "--kubeconfig", {config!r}, "--http", "127.0.0.1:0"]
from mcad.cli.start import main
main()
"""


@pytest.mark.parametrize("module", ["click", "mcad.cli.main", "kubernetes", "aiohttp", "socket"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, TERMINATED), (signal.SIGINT, INTERRUPTED)]
)
def test_a_signal_while_the_dispatcher_is_imported_ends_it(
    module: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """By a handler: without one Linux drops SIGTERM for process 1 of a container."""
    with served(tutorial(led=False)) as url:
        program = IMPORTING.format(
            module=module, number=int(number), config=kubeconfig(tmp_path, url)
        )
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (code, b"")
