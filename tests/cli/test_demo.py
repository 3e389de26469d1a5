"""``mcad demo``: the tours in virtual time, their results, and the cluster that is served."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
import yaml
from click.testing import CliRunner

from mcad.api.config import Config
from mcad.api.labels import VISIBILITY_GROUP
from mcad.cli import invocation
from mcad.cli.commands.demo import load_shares, load_tutorial
from mcad.cli.demo_cluster import quota_tour, tutorial_objects
from mcad.cli.demo_cluster.cluster import embedded_cluster, leading
from mcad.cli.demo_cluster.quota_tour import QuotaDemo
from mcad.cli.demo_cluster.tutorial import DemoFailedError, DemoOutput, TutorialDemo
from mcad.cli.errors import show, warn
from mcad.cli.main import main
from mcad.cli.pages.colours import PLAIN
from mcad.client.errors import McadError
from mcad.kube.port import Request, Response
from mcad.sim.clock import VirtualClock, run_virtually
from tests.cli.embedded import Embedded, wait_for

MCAD = (sys.executable, "-m", "mcad")
CLI = (*MCAD, "demo")
NOT_YET = (
    "warning: no dispatcher is running: nothing is dispatched until one is started\n"  # nor was it
)
SAMPLES = Path(__file__).parents[2] / "samples"


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A process and its output."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def play(*, cpu: str = tutorial_objects.NODE_CPU) -> list[str]:
    """The output of the tutorial, in virtual time, on a node of that many CPUs."""
    said: list[str] = []

    async def work() -> None:
        rng = Random(1)
        async with embedded_cluster(VirtualClock(), rng) as cluster:
            load_tutorial(cluster)
            if cpu != tutorial_objects.NODE_CPU:
                node = cluster.registry.kind("v1", "Node")
                cluster.registry.delete(node, ("", tutorial_objects.NODE))
                cluster.add_node(
                    tutorial_objects.NODE, cpu=cpu, memory=tutorial_objects.NODE_MEMORY
                )
            async with leading(cluster, Config(), rng) as (client, figures):
                await TutorialDemo(client, figures, DemoOutput(said.append, PLAIN, 4.0)).run()

    run_virtually(work())
    return said


def test_the_tour_shows_what_happens() -> None:
    text = "\n".join(play())
    assert "cpu        2             1750m   0          250m" in text
    assert "cpu: 150m requested, 50m available, 100m missing." in text
    assert f"  If default/{tutorial_objects.FIRST} ends." in text, "what would start the second"
    assert text.index(f"2/5  Submit {tutorial_objects.FIRST}") < text.index(
        f"3/5  Submit {tutorial_objects.SECOND}"
    )
    last = text[text.index("5/5") :]
    assert f"{tutorial_objects.SECOND}   <none>     Running" in last


def test_the_same_seed_tells_the_same() -> None:
    assert play() == play()


@pytest.mark.parametrize(
    ("cpu", "broken"),
    [
        ("4", "the second AppWrapper waits"),  # enough for both
        ("1850m", "two pods of the first AppWrapper run"),  # not enough for the first
    ],
)
def test_another_result_than_announced_is_an_error(cpu: str, broken: str) -> None:
    with pytest.raises(DemoFailedError, match=broken):
        play(cpu=cpu)


# -- the tour about quota -----------------------------------------------------------------------


def share(day: type[QuotaDemo] = QuotaDemo) -> str:
    """The output of the tour about quota."""
    said: list[str] = []
    config = Config(quotaEnabled=True)

    async def work() -> None:
        rng = Random(1)
        async with embedded_cluster(VirtualClock(), rng) as cluster:
            load_shares(cluster)
            async with leading(cluster, config, rng) as (client, figures):
                await day(client, figures, DemoOutput(said.append, PLAIN, 4.0)).run()

    run_virtually(work())
    return "\n".join(said)


def test_the_quota_tour_shows_borrowing_and_the_return_of_quota() -> None:
    text = share()
    assert (
        "teams     research   cpu        4         6      0         0          2          0      0"
        in text
    )
    assert (
        "teams     product    cpu        3         0      0         0          0          2      0"
        in text
    )
    assert "cpu: 3 requested, 7 of 8 used.\n      Borrowing there: research (2)." in text
    assert 'Did you mean "research"?' in text
    last = text[text.index("5/5") :]
    assert (
        "teams     product    cpu        3         3      0         0          0          0      0"
        in last
    )


def test_the_pages_show_what_is_printed_while_product_waits() -> None:
    """The blocks of docs/use/quotas.md and of README.md, line by line."""
    looks: list[str] = []

    class Look(QuotaDemo):
        async def _late(self) -> None:
            await super()._late()
            looks.extend([*await self._tree(), *await self._node("research")])

    share(Look)
    printed = "\n".join(looks)
    root = SAMPLES.parent
    for page, commands in (
        (root / "docs/use/quotas.md", ("$ mcad quota\n", "$ mcad quota research\n")),
        (root / "README.md", ("$ mcad quota\n",)),
    ):
        text = page.read_text()
        for command in commands:
            block = re.split(r"\n(?=\$ |```)", text[text.index(command) :])[0]
            assert block in printed, page


def test_without_a_borrower_the_quota_tour_has_another_result() -> None:
    class Thrifty(QuotaDemo):
        async def _submit(self, obj: dict[str, Any]) -> None:
            if obj["metadata"]["name"] == quota_tour.BORROWER:
                obj = quota_tour.appwrapper(quota_tour.BORROWER, "product", 0)
            await super()._submit(obj)

    with pytest.raises(DemoFailedError):
        share(Thrifty)


def test_the_quota_tour_uses_the_samples() -> None:
    found = [
        obj
        for path in sorted((SAMPLES / "quota").iterdir())
        for obj in yaml.safe_load_all(path.read_text())
    ]
    told = [
        quota_tour.appwrapper(quota_tour.BORROWER, "research", 2),
        quota_tour.appwrapper(quota_tour.OPS, "ops", 1),
        quota_tour.appwrapper(quota_tour.PRODUCT, "product", 3),
        quota_tour.appwrapper(quota_tour.RESEARCH, "research", 4),
        quota_tour.lost(),
        *quota_tour.subtrees(),
    ]
    assert found == told


def test_the_embedded_cluster_forwards_to_the_dispatcher(tmp_path: Path) -> None:
    """Figures are those of the dispatcher; nothing but the API server is answered by it."""
    with Embedded(tmp_path).running() as cluster:
        root = f"/apis/{VISIBILITY_GROUP}"
        forwarded: list[str] = []
        real = cluster.on_loop(lambda one: one.registry.aggregated[VISIBILITY_GROUP])

        async def counted(request: Request) -> Response:
            forwarded.append(request.path)
            return await real(request)

        cluster.on_loop(lambda one: one.registry.aggregated.update({VISIBILITY_GROUP: counted}))
        wait_for(lambda: cluster.mcad("capacity").exit_code == 0, "the dispatcher answers")
        said = cluster.mcad("capacity")
        assert (said.exit_code, said.stderr) == (0, "")
        assert f"{root}/v1beta1/capacityreports/cluster" in forwarded
    with Embedded(tmp_path).running(dispatches=False) as cluster:
        said = cluster.mcad("capacity")
        assert (said.exit_code, said.stdout) == (3, "")
        assert "503 Service Unavailable" in said.stderr


def test_a_kubeconfig_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("mine")
    done = run(*CLI, "--serve", "--kubeconfig", str(mine))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "exists; remove it, or choose another file" in done.stderr
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serving_ends_with_a_signal_and_takes_its_kubeconfig_along(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "config"
    args = [*CLI, "--serve", "--nodes", "3", "--gpu", "8", "--kubeconfig", str(path)]
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "The cluster is ready. In another terminal:\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        listed = run(*MCAD, "capacity", "--total", "--kubeconfig", str(path)).stdout
        page = next(line.strip() for line in process.stdout if "/?token=" in line)
        with build_opener(HTTPCookieProcessor()).open(page) as answer:
            shown = answer.read().decode()
        process.send_signal(number)
        assert process.wait() == 0
    gpus = next(line.split() for line in listed.splitlines() if "nvidia.com/gpu" in line)
    assert gpus == ["<total>", "nvidia.com/gpu", "24", "0", "0", "24"]
    assert "Nodes (3)" in shown
    assert not path.exists()


def test_the_dispatcher_runs_over_http_against_the_embedded_cluster(tmp_path: Path) -> None:
    path = tmp_path / "config"
    serve = [*CLI, "--serve", "--no-dispatcher", "--kubeconfig", str(path)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        dispatch = [*MCAD, "run", "--kubeconfig", str(path), "--http", "127.0.0.1:0"]
        with subprocess.Popen(dispatch, stderr=subprocess.DEVNULL) as dispatcher:
            submit = ["submit", "-f", str(SAMPLES / "aw-01.yaml"), "--wait", "--timeout", "60s"]
            done = run(*MCAD, *submit, "--kubeconfig", str(path))
            dispatcher.send_signal(signal.SIGTERM)
            assert dispatcher.wait() == 0
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    assert (done.returncode, done.stderr.replace(NOT_YET, "")) == (0, "")
    assert "dispatched" in done.stdout


def serve(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """``mcad demo --serve -- command``."""
    config = str(folder / "config")
    return run(*CLI, "--serve", "--kubeconfig", config, "--", *command, timeout=60)


def test_a_command_is_run_with_the_cluster_and_its_end_is_the_end(tmp_path: Path) -> None:
    ask = f"{sys.executable} -m mcad get && exit 3"  # with the KUBECONFIG of its environment
    done = serve(tmp_path, "sh", "-c", ask)
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        done.stderr == "No AppWrappers found in namespace default.\n"
    )  # and a dispatcher is running
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (("nothing",), 127, "error: cannot run nothing: No such file or directory\n"),
        (("sh", "-c", "kill -9 $$"), 137, ""),
    ],
)
def test_the_code_of_a_command_is_that_of_a_shell(
    command: tuple[str, ...], code: int, told: str, tmp_path: Path
) -> None:
    done = serve(tmp_path, *command)
    assert (done.returncode, done.stderr) == (code, told)


def test_a_command_is_ended_with_the_cluster(tmp_path: Path) -> None:
    args = [*CLI, "--serve", "--kubeconfig", str(tmp_path / "config")]
    sleeper = ["--", "sh", "-c", "echo begun; exec sleep 60"]
    with subprocess.Popen([*args, *sleeper], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("args", "words"),
    [(("--", "true"), "a COMMAND needs --serve"), (("--nodes", "3"), "--gpu need --serve")],
)
def test_some_options_need_a_cluster_that_stays(args: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(main, ["demo", *args])
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("args", "words"), [((), "That was the tutorial"), (("quota",), "5/5  Delete aw-borrower")]
)
def test_each_tour_is_a_command(args: tuple[str, ...], words: str) -> None:
    done = run(*CLI, *args, "--pause", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


@pytest.mark.parametrize(
    "case",
    [
        ("/opt/venv/bin/mcad", "/opt/venv/bin", "mcad"),
        ("/opt/venv/bin/mcad", "", "/opt/venv/bin/mcad"),
        ("{here}/.venv/bin/mcad", "", ".venv/bin/mcad"),
        ("{here}/a b/mcad", "", "'a b/mcad'"),
        ("/opt/bin/kubectl-mcad", "", "kubectl mcad"),
        ("/opt/site-packages/mcad/__main__.py", "", "{python} -m mcad"),
        ("/opt/site-packages/pytest/__main__.py", "", "mcad"),
    ],
    ids=lambda case: case[0],
)
def test_hints_can_be_pasted(
    case: tuple[str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script, on_path, told = case
    python = tmp_path / ".venv" / "bin" / "python"
    found = {"mcad": f"{on_path}/mcad"} if on_path else {}
    monkeypatch.setattr(shutil, "which", found.get)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sys, "argv", [script.format(here=tmp_path)])
    monkeypatch.chdir(tmp_path)
    typed = told.format(python=".venv/bin/python")
    assert invocation.invocation() == typed
    show(McadError("see `mcad get -A`"))
    warn("run `mcad run`")
    said = f"error: see `{typed} get -A`\nwarning: run `{typed} run`\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("args", [("demo",), ("demo", "--serve"), ("demo", "--help")])
def test_without_its_libraries_one_sentence_says_how_to_get_them(args: tuple[str, ...]) -> None:
    done = _without_extra(*args)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: `")
    assert line.endswith(
        "demo` needs libraries that are not installed: run `pip install '.[demo]'` in the source "
        "directory of mcad"
    )


def test_without_its_libraries_everything_else_works_and_completion_is_silent() -> None:
    assert _without_extra("--help").returncode == 0
    assert _without_extra("run", "--help").returncode == 0
    assert _without_extra("get", "--help").returncode == 0
    words = {"_MCAD_COMPLETE": "bash_complete", "COMP_WORDS": "mcad demo --", "COMP_CWORD": "2"}
    assert _without_extra(**words).stderr == ""


def _without_extra(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules |= dict.fromkeys(('cel_expr_python', 'textual', 'rich')); "
    code += "from mcad.cli.main import main; "
    return run(sys.executable, "-c", f"{code}main()", *args, env=os.environ | env)


def make_demo(folder: Path, pip: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """``make demo`` with stand-ins for Python and pip, which tell when they are run."""
    for name in ("Makefile", "requirements-demo.lock", "deploy/install-locked.sh"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    tool = 'echo "RUN $(basename $0) $1 $2"\n'
    make_venv = f"mkdir -p .venv/bin; cp python .venv/bin/; cp pip .venv/bin/\n{tool}"
    for name, does in (("python", tool), ("pip", pip), ("py", make_venv)):
        (folder / name).write_text(f"#!/bin/sh\n{does}")
        (folder / name).chmod(0o755)
    command = ["make", "--no-print-directory", "demo", "PYTHON=./py"]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    return subprocess.run(command, cwd=folder, text=True, check=False, **piped)


ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "requirements-demo.lock").read_text().count("==")
PIP = """\
echo "Collecting aiohttp==3.14.0 (from -r x (line 7))"
echo "  Downloading aiohttp-3.14.0.whl (1.7 MB)"
echo "Requirement already satisfied: click>=8 in /there"
echo "Installing collected packages: aiohttp"
echo "WARNING: a notice" >&2
"""


def test_make_demo_says_what_it_does_before_it_does_it(tmp_path: Path) -> None:
    done = make_demo(tmp_path, PIP)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "Making .venv with ./py...",
        "RUN py -m venv",
        f"Installing {PACKAGES} packages into it; this takes about a minute, once...",
        "Starting the demo: .venv/bin/python -m mcad demo",
        "RUN python -m mcad",
    ]
    assert done.stderr.splitlines() == ["Fetching packages...", "Installing packages..."]


def test_after_make_demo_mcad_is_a_command(tmp_path: Path) -> None:
    make_demo(tmp_path, PIP)
    command = tmp_path / ".venv" / "bin" / "mcad"
    first, *rest = command.read_text().splitlines()
    assert first == f"#!{tmp_path}/.venv/bin/python"
    script = tmp_path / "typed"
    script.write_text("\n".join(rest).replace(str(tmp_path), str(ROOT)))
    assert os.access(command, os.X_OK)
    assert run(sys.executable, str(script), "version").stdout.startswith("mcad ")


def test_on_a_terminal_a_line_shows_how_far_the_installation_is(tmp_path: Path) -> None:
    master, slave = os.openpty()
    try:
        assert make_demo(tmp_path, PIP, stderr=slave).returncode == 0
        said = os.read(master, 65536).decode()
    finally:
        os.close(master)
        os.close(slave)
    lines = said.replace("\r", "").split("\x1b[K")
    assert lines == [
        "",
        f"Fetching 1 of {PACKAGES} packages: aiohttp",
        f"Fetching 2 of {PACKAGES} packages: click",
        f"Installing {PACKAGES} packages...",
        "",
    ]


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $PPID; kill -9 $$"])
def test_what_pip_said_is_shown_if_it_fails(end: str, tmp_path: Path) -> None:
    done = make_demo(tmp_path, f"{PIP}echo 'ERROR: no matching distribution' >&2\n{end}\n")
    assert done.returncode == 2
    assert "ERROR: no matching distribution" in done.stderr
    assert "Starting the demo" not in done.stdout
    assert not (tmp_path / ".venv" / "runtime").exists()
