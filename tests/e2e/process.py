"""The dispatcher as users run it: its own process, with the rights that ``mcad rbac`` describes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypedDict

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.processes import tail

NAMESPACE = "mcad-system"
ACCOUNT = "mcad"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
TREE = Path(__file__).parents[2]
"""What is tested, also where another tree is installed."""
STOP_S = 5
"""Seconds from SIGTERM to the end, as promised."""
MCAD = (sys.executable, "-m", "mcad")


def mcad(*args: str, kubeconfig: Path | None = None, check: bool = True) -> str:
    """Run the CLI; returns what it prints."""
    flags = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    done = subprocess.run(
        [*MCAD, *args, *flags], capture_output=True, text=True, timeout=60, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"mcad {' '.join(args)}: {done.returncode}: {done.stderr}")
    return done.stdout


@cache
def printed(*args: str) -> str:
    """What the CLI prints without a cluster: manifests. The same each time, so it runs once."""
    return mcad(*args)


def install(plane: ControlPlane) -> Path:
    """CRD and RBAC as the CLI prints them; returns the kubeconfig of the ServiceAccount."""
    if not plane.kinds:
        plane.apply(printed("crd"))
    plane.wait_for_crd("appwrappers.workload.codeflare.dev")
    if not plane.kinds:  # the garbage collector looks for new kinds every 30 s only
        plane.restart("kube-controller-manager")
    token = plane.service_account(NAMESPACE, ACCOUNT)
    plane.apply(printed("rbac", "--namespace", NAMESPACE, "--service-account", ACCOUNT))
    return plane.kubeconfig_for_token(token, ACCOUNT)


SHORT_LEASE = ("--set", "leaderElection={leaseDuration: 3, renewDeadline: 2.6, retryPeriod: 0.4}")
"""For tests that kill a leader and wait for the next one. A renewal may take more than two seconds
where all tests run at the same time."""


class Program(TypedDict):
    """What a dispatcher is started with instead of ``python -m mcad``."""

    module: str
    env: Mapping[str, str]


def counts_every(seconds: int) -> Program:
    """The dispatcher with pod counts in status that are so old at most."""
    return {"module": "tests.e2e.pod_counts", "env": {"POD_COUNTS_S": str(seconds)}}


class Dispatcher:
    """One ``mcad run``; a context manager that ends it with SIGTERM and expects a clean end."""

    def __init__(
        self,
        plane: ControlPlane,
        kubeconfig: Path,
        *args: str,
        env: Mapping[str, str] | None = None,
        name: str = "mcad",
        module: str = "mcad",
    ) -> None:
        """``name`` tells processes of one control plane apart; ``module`` is what Python runs."""
        self._plane = plane
        self._name = name
        self._env = {"PYTHONPATH": str(TREE), **(env or {})}
        program = [sys.executable, "-m", module]
        self._args = [*program, "run", "--kubeconfig", str(kubeconfig)]
        self._args += ["--http", "127.0.0.1:0", *args]
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0  # before the present life
        self.url = ""

    def start(self, *, ready: bool = True, leads: bool = True) -> Dispatcher:
        """Start it and wait until it is synced; without ``leads``, a standby will do.

        After a kill no process leads until the lease of the dead has run out. Without ``ready``
        this does not even wait until it listens; ``wait_until_it_listens`` does."""
        before = self.log()
        self._plane.spawn(self._name, self._args, self._env)
        self._process = self._plane.process(self._name)
        self._said = len(before)
        if ready:
            self.wait_until_it_listens()
            self._plane.wait_for(lambda: self._is_ready(leads=leads), what="readiness")
        return self

    def wait_until_it_listens(self) -> None:
        """Until its port is known."""
        found = self._plane.wait_for(
            lambda: self._lives() and re.search(r"http=(\S+)", self.log()[self._said :]),
            what="the address of the HTTP port in the log",
        )
        self.url = f"http://{found.group(1)}"

    def _is_ready(self, *, leads: bool) -> bool:
        code, text = self.get("/readyz")
        return code == 200 and not (leads and text.startswith("standby"))

    @property
    def pid(self) -> int:
        """Of the running process."""
        return self._alive().pid

    def end_of_life(self, timeout: float) -> int:
        """The exit code of a process that ends by itself."""
        code = self._alive().wait(timeout=timeout)
        self._process = None
        return code

    def get(self, path: str) -> tuple[int, str]:
        """A GET at the HTTP port; 0 if there is no listener."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        process = self._alive()
        process.kill()
        process.wait(timeout=10)
        self._process = None

    def stop(self) -> int:
        """SIGTERM; the exit code, within ``STOP_S``."""
        process = self._alive()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired as error:
            end = tail(self._plane.log(self._name))
            raise AssertionError(f"it still runs {STOP_S} s after SIGTERM:\n{end}") from error
        self._process = None
        return code

    def log(self) -> str:
        """Everything that it said so far."""
        path = self._plane.log(self._name)
        return path.read_text(errors="replace") if path.exists() else ""

    def __enter__(self) -> Dispatcher:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._process is None:
            return
        code = self.stop()
        if kind is None and code != 0:
            raise AssertionError(f"mcad run ended with {code}:\n{self.log()[-4000:]}")

    def _lives(self) -> bool:
        """Always true: waiting for a dead process is an error."""
        code = self._alive().poll()
        if code is not None:
            raise AssertionError(f"mcad run ended with {code}:\n{self.log()[-4000:]}")
        return True

    def _alive(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AssertionError("mcad run was not started")
        return self._process
