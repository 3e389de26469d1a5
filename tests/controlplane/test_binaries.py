"""The cache of binaries: built once, whole or not at all, and honest about what is missing."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.fixtures import controlplane_or_skip


@pytest.fixture
def without_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with neither Go nor a cache."""
    monkeypatch.setenv(binaries.CACHE_ENV, str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)


@pytest.fixture(autouse=True)
def _with_any_go(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "without_go" not in request.fixturenames:
        monkeypatch.setattr(binaries, "go", lambda: "go")


@pytest.mark.usefixtures("without_go")
def test_without_go_and_without_a_cache_there_is_a_reason() -> None:
    with pytest.raises(binaries.MissingGo, match="no `go` command"):
        binaries.ensure()


@pytest.mark.usefixtures("without_go")
def test_without_go_a_person_skips_and_ci_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no `go` command"):
        controlplane_or_skip()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no `go` command"):
        controlplane_or_skip()


def test_an_interrupted_build_leaves_nothing_half_made(tmp_path: Path) -> None:
    def interrupted(out: Path) -> None:
        out.mkdir()
        (out / "etcd").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        binaries._ensure(tmp_path / "key", interrupted)
    assert [one.name for one in tmp_path.iterdir()] == ["key.lock"]


def test_what_a_killed_build_left_is_swept_up(tmp_path: Path) -> None:
    (tmp_path / "key.half-made").mkdir()
    binaries._ensure(tmp_path / "key", lambda out: out.mkdir())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["key", "key.lock"]


def test_parallel_runs_build_once(tmp_path: Path) -> None:
    builds = []

    def slow(out: Path) -> None:
        builds.append(out)
        time.sleep(0.1)
        out.mkdir()

    runs = [
        threading.Thread(target=binaries._ensure, args=(tmp_path / "key", slow)) for _ in range(4)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(builds) == 1


def test_another_go_mod_is_another_folder(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module a")
    (tmp_path / "go.sum").write_text("")
    before = binaries._key(tmp_path, "")
    (tmp_path / "go.mod").write_text("module b")
    assert binaries._key(tmp_path, "") != before
