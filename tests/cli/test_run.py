"""``mcad run`` as a process of its own at an API server behind a real port."""

import gc
import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcad.api.crd import crds
from mcad.cli.commands import run
from mcad.cli.main import main
from mcad.controller.runtime import EVENT_WRITERS
from mcad.kube.kinds import CRDS
from tests.cli.cluster import appwrapper, deployment, kubeconfig, tutorial
from tests.cli.embedded import wait_for
from tests.fakeapi import GROUP, FakeApi, hang, refuse
from tests.serving import free_port, served

PATIENCE_S = 20.0  # for a process on a busy machine to start


class Running:
    """The process and what it has said so far."""

    def __init__(self, *options: str, log: Path) -> None:
        command = [sys.executable, "-c", "from mcad.cli.main import main; main()", "run"]
        self._log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [*command, "--http", "127.0.0.1:0", *options], stderr=stderr
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_for(self, pattern: str) -> str:
        """The first group of a pattern, once it is in the log."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.log):
                return found[1] if found.groups() else found[0]
            assert self.process.poll() is None, self.log
            time.sleep(0.02)
        raise AssertionError(f"no {pattern} in {self.log}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Exit code, and the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S), time.monotonic() - began


@contextmanager
def running(folder: Path, url: str, *options: str) -> Iterator[Running]:
    config = kubeconfig(folder, url)
    with started("--kubeconfig", config, *options, log=folder / "log") as process:
        yield process


@contextmanager
def started(*options: str, log: Path) -> Iterator[Running]:
    """``mcad run`` with these options; it is killed at the end."""
    process = Running(*options, log=log)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_serves_and_ends_when_told(tmp_path: Path) -> None:
    with served(tutorial(led=False)) as url, running(tmp_path, url) as mcad:
        address = mcad.wait_for(r"msg=listening http=(127\.0\.0\.1:\d+)")
        mcad.wait_for("msg=synced")
        assert get(f"http://{address}/healthz") == (200, "ok\n")
        assert get(f"http://{address}/readyz") == (200, "ok\n")
        assert "mcad_" in get(f"http://{address}/metrics")[1]
        _compare_figures(kubeconfig(tmp_path, url), address)
        code, seconds = mcad.end()
        assert (code, seconds < 5) == (0, True)
        assert all(
            re.match(r"ts=\S+ level=\w+ logger=\S+ msg=", li) for li in mcad.log.splitlines()
        )
        assert "msg=stopped" in mcad.log.splitlines()[-1]


def test_it_ends_in_time_when_the_last_writes_are_not_answered(tmp_path: Path) -> None:
    """Events and the goodbye to the Lease; a second of the five is left for a slow machine."""
    api = tutorial(led=False)
    for number in range(2 * EVENT_WRITERS):  # more Events than can be under way
        item = deployment(f"large-{number}", replicas=9, cpu="2", memory="1Gi")
        api.put("appwrappers", appwrapper(f"large-{number}", f"uid-{number}", "07:00:00", item))
    api.fail_always("POST", "/events$", hang)
    with served(api) as url, running(tmp_path, url) as mcad:
        mcad.wait_for("msg=synced")
        wait_for(lambda: len(api.seen("POST", "/events$")) >= EVENT_WRITERS, "Events are written")
        api.fail_always("PATCH", "/leases/", hang)
        code, seconds = mcad.end()
        assert (code, seconds < 4) == (0, True), (seconds, mcad.log)
        assert "lease not released" in mcad.log
        assert "msg=stopped" in mcad.log.splitlines()[-1]


def test_what_is_left_at_the_end_is_hidden_from_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look at all of it once more: 0.7 s with 10,000 AppWrappers and 50,000 pods."""
    did: list[str] = []

    async def work(_: object) -> None:
        did.append("work")

    monkeypatch.setattr(run, "_run_until_signal", work)
    monkeypatch.setattr(gc, "freeze", lambda: did.append("hide"))
    monkeypatch.setattr(run, "start_logging", lambda level, form: None)
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    assert CliRunner().invoke(main, ["run", "--kubeconfig", config]).exit_code == 0
    assert did[-2:] == ["work", "hide"]


def _compare_figures(config: str, address: str) -> None:
    """What the process answers is what is counted anew from the cluster."""
    name = "0002-aw-generic-deployment-2"
    for command in (["queue"], ["get"], ["capacity"], ["describe", name], ["get", name]):
        options = [*command, "-o", "json", "--kubeconfig", config]
        asked = CliRunner().invoke(main, [*options, "--server", address])
        counted = CliRunner().invoke(main, options)
        assert (asked.exit_code, counted.exit_code) == (0, 0), asked.output + counted.output
        told, found = json.loads(asked.stdout), json.loads(counted.stdout)
        if command[0] == "describe":  # the rest of the page is not the dispatcher's to tell
            told, found = told["appwrapper"], found["appwrapper"]
        assert told == found
    unknown = ["describe", "x", "--kubeconfig", config, "--server", address]
    assert CliRunner().invoke(main, unknown).exit_code == 4


