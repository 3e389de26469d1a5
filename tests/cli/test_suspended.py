"""A dispatcher whose process does not run for longer than its Lease lasts: a lid that is closed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from mcad.api.config import Config
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.controller.replica import Replica
from mcad.sim.clock import VirtualClock, run_virtually
from tests.cli.cluster import tutorial
from tests.cli.test_run import PATIENCE_S, running
from tests.serving import served

LEASE_S = 3
SHORT = (
    "--set",
    f"leaderElection={{leaseDuration: {LEASE_S}, renewDeadline: 2.5, retryPeriod: 0.4}}",
)
MCAD = (sys.executable, "-m", "mcad")
SAMPLES = Path(__file__).parents[2] / "samples"


def suspend(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Stop a process for longer than its lease lasts."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(LEASE_S + 0.5)
    process.send_signal(signal.SIGCONT)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``mcad demo --serve``, ready, and the path of its kubeconfig."""
    path = str(folder / "config")
    command = [*MCAD, "demo", "--serve", "--nodes", "3", "--kubeconfig", path, *SHORT]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "The cluster is ready. In another terminal:\n"
            yield process, path
        finally:
            process.terminate()


def test_the_embedded_cluster_takes_its_lease_back_and_says_so(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, config):
        for number in range(2):
            suspend(process)
            name = f"aw-{number + 1:02}"
            submit = ["submit", "-f", str(SAMPLES / f"{name}.yaml"), "--wait", "--timeout", "60s"]
            done = subprocess.run(
                [*MCAD, *submit, "--kubeconfig", config], capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr
        process.terminate()
        _, said = process.communicate()
    assert process.returncode == 0
    again = "warning: the lease kube-system/mcad-dispatcher of embedded is lost: "
    lines = said.splitlines()
    assert [line.startswith(again) for line in lines] == [True] * 2
    assert all(line.endswith("; the dispatcher of the demo takes it back") for line in lines)


def test_a_dispatcher_that_stands_alone_says_what_to_do_and_ends(tmp_path: Path) -> None:
    with served(tutorial(led=False)) as url, running(tmp_path, url, *SHORT) as mcad:
        mcad.wait_for("msg=synced")
        suspend(mcad.process)
        assert mcad.process.wait(PATIENCE_S) == 1
        last = mcad.log.splitlines()[-1]
    assert "cannot run" in last
    assert (
        "is lost: it was not renewed for 2.5 s; this process ends: start it again if none" in last
    )


def test_a_failure_of_the_dispatcher_ends_what_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the cluster would stay, and nothing would be dispatched."""

    async def run(replica: Replica, stop: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Replica, "run", run)

    used_on: list[str] = []

    async def serve() -> None:
        rng, clock = Random(1), VirtualClock()
        async with (
            embedded_cluster(clock, rng) as cluster,
            dispatching(cluster, Config(), rng) as client,
        ):
            await client.clock.sleep(3600)
            used_on.append("as if it ran")

    with pytest.raises(ZeroDivisionError):
        run_virtually(serve())
    assert not used_on
