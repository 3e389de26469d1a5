"""``mcad top`` on a terminal of its own: it draws, follows, resizes, and gives everything back."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcad.kube.port import Request, Response
from tests.cli.cluster import appwrapper, deployment, kubeconfig
from tests.cli.conftest import Type
from tests.cli.test_server_figures import ROW
from tests.fakeapi import FakeApi, answer
from tests.serving import answering, served

PATIENCE_S = 20.0
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"  # the alternate screen
CODE = """\
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that keys become signals
from mcad.cli.main import main; main()"""


class Terminal:
    """A process on a pseudo terminal; what it has written and the modes it was given."""

    def __init__(
        self, *args: str, columns: int = 100, rows: int = 30, before: str = "", **env: str
    ) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        self.said = ""
        # These say the size of another terminal, and win over that of this one.
        inherited = {key: os.environ[key] for key in os.environ.keys() - {"COLUMNS", "LINES"}}
        self.process = subprocess.Popen(
            [sys.executable, "-c", before + CODE, *args],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            env=inherited | {"TERM": "xterm-256color"} | env,
        )

    def resize(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def read(self) -> None:
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                return
            self.said += data.decode(errors="replace")

    def wait_for(self, what: Callable[[str], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not what(self.said):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            self.read()

    def end(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said
            self.read()
        self.read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def terminal(*args: str, **options: Any) -> Iterator[Terminal]:
    opened = Terminal(*args, **options)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def config(api: FakeApi, tmp_path: Path) -> Iterator[str]:
    with served(api) as url:
        yield kubeconfig(tmp_path, url)


def is_drawn(said: str) -> bool:
    return "1 in line" in said and "Pending" in said


def assert_restored(term: Terminal) -> None:
    assert term.said.count(ENTER) == term.said.count(LEAVE) == 1
    assert term.said.index(ENTER) < term.said.index(LEAVE)
    assert termios.tcgetattr(term.slave) == term.modes


@pytest.mark.parametrize("how", [b"q", b"\x03", signal.SIGTERM, signal.SIGHUP])
def test_a_key_or_a_signal_leaves_and_the_terminal_is_as_before(
    how: bytes | signal.Signals, config: str
) -> None:
    with terminal("top", "--kubeconfig", config) as term:
        term.wait_for(is_drawn)
        assert termios.tcgetattr(term.slave) != term.modes
        if isinstance(how, bytes):
            term.type(how)
        else:
            term.process.send_signal(how)
        assert term.end() == 0
        assert_restored(term)


def is_as_wide(said: str, columns: int) -> bool:
    """Whether a screen was drawn whose rows are no longer, below the top one."""
    for screen in said.split("\x1b[1;1H")[1:]:
        rows = re.split(r"\x1b\[\d+;\d+H", screen)
        texts = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", row).rstrip("\r\n") for row in rows]
        if "2 in line" in screen and max(map(len, texts)) <= columns:
            return True
    return False


def test_it_follows_the_cluster_and_the_size(api: FakeApi, config: str) -> None:
    with terminal("top", "--kubeconfig", config, columns=100) as term:
        term.wait_for(is_drawn)
        wrapped = deployment("late", replicas=1, cpu="1500m", memory="1Gi")
        api.put("appwrappers", appwrapper("late", "uid-late", "07:59:30", wrapped))
        term.wait_for(lambda said: "2 in line" in said and "default/late" in said)

        assert not is_as_wide(term.said, 50)
        term.said = ""
        term.resize(50, 30)
        term.wait_for(lambda said: is_as_wide(said, 50))
        term.type(b"q")
        assert term.end() == 0


def test_suspending_gives_the_terminal_back_for_the_time(config: str) -> None:
    with terminal("top", "--kubeconfig", config) as term:
        term.wait_for(is_drawn)
        term.type(b"\x1a")  # Ctrl-Z
        term.wait_for(lambda said: LEAVE in said)
        assert termios.tcgetattr(term.slave) == term.modes
        term.said = ""
        term.process.send_signal(signal.SIGCONT)
        term.wait_for(lambda said: ENTER in said and is_drawn(said))
        term.type(b"q")
        assert term.end() == 0
        assert termios.tcgetattr(term.slave) == term.modes


def test_a_server_that_goes_away_is_told_on_the_screen(api: FakeApi, config: str) -> None:
    with terminal("top", "--kubeconfig", config) as term:
        term.wait_for(is_drawn)
        api.break_down()
        term.wait_for(lambda said: "the API server cannot be reached" in said)
        term.type(b"q")
        assert term.end() == 0
        assert_restored(term)


def test_a_dispatcher_that_goes_away_leaves_its_last_figures() -> None:
    total = {book: {"cpu": "2"} for book in ("allocatable", "used", "reserved", "free")}
    gone = False

    async def dispatcher(request: Request) -> Response:
        if gone:
            return answer(b"not synced yet; see /readyz\n", 503, "text/plain")
        if request.path.endswith("/capacity"):
            return answer({"nodes": [{}], "total": total, "unplaced": {}})
        return answer({"items": [ROW]})

    with answering(dispatcher) as url, terminal("top", "--server", url) as term:
        term.wait_for(is_drawn)
        gone = True
        term.said = ""
        term.wait_for(lambda said: "does not answer: not synced" in said)
        term.type(b"q")
        assert term.end() == 0


def test_a_failure_is_told_on_the_restored_terminal(api: FakeApi, config: str) -> None:
    api.objects["leases"].clear()
    api.deny("appwrappers")
    with terminal("top", "-A", "--kubeconfig", config) as term:
        assert term.end() == 1
        assert_restored(term)
        told = term.said.partition(LEAVE)[2]
        assert "error: you may not list appwrappers" in told
        assert len(told.splitlines()) == 1


def test_colours_are_for_terminals_without_no_color(config: str) -> None:
    with terminal("top", "--kubeconfig", config) as term:
        term.wait_for(is_drawn)
        term.type(b"q")
        assert term.end() == 0
        assert colours(term.said)
    with terminal("top", "--kubeconfig", config, NO_COLOR="1") as term:
        term.wait_for(is_drawn)
        term.type(b"q")
        assert term.end() == 0
        assert colours(term.said) == set()


def colours(said: str) -> set[str]:
    """The codes of colours, not those of bold, dim and reverse."""
    codes = {code for found in re.findall(r"\x1b\[([\d;]+)m", said) for code in found.split(";")}
    return {code for code in codes if code[0] in "349" and len(code) == 2 and code[1] != "9"}


def test_without_its_library_one_sentence_says_how_to_get_it(config: str) -> None:
    hidden = "import sys; sys.modules['textual'] = None\n"
    with terminal("top", "--kubeconfig", config, before=hidden) as term:
        assert term.end() == 1
        (line,) = term.said.splitlines()
        assert "needs libraries that are not installed: run `pip install '.[top]'`" in line


def test_on_a_dumb_terminal_it_is_printed_once(config: str) -> None:
    with terminal("top", "--kubeconfig", config, TERM="dumb") as term:
        assert term.end() == 0
        assert is_drawn(term.said)
        assert "\x1b" not in term.said


def test_without_a_terminal_it_is_printed_once(mcad: Type) -> None:
    for args in (["top"], ["top", "--once"]):
        result = mcad(*args)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "\x1b" not in result.stdout
        assert "AppWrappers: 1 in line, 0 on hold, 1 running" in result.stdout
        assert "cpu: 150m requested, 50m available, 100m missing." in result.stdout
        assert "<total>" in result.stdout
