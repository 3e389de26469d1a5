"""``-w``: rows as they change, an orderly end, and what is told when the server goes away."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcad.cli.arguments.options import Output
from mcad.cli.live.watch_printer import Printer
from mcad.kube.port import Request, Response
from tests.cli.cluster import appwrapper, deployment, kubeconfig, node, tutorial
from tests.cli.conftest import Type
from tests.cli.test_server_figures import ROW
from tests.fakeapi import GROUP, FakeApi, answer
from tests.serving import answering, served

Json = dict[str, Any]

PATIENCE_S = 20.0
WAITING = "0002-aw-generic-deployment-2"


class Typed:
    """``mcad ...`` as a process, and what it has printed so far."""

    def __init__(self, folder: Path, *args: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        code = "from mcad.cli.main import main; main()"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *args], stdout=out, stderr=err
            )

    @property
    def lines(self) -> list[str]:
        return self._out.read_text().splitlines()

    @property
    def errors(self) -> str:
        return self._err.read_text()

    def wait_for(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.02)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def typed(folder: Path, *args: str) -> Iterator[Typed]:
    process = Typed(folder, *args)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()


@contextmanager
def typed_at(api: FakeApi, folder: Path, *args: str) -> Iterator[Typed]:
    """``mcad ...`` as a process that talks to this API server."""
    with (
        served(api) as url,
        typed(folder, *args, "--kubeconfig", kubeconfig(folder, url)) as process,
    ):
        yield process


def new(name: str, cpu: str = "1500m") -> Json:
    return appwrapper(
        name, f"uid-{name}", "07:59:30", deployment(name, replicas=1, cpu=cpu, memory="1Gi")
    )


def columns(line: str) -> list[str]:
    return line.split()[:3]


def test_rows_are_printed_as_they_change(tmp_path: Path) -> None:
    api = tutorial()
    with typed_at(api, tmp_path, "queue", "-w") as mcad:
        mcad.wait_for(lambda: len(mcad.lines) == 2)
        assert columns(mcad.lines[0]) == ["NAME", "POSITION", "STATE"]
        assert columns(mcad.lines[1]) == [WAITING, "1", "Pending"]

        api.put("appwrappers", new("late"))
        mcad.wait_for(lambda: len(mcad.lines) == 3)
        assert columns(mcad.lines[2]) == ["late", "2", "Pending"]

        record = {"attempt": 1, "epoch": 1, "phase": "dispatched", "inventory": []}
        status = {"state": "Running", "dispatch": record}
        api.change("appwrappers", WAITING, lambda obj: obj["status"].update(status))
        mcad.wait_for(lambda: len(mcad.lines) == 5)
        assert sorted(map(columns, mcad.lines[3:])) == [
            [WAITING, "<none>", "Running"],
            ["late", "1", "Pending"],
        ]

        api.remove("appwrappers", "late")
        mcad.wait_for(lambda: len(mcad.lines) == 6)
        assert columns(mcad.lines[5]) == ["late", "<none>", "Deleted"]
        assert mcad.end() == 130
        assert mcad.errors.strip() == ""


def test_room_that_appears_is_news_though_no_appwrapper_changed(tmp_path: Path) -> None:
    api = tutorial()
    with typed_at(api, tmp_path, "get", WAITING, "-w") as mcad:
        mcad.wait_for(lambda: len(mcad.lines) == 2)
        assert " cpu  " in mcad.lines[1]
        api.put("nodes", node("second", cpu="4", memory="8Gi"))
        mcad.wait_for(lambda: len(mcad.lines) == 3)
        assert " <none>  " in mcad.lines[2]


def test_a_lost_server_is_told_once_and_waited_for(tmp_path: Path) -> None:
    api = tutorial()
    with typed_at(api, tmp_path, "queue", "-w", "-o", "name") as mcad:
        mcad.wait_for(lambda: mcad.lines)
        api.break_down()
        mcad.wait_for(lambda: mcad.errors)
        api.recover()
        api.put("appwrappers", new("late"))
        mcad.wait_for(lambda: f"appwrapper.{GROUP}/late" in mcad.lines)
        assert mcad.errors.startswith("warning: the API server cannot be reached: GET /api")
        assert mcad.errors.endswith("; the rows may be outdated until this works again\n")
        assert len(mcad.errors.splitlines()) == 1


def test_a_reader_that_leaves_ends_it(tmp_path: Path) -> None:
    api = tutorial()
    with served(api) as url:
        config = kubeconfig(tmp_path, url)
        code = "from mcad.cli.main import main; main()"
        args = ["queue", "-w", "--kubeconfig", config]
        with subprocess.Popen(
            [sys.executable, "-c", code, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                process.stdout.readline()
                process.stdout.close()
                assert process.wait(PATIENCE_S) == 1
                assert process.stderr.read() == ""
            finally:
                process.kill()


def test_rights_that_are_missing_are_told_at_once(api: FakeApi, mcad: Type) -> None:
    api.objects["leases"].clear()
    api.deny("appwrappers")
    result = mcad("queue", "-w", "-A")
    assert result.exit_code == 1
    assert "you may not list appwrappers" in result.stderr
    api.recover()
    api.served = tuple(one for one in api.served if one.group != GROUP)
    result = mcad("get", "-w")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "AppWrappers are not installed" in result.stderr


def test_an_unknown_name_is_not_waited_for(tmp_path: Path) -> None:
    with typed_at(tutorial(), tmp_path, "get", "nobody", "-w") as mcad:
        assert mcad.process.wait(PATIENCE_S) == 4
        assert 'no AppWrapper "nobody"' in mcad.errors


def test_what_is_stored_is_followed_until_the_dispatcher_answers(tmp_path: Path) -> None:
    api = tutorial()
    (lease,) = api.objects["leases"].values()
    api.objects["leases"].clear()
    with typed_at(api, tmp_path, "queue", "-w") as mcad:
        mcad.wait_for(lambda: len(mcad.lines) == 2)
        assert columns(mcad.lines[1]) == [WAITING, "<unknown>", "Pending"]
        api.put("appwrappers", new("late"))
        mcad.wait_for(lambda: len(mcad.lines) == 3)
        assert columns(mcad.lines[2]) == ["late", "<unknown>", "Pending"]
        api.put("leases", lease)
        mcad.wait_for(lambda: len(mcad.lines) == 5)
        assert sorted(map(columns, mcad.lines[3:])) == [
            [WAITING, "1", "Pending"],
            ["late", "2", "Pending"],
        ]
        assert mcad.end() == 130
        assert mcad.errors.count("warning: ") == 1


def test_a_dispatcher_is_asked_every_second(tmp_path: Path) -> None:
    rows = [dict(ROW)]

    async def dispatcher(_: Request) -> Response:
        return answer({"items": rows})

    with (
        answering(dispatcher) as url,
        typed(tmp_path, "queue", "-w", "-A", "--server", url) as mcad,
    ):
        mcad.wait_for(lambda: len(mcad.lines) == 2)
        rows[0] = rows[0] | {"waitsFor": "memory"}
        mcad.wait_for(lambda: len(mcad.lines) == 3)
        assert "memory" in mcad.lines[2]
        assert mcad.end() == 130


# -- what is news ----------------------------------------------------------------------------


def row(name: str, position: int, **more: Any) -> Json:
    return ROW | {"name": name, "uid": name, "position": position} | more


def printed(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def printer(form: str | None = None, **options: Any) -> Printer:
    output = Output(form=form, no_headers=True)
    return Printer(output, lambda: 1_800_000_000_000_000, namespaces=False, **options)


def test_moving_up_is_news_in_front_only(capsys: pytest.CaptureFixture[str]) -> None:
    one = printer(places_reported=2)
    one.show([row("a", 1), row("b", 2), row("c", 3), row("d", 4)])
    assert len(printed(capsys)) == 4
    one.show([row("b", 1), row("c", 2), row("d", 3)], [row("a", 0, state="Running")])
    said = printed(capsys)
    assert [line[:3] for line in said] == [
        ["b", "1", "Pending"],
        ["c", "2", "Pending"],
        ["a", "<none>", "Running"],
    ]
    one.show([row("b", 1), row("c", 2), row("d", 3, waitsFor="memory")])
    assert [line[0] for line in printed(capsys)] == ["d"]


def test_a_row_that_leaves_the_queue_is_printed_with_its_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = printer()
    one.show([row("a", 1)])
    printed(capsys)
    one.show([], [row("a", 0, waitsFor="", why="")])  # its items are being created
    assert printed(capsys) == []
    one.show([], [row("a", 0, waitsFor="", why="", state="Running")])
    assert [line[:3] for line in printed(capsys)] == [["a", "<none>", "Running"]]
    one.show([], [row("a", 0, waitsFor="", why="", state="Completed")])
    assert printed(capsys) == []


def test_ages_and_figures_alone_are_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    one = printer("wide")
    one.show([row("a", 1, why="cpu: 1 requested, 0 available, 1 missing.")])
    printed(capsys)
    one.show([row("a", 1, why="cpu: 1 requested, 500m available, 500m missing.")])
    one.show([row("a", 1)])
    assert printed(capsys) == []


def test_a_name_that_comes_back_is_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    one = printer()
    one.show([row("a", 1)])
    one.show([row("a", 1, uid="next")])
    said = printed(capsys)
    assert [line[:3] for line in said] == [
        ["a", "1", "Pending"],
        ["a", "1", "Pending"],
        ["a", "<none>", "Deleted"],
    ]


def test_columns_stay_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    one = printer()
    one.show([row("a-long-name", 1)])
    one.show([row("a-long-name", 1), row("b", 2)])
    first, second = capsys.readouterr().out.splitlines()
    assert first.index(" 1 ") == second.index(" 2 ")


def test_scripts_get_one_document_per_change(capsys: pytest.CaptureFixture[str]) -> None:
    one = printer("json")
    one.show([row("a", 1)])
    assert json.loads(capsys.readouterr().out)["name"] == "a"
    two = printer("yaml")
    two.show([row("a", 1), row("b", 2)])
    assert capsys.readouterr().out.count("---\n") == 2
