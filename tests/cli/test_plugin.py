"""``kubectl mcad``: the plugin's name in its messages, and what kubectl is given to complete it."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from mcad.cli import start
from mcad.cli.main import COMMANDS
from mcad.cli.plugin import complete
from tests.cli.cluster import kubeconfig, tutorial
from tests.serving import served

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Offered:
    """The answer to kubectl for the words after ``kubectl mcad``."""

    def answer(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-mcad", *words])
        complete()
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.splitlines()

    return answer


def test_console_scripts_lead_to_the_program() -> None:
    scripts = {one.name: one for one in entry_points(group="console_scripts") if "mcad" in one.name}
    assert scripts["mcad"].load() is scripts["kubectl-mcad"].load() is start.main
    assert scripts["kubectl_complete-mcad"].load() is start.complete


def test_candidates_come_with_their_meaning_and_a_directive(offered: Offered) -> None:
    assert offered("des") == [f"describe\t{COMMANDS['describe'][1]}", ":4"]
    assert offered("nothing-like-it") == [":4"]
    assert len(offered("")) == len(COMMANDS) + 1
    assert offered()[-1] == ":4"
    assert [one.partition("\t")[0] for one in offered("queue", "--sel")] == [
        "--selector",
        ":4",
    ]


def test_files_are_left_to_the_shell(offered: Offered) -> None:
    assert offered("submit", "-f", "sam") == [":0"]


def test_names_and_namespaces_are_those_of_the_cluster(
    offered: Offered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with served(tutorial()) as url:
        monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, url))
        assert offered("describe", "0002") == [
            "0002-aw-generic-deployment-2",
            ":4",
        ]
        assert offered("queue", "-n", "") == ["default", "team-a", ":4"]
    assert offered("describe", "0002") == [":4"]  # the server is gone


def test_the_plugin_calls_itself_as_people_do(tmp_path: Path) -> None:
    script = tmp_path / "kubectl-mcad"
    script.write_text(f"#!{sys.executable}\nfrom mcad.cli.main import main\nmain()\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        [script, "quue"], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 2
    assert done.stderr.endswith("(see `kubectl mcad --help`)\n")
