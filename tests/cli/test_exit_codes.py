"""Exit codes of commands by what happens, as docs/reference/cli.md lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import yaml

from mcad.cli.errors import EXIT_CODES
from tests.cli.cluster import kubeconfig
from tests.cli.embedded import Embedded
from tests.cli.exit_codes import CASES
from tests.e2e.support import appwrapper, pod
from tests.serving import free_port

PLAYED = [(case.what, case.code, args) for case in CASES for args in case.commands.values() if args]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded(tmp_path_factory.mktemp("codes")).running() as running:
        running.create(
            appwrapper("runs", pod("runs")),
            appwrapper("done", pod("done", command=("sleep", "0"))),
            appwrapper("waits", pod("waits", cpu="1000")),
            appwrapper("held", pod("held")),
        )
        assert running.mcad("hold", "held").exit_code == 0
        running.until("runs", "Running")
        running.until("done", "Completed")
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Paths by the words in braces."""
    folder = tmp_path_factory.mktemp("files")
    contents = {
        "wrong": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "taken": appwrapper("runs", pod("other")),
        "large": appwrapper("large", pod("large", cpu="1000")),
    }
    for name, content in contents.items():
        (folder / name).write_text(yaml.safe_dump(content))
    paths = {name: str(folder / name) for name in (*contents, "missing")}
    return paths | {"nowhere": kubeconfig(folder, f"http://127.0.0.1:{free_port()}")}


@pytest.mark.parametrize(("what", "code", "args"), PLAYED, ids=lambda one: str(one)[:50])
def test_the_code_is_that_of_the_table(
    what: str, code: int, args: tuple[str, ...], cluster: Embedded, files: Mapping[str, str]
) -> None:
    if "paused for that scope already" in what:
        cluster.mcad(*args)
    done = cluster.mcad(*(one.format(**files) for one in args))
    assert done.exit_code == code, (what, done.output)


def test_the_codes_are_those_of_the_program() -> None:
    assert {case.code for case in CASES} <= set(EXIT_CODES)


def test_each_case_is_once() -> None:
    assert len({case.what for case in CASES}) == len(CASES)
