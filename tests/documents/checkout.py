"""The repository as a new user has it: copied, in a HOME of its own, with empty caches."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.documents.session import ROOT

NETWORK = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables that say how packages are fetched. A user has them, too; all others are left out."""

READY = "The cluster is ready. In another terminal:\n"
BUILD_S = 900.0  # of `make demo` where nothing is installed yet


class Checkout:
    """A terminal in a copy of the repository: its HOME holds what the commands typed put there."""

    def __init__(self, folder: Path, kubectl: Path) -> None:
        self.root, self._home, tools = folder / "mcad", folder / "home", folder / "bin"
        self._home.mkdir()
        tools.mkdir()
        (tools / "kubectl").symlink_to(kubectl)
        _write_script(tools / "python3", f'exec {shlex.quote(_python())} "$@"')
        self._path = f"{tools}{os.pathsep}{os.defpath}"
        for name in _files():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)

    def type(self, kubeconfig: Path | None, command: str) -> tuple[int, str]:
        """Exit code and output of a command. Once `make demo` has been typed, `mcad` is a command,
        because `. .venv/bin/activate` was typed, too."""
        done = subprocess.run(
            ["bash", "-ec", f"{self._activation()}\n{command}"],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=BUILD_S,
            env=self._env() | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}),
        )
        return done.returncode, done.stdout

    @contextmanager
    def cluster(self, options: str) -> Iterator[Path]:
        """`mcad demo --serve` with these options in another terminal; yields its kubeconfig."""
        kubeconfig = self.root / "mcad-demo.kubeconfig"
        script = f"{self._activation()}\nexec mcad demo --serve {options}"
        with subprocess.Popen(
            ["bash", "-ec", script],
            cwd=self.root,
            stdout=subprocess.PIPE,
            text=True,
            env=self._env(),
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == READY
                yield kubeconfig
            finally:
                process.terminate()
        assert process.returncode == 0
        assert not kubeconfig.exists()

    def _activation(self) -> str:
        return ". .venv/bin/activate" if (self.root / ".venv").exists() else ":"

    def _env(self) -> dict[str, str]:
        network = {key: text for key, text in os.environ.items() if key.upper().startswith(NETWORK)}
        return network | {"PATH": self._path, "HOME": str(self._home)}


def _files() -> list[str]:
    """What belongs to the repository, changes that are not committed included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def _python() -> str:
    """The Python that the environment of the tests was made with."""
    return os.path.realpath(sys.executable)


def _write_script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
