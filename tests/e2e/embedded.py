"""``mcad demo --serve`` as a process, with unmodified kubectl: a stand-in for ``ControlPlane``."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip
from tests.e2e.process import MCAD

T = TypeVar("T")

LOOK_S = 0.05
END_S = 10.0


class Embedded:
    """A context manager; kubectl and plain GETs against the embedded API server."""

    def __init__(self, folder: Path, *args: str) -> None:
        self._kubectl = built_or_skip(binaries.ensure) / "kubectl"
        self._cache = folder / "kubectl-cache"
        self.kubeconfig = folder / "demo.kubeconfig"
        self._args = [*MCAD, "demo", "--serve", "--kubeconfig", str(self.kubeconfig), *args]
        self._log = folder / "demo.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Embedded:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._args, stdout=log, stderr=subprocess.STDOUT)
        self.wait_for(self.kubeconfig.exists, what="the demo's kubeconfig")
        self.url = self.wait_for(self._server, what="the address in the kubeconfig")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        code = self.stop()
        if kind is None:
            assert code == 0, self._log.read_text()

    def stop(self) -> int:
        """End it as Ctrl-C does; the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self._process.wait(END_S)

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        """What kubectl prints; without ``check``, what it complains of comes after that."""
        done = subprocess.run(
            [
                str(self._kubectl),
                f"--kubeconfig={self.kubeconfig}",
                f"--cache-dir={self._cache}",
                *args,
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if not check:
            return done.stdout + done.stderr
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout

    def request(self, method: str, path: str) -> tuple[int, dict[str, Any]]:
        """Status and decoded body of a read."""
        assert method == "GET"
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return answer.status, json.load(answer)

    def wait_for(self, predicate: Callable[[], T], timeout: float = 30, what: str = "") -> T:
        """The first true answer."""
        deadline = time.monotonic() + timeout
        while not (answer := predicate()):
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}"
            time.sleep(LOOK_S)
        return answer

    def _server(self) -> str:
        found = yaml.safe_load(self.kubeconfig.read_text() or "{}")
        clusters = found.get("clusters") or [{"cluster": {"server": ""}}]
        url: str = clusters[0]["cluster"]["server"]
        return url
