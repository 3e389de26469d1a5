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
from tests.budget import SOAK, draw
from tests.cli.cluster import tutorial
from tests.cli.test_run import PATIENCE_S, running, started
from tests.serving import served

LEASE_S = 3
FAST = (
    "--set",
    f"leaderElection={{leaseDuration: {LEASE_S}, renewDeadline: 2.5, retryPeriod: 0.4}}",
)
PAUSE_S, SETTINGS = (30.0, ()) if SOAK else (LEASE_S + 0.5, FAST)
"""A soak pauses for twice the duration of a Lease by default; a push shortens both."""
PAUSES = 20
MOMENTS = draw(range(PAUSES), 1, "pauses")
MOMENT_S = 0.4  # between two moments of pauses: the first are in the start
NOTICED_S = 10.0  # until the process looks at its Lease again, on a busy machine
MCAD = (sys.executable, "-m", "mcad")
SAMPLES = Path(__file__).parents[2] / "samples"
NAME = "0001-aw-generic-deployment-1"
SAID = f"is lost: it was not renewed for {10 if SOAK else 2.5} s; this process ends: start it again"


def suspend(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Stop a process for longer than its lease lasts."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE_S)
    process.send_signal(signal.SIGCONT)


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``mcad demo --serve``, ready, and the path of its kubeconfig."""
    path = str(folder / "config")
    command = [*MCAD, "demo", "--serve", "--nodes", "3", "--kubeconfig", path, *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "The cluster is ready. In another terminal:\n"
            yield process, path
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def led_by_none(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kubeconfig of a cluster without a dispatcher."""
    with serving(tmp_path_factory.mktemp("cluster"), "--no-dispatcher") as (_, config):
        yield config


def dispatch(config: str) -> None:
    """An AppWrapper is dispatched, and then deleted."""
    submit = ["submit", "-f", str(SAMPLES / "aw-01.yaml"), "--wait", "--timeout", "60s"]
    for command in (submit, ["cancel", NAME]):
        done = subprocess.run(
            [*MCAD, *command, "--kubeconfig", config], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_embedded_cluster_takes_its_lease_back_and_says_so(tmp_path: Path) -> None:
    pauses = max(2, len(MOMENTS))
    with serving(tmp_path, *SETTINGS) as (process, config):
        for _ in range(pauses):
            suspend(process)
            dispatch(config)
        process.terminate()
        _, said = process.communicate()
    assert process.returncode == 0
    again = "warning: the lease kube-system/mcad-dispatcher of embedded is lost: "
    lines = said.splitlines()
    assert [line.startswith(again) for line in lines] == [True] * pauses
    assert all(line.endswith("; the dispatcher of the demo takes it back") for line in lines)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_dispatcher_that_stands_alone_dispatches_or_says_why_it_ends(
    led_by_none: str, tmp_path: Path, moment: int
) -> None:
    with started("--kubeconfig", led_by_none, *SETTINGS, log=tmp_path / "log") as mcad:
        time.sleep(moment * MOMENT_S)
        suspend(mcad.process)
        try:
            code = mcad.process.wait(NOTICED_S)
        except subprocess.TimeoutExpired:  # it did not lead yet
            dispatch(led_by_none)
            assert mcad.end()[0] == 0
        else:
            assert code == 1
            assert SAID in mcad.log.splitlines()[-1]


def test_a_dispatcher_that_stands_alone_says_what_to_do_and_ends(tmp_path: Path) -> None:
    with served(tutorial(led=False)) as url, running(tmp_path, url, *SETTINGS) as mcad:
        mcad.wait_for("msg=synced")
        suspend(mcad.process)
        assert mcad.process.wait(PATIENCE_S) == 1
        last = mcad.log.splitlines()[-1]
    assert "cannot run" in last
    assert SAID in last


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
