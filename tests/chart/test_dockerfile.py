"""The image recipe: its steps build a tree that runs the dispatcher without being written to.

There is no container engine here, so the base image is what is not tested: Python itself is that of
the tests, in a fresh virtual environment.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mcad
from mcad.api.crd import crd_yaml
from tests.chart.dockerfile import Stage, play, stages
from tests.chart.helm import ROOT

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
NAME = re.compile(r"[A-Za-z0-9-]+")
PACKAGE = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def recipe() -> list[Stage]:
    return stages((ROOT / "deploy" / "Dockerfile").read_text())


def build(recipe: list[Stage], where: Path) -> Path:
    """What the build stage makes of the tree at /opt/mcad, in ``where``; read-only as the pod sees
    it."""
    base, folder, built = where / "base", where / "src", where / "opt" / "mcad"
    folder.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", str(base)], check=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env |= {"PATH": f"{base / 'bin'}:{os.environ['PATH']}", "PREFIX": str(built)}
    play(recipe[0], ROOT, folder, env)
    subprocess.run(["chmod", "-R", "a-w", str(built)], check=True)
    return built


def remove(where: Path) -> None:
    subprocess.run(["chmod", "-R", "u+w", str(where)], check=True)
    shutil.rmtree(where)


@pytest.fixture(scope="module")
def prefix(recipe: list[Stage], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    where = tmp_path_factory.mktemp("image") / "build"
    yield build(recipe, where)
    remove(where)


def powerless() -> None:
    """Make permissions apply to root, too."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)


@pytest.fixture(scope="module")
def entrypoint(recipe: list[Stage], prefix: Path) -> Callable[..., str]:
    """Runs the image's ENTRYPOINT, where the tree is; returns the output."""
    (words,) = recipe[1].all("ENTRYPOINT")
    command = [word.replace("/opt/mcad", str(prefix)) for word in json.loads(words)]

    def call(*args: str) -> str:
        done = subprocess.run(
            [*command, *args],
            env={"HOME": "/tmp"},
            cwd="/",
            preexec_fn=powerless,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def tree(folder: Path) -> set[tuple[Path, float]]:
    return {(path, path.lstat().st_mtime) for path in folder.rglob("*")}


def test_the_tree_is_not_writable(prefix: Path) -> None:
    """Otherwise the test after this one would show nothing."""
    done = subprocess.run(
        ["touch", str(prefix / "new")], preexec_fn=powerless, capture_output=True, check=False
    )
    assert done.returncode != 0


def test_it_runs_and_writes_nothing(entrypoint: Callable[..., str], prefix: Path) -> None:
    before = tree(prefix)
    assert mcad.__version__ in entrypoint("version")
    assert entrypoint("crd") == crd_yaml()
    assert "kind: ClusterRole" in entrypoint("rbac")
    assert "--config" in entrypoint("run", "--help")
    assert "--no-browser" in entrypoint("ui", "--help")  # with what the chart's ui.enabled needs
    assert tree(prefix) == before


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Permissions and bytes of all that is in a tree, by path; not the dates, which the builder of
    the image sets."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, _bytes_of(path))
        for path in folder.rglob("*")
    }


def _bytes_of(path: Path) -> str:
    if path.is_symlink():
        return os.readlink(path)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def test_nothing_is_compiled_in_the_pod(prefix: Path) -> None:
    """There is bytecode for every module, and it counts whatever the date of its source is."""
    compiled = list(prefix.rglob("*.pyc"))
    sources = list(prefix.rglob("*.py"))
    assert len(compiled) == len(sources) > 1000
    unchecked = (1).to_bytes(4, "little")  # PEP 552: by hash, and the source is not read
    assert {path.read_bytes()[4:8] for path in compiled} == {unchecked}


def test_a_second_build_has_the_same_files(
    recipe: list[Stage], tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = tmp_path_factory.mktemp("twice") / "build"  # the same place: shebangs have it
    found = []
    for _ in range(2):
        found.append(contents(build(recipe, where)))
        remove(where)
    first, second = found
    assert {path for path in first if first[path] != second.get(path)} == set()
    assert first.keys() == second.keys()


def test_what_is_in_it_is_what_is_locked(prefix: Path) -> None:
    """Neither pip nor the tools of development are in the image."""
    code = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"
    done = subprocess.run(
        [str(prefix / "bin" / "python"), "-I", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name.lower().replace("_", "-") for name in done.stdout.split()}
    locked = dict(PACKAGE.findall((ROOT / "requirements.lock").read_text()))
    assert found == {*locked, "mcad"}


def test_what_only_the_demo_needs_is_not_in_it(prefix: Path) -> None:
    """Nor in what a plain ``pip install`` brings: both are what the project depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = {NAME.match(one)[0] for one in project["optional-dependencies"]["demo"]}
    plain = {NAME.match(one)[0].lower() for one in project["dependencies"]}
    locks = {
        name: dict(PACKAGE.findall((ROOT / name).read_text()))
        for name in ("requirements.lock", "requirements-demo.lock", "requirements-dev.lock")
    }
    assert extra
    extra -= {NAME.match(one)[0] for one in project["optional-dependencies"]["ui"]}  # ui.enabled
    assert not extra & (plain | locks["requirements.lock"].keys())
    assert locks["requirements-demo.lock"].keys() >= extra
    assert locks["requirements.lock"].items() <= locks["requirements-demo.lock"].items()
    assert locks["requirements-demo.lock"].items() <= locks["requirements-dev.lock"].items()
    done = subprocess.run(
        [str(prefix / "bin" / "python"), "-I", "-B", "-m", "mcad", "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    sentence = (
        r"error: `\S+ -m mcad demo` needs libraries .*: "
        r"run `pip install '\.\[demo\]'` in the source directory of mcad\n"
    )
    assert re.fullmatch(sentence, done.stderr)


def test_it_is_built_as_the_tests_build_it() -> None:
    tested = dict(PACKAGE.findall((ROOT / "requirements-dev.lock").read_text()))
    locked = dict(PACKAGE.findall((ROOT / "deploy" / "build.lock").read_text()))
    assert locked
    assert locked.items() <= tested.items(), "run `make lock`"


def test_the_last_stage(recipe: list[Stage]) -> None:
    """Not root, without a shell, from bases that cannot change behind their names."""
    build, last = recipe
    assert re.fullmatch(r"debian:bookworm-slim@sha256:[0-9a-f]{64}", build.base)
    assert re.fullmatch(
        r"gcr\.io/distroless/python3-debian12:nonroot@sha256:[0-9a-f]{64}", last.base
    )
    assert last.all("USER") == ["65532:65532"]
    assert last.all("RUN") == []
    assert "--from=build /opt/mcad /opt/mcad" in last.all("COPY")
    assert "PREFIX=/opt/mcad" in build.all("ARG")
    for word in ("ENTRYPOINT", "CMD"):
        (command,) = last.all(word)
        assert isinstance(json.loads(command), list)