def test_a_second_instance_at_the_same_port_is_told_so(tmp_path: Path) -> None:
    with served(tutorial(led=False)) as url, running(tmp_path, url) as mcad:
        address = mcad.wait_for(r"msg=listening http=(127\.0\.0\.1:\d+)")
        folder = tmp_path / "other"
        folder.mkdir()
        with running(folder, url, "--http", address) as second:
            assert second.process.wait(PATIENCE_S) == 1
        assert f"cannot listen on {address}" in second.log
        assert "choose another --http" in second.log
        assert mcad.end(signal.SIGINT)[0] == 0


def test_a_missing_crd_is_told_and_waited_for(tmp_path: Path) -> None:
    api = tutorial(led=False)
    api.served = tuple(one for one in api.served if one.group != GROUP)
    with served(api) as url, running(tmp_path, url) as mcad:
        line = mcad.wait_for("(.*AppWrappers are not installed.*)")
        assert 'remedy="mcad crd | kubectl apply --server-side -f -"' in line
        mcad.wait_for("msg=listening")
        code, seconds = mcad.end()
        assert (code, seconds < 5) == (0, True)


def put_crd(api: FakeApi, *, right: bool) -> None:
    crd = crds()[0]
    if not right:
        del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    api.served += (CRDS,)
    api.put(CRDS.plural, crd)


MISMATCH = (
    "the installed CRD appwrappers.workload.codeflare.dev is not the one of this version: version "
    "v1beta1: spec: is missing; install the right one with `mcad crd | kubectl apply --server-side "
    "-f -`, or with `helm upgrade`"
)


@pytest.mark.parametrize("right", [True, False])
def test_a_crd_that_comes_later_is_compared_before_anything_is_served(
    right: bool, tmp_path: Path
) -> None:
    api = tutorial(led=False)
    appwrappers = tuple(one for one in api.served if one.group == GROUP)
    api.served = tuple(one for one in api.served if one.group != GROUP)
    with served(api) as url, running(tmp_path, url) as mcad:
        mcad.wait_for("watch fails.* kind=appwrappers .*AppWrappers are not installed")
        put_crd(api, right=right)
        api.served += appwrappers
        if right:
            address = mcad.wait_for(r"msg=listening http=(127\.0\.0\.1:\d+)")
            queue = f"http://{address}/api/v1/queue"
            wait_for(lambda: "0002-aw" in get(queue)[1], "the AppWrapper is in line")
            assert mcad.end()[0] == 0
            return
        assert mcad.process.wait(PATIENCE_S) == 1
        last = mcad.log.splitlines()[-1]
        assert "cannot run" in last
        assert f'error="{MISMATCH}"' in last
    asked = [one for one in api.requests if one.path.endswith("/appwrappers")]
    assert {one.params.get("limit") for one in asked} == {"1"}  # looked whether there are any
    patched = [one.path for one in api.requests if one.method == "PATCH"]
    assert not [path for path in patched if "/leases/" not in path]


def test_a_crd_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    api = tutorial(led=False)
    put_crd(api, right=False)
    api.deny(CRDS.plural)
    with served(api) as url, running(tmp_path, url) as mcad:
        line = mcad.wait_for("(.*the installed CRD cannot be compared.*)")
        assert "level=warning" in line
        assert "mcad rbac | kubectl apply -f -" in line
        mcad.wait_for("msg=synced")
        assert mcad.end()[0] == 0


@pytest.mark.parametrize(
    "case",
    [
        ((), lambda api: api.deny("nodes"), "with `mcad rbac | kubectl apply -f -`"),
        ((), lambda api: put_crd(api, right=False), MISMATCH),
        ((), lambda api: api.fail_always("*", "", refuse(401)), "does not accept your credentials"),
        (("--set", "fit=none"), None, "--set fit=none: fit:"),
        (("--context", "nope"), None, "look at it with `kubectl config get-contexts`"),
    ],
    ids=["forbidden", "another CRD", "unauthorized", "setting", "context"],
)
def test_a_start_that_fails_is_told_in_one_line(
    case: tuple[tuple[str, ...], Callable[[FakeApi], None] | None, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, change, words = case
    monkeypatch.setattr("mcad.cli.commands.run.start_logging", lambda level, form: None)
    api = tutorial(led=False)
    if change is not None:
        change(api)
    with served(api) as url:
        config = kubeconfig(tmp_path, url)
        result = CliRunner().invoke(main, ["run", "--kubeconfig", config, *options])
    assert (result.exit_code, result.output) == (1, "")
    (failure,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert failure.getMessage().startswith("cannot run error=")
    assert words in failure.getMessage()
    assert failure.exc_info is None


def test_a_signal_ends_the_search_for_a_server(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with running(tmp_path, url, "--log-level", "debug") as mcad:
        mcad.wait_for("msg=starting")
        code, seconds = mcad.end()
        assert (code, seconds < 3) == (0, True)
