"""Processes that start together and never outlive the process that started them."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
GRACE_SECONDS = 5.0


class ProcessDiedError(Exception):
    """A process that had to run ended."""


class ProcessGroup:
    """Named processes in one process group, each with a log file in `folder`.

    The group also keeps a terminal's Ctrl-C away from them: its owner decides the order in which
    they end.
    """

    def __init__(self, folder: Path, *, remove: bool) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._replaced: list[subprocess.Popen[bytes]] = []
        self._commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), *([str(folder)] if remove else [])],
            stdin=subprocess.PIPE,
            process_group=0,
        )

    def spawn(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._commands[name] = (list(command), dict(env))
        if name in self._processes:
            self._replaced.append(self._processes[name])
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command,
                env=env,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=self._guard.pid,
            )

    def respawn(self, name: str) -> None:
        """Start an ended process again with the same command, so at the same address."""
        command, env = self._commands[name]
        self.spawn(name, command, env)

    def __getitem__(self, name: str) -> subprocess.Popen[bytes]:
        return self._processes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._processes))

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def dead(self) -> list[str]:
        return [name for name, process in self._processes.items() if process.poll() is not None]

    def check(self) -> None:
        """Raise if a process ended, with the end of what it had to say."""
        for name in self.dead():
            code = self._processes[name].returncode
            raise ProcessDiedError(f"{name} ended with {code}:\n{tail(self.log(name))}")

    def end(self, names: Iterable[str], *, grace_seconds: float = GRACE_SECONDS) -> None:
        """SIGTERM to all of `names`, then SIGKILL to those that are still there."""
        self._end(
            [self._processes[name] for name in names if name in self._processes], grace_seconds
        )

    @staticmethod
    def _end(asked: Sequence[subprocess.Popen[bytes]], grace_seconds: float) -> None:
        for process in asked:
            process.terminate()
            process.send_signal(signal.SIGCONT)  # a stopped process cannot end
        for process in asked:
            try:
                process.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        """End what is left, and then the guard, which must be the last. One that a test gave up
        and started again by its name may be left, too."""
        self.end(self)
        self._end(self._replaced, GRACE_SECONDS)
        assert self._guard.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._guard.stdin as pipe:
            pipe.write(b"q")
        self._guard.wait()


def tail(log: Path, size: int = 3000) -> str:
    if not log.exists():
        return "(no log)"
    return log.read_bytes()[-size:].decode(errors="replace")


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that are free now. All are held until the last is found."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def listens(port: int) -> bool:
    """Whether a connection to this port of 127.0.0.1 is accepted."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
