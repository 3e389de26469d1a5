"""What ``make release`` refuses, what it writes into the chart, and the workflows that call it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from deploy import release as releasing
from deploy.release import Release, ReleaseError, check
from mcad.api.crd import crds
from tests.chart.dockerfile import stages
from tests.chart.helm import CHART, ROOT, Helm
from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip

CHANGELOG = """\
# Changelog

## Unreleased

### Added

- Later.

## 1.2.3 - 2027-01-15

### Added

- A command: `mcad x`,
  with options.

### Fixed

- A fault.

## 1.2.2 - 2027-01-01

- Before.
"""
WORKFLOWS = ROOT / ".github" / "workflows"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project in which everything says 1.2.3, with its tag."""
    chart = tmp_path / "deploy" / "helm" / "mcad"
    chart.mkdir(parents=True)
    (tmp_path / "mcad").mkdir()
    (tmp_path / "mcad" / "version.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (chart / "Chart.yaml").write_text("version: 1.2.3\nappVersion: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    git(tmp_path, "tag", "v1.2.3")
    return tmp_path


def git(folder: Path, *args: str) -> None:
    own = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    subprocess.run(["git", *own, *args], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "x")


def test_a_tag_with_one_version_everywhere_is_released(tree: Path) -> None:
    check("1.2.3", tagged=True, root=tree)


@pytest.mark.parametrize(
    ("file", "old", "said"),
    [
        ("mcad/version.py", "1.2.3", "mcad/version.py says 9.9.9"),
        ("pyproject.toml", "1.2.3", "pyproject.toml says 9.9.9"),
        ("deploy/helm/mcad/Chart.yaml", "appVersion: 1.2.3", "appVersion of the chart says 9.9.9"),
        ("CHANGELOG.md", "## 1.2.3", "CHANGELOG.md has nothing under '## 1.2.3'"),
    ],
)
def test_another_version_is_named_with_its_place(
    file: str, old: str, said: str, tree: Path
) -> None:
    path = tree / file
    path.write_text(path.read_text().replace(old, old.replace("1.2.3", "9.9.9")))
    commit(tree)
    with pytest.raises(ReleaseError) as refused:
        check("1.2.3", tagged=False, root=tree)
    assert said in str(refused.value)


def test_only_what_is_tagged_and_unchanged_is_released(tree: Path) -> None:
    (tree / "new").write_text("")
    with pytest.raises(ReleaseError, match="the work tree has changes"):
        check("1.2.3", tagged=True, root=tree)
    commit(tree)
    with pytest.raises(ReleaseError, match=r"the tag v1.2.3 is not at this commit"):
        check("1.2.3", tagged=True, root=tree)
    check("1.2.3", tagged=False, root=tree)
    with pytest.raises(ReleaseError, match="'latest' is no version such as"):
        check("latest", tagged=False, root=tree)


def test_changes_are_those_of_the_version(tree: Path) -> None:
    assert releasing.changes("1.2.3", tree) == [
        ("added", "A command: `mcad x`, with options."),
        ("fixed", "A fault."),
    ]
    assert releasing.changes("1.2", tree) == []


RELEASE = Release(
    version=yaml.safe_load((CHART / "Chart.yaml").read_text())["version"],
    out=Path(),
    image="registry.example.com/team/mcad",
    source="https://example.com/mcad",
    platforms=(),
    arguments=(),
    engine="",
    helm="",
)


def test_the_packaged_chart_names_image_and_source(helm: Helm, tmp_path: Path) -> None:
    """Helm packages it, and what it renders pulls the released image."""
    one = replace(RELEASE, out=tmp_path, helm=str(built_or_skip(binaries.ensure_helm)))
    releasing.chart(one)
    package = tmp_path / f"mcad-{one.version}.tgz"
    meta = yaml.safe_load(helm.run("show", "chart", str(package)))
    notes = meta["annotations"]
    assert meta["icon"] == f"https://example.com/mcad/raw/v{one.version}/docs/pictures/icon.svg"
    assert (ROOT / "docs" / "pictures" / "icon.svg").exists()
    (image,) = yaml.safe_load(notes["artifacthub.io/images"])
    assert image["image"] == f"registry.example.com/team/mcad:{one.version}"
    assert f'image: "{image["image"]}"' in helm.run("template", str(package))
    assert "icon is recommended" not in helm.run("lint", "--strict", str(package))


def test_artifact_hub_is_told_the_kinds_that_are_installed() -> None:
    notes = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    told = {
        (one["name"], one["kind"], one["version"])
        for one in yaml.safe_load(notes["artifacthub.io/crds"])
    }
    assert told == {
        (one["metadata"]["name"], one["spec"]["names"]["kind"], one["spec"]["versions"][-1]["name"])
        for one in crds()
    }


def test_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_text("b")
    (tmp_path / "a.tgz").write_text("a")
    releasing.sums(tmp_path)
    releasing.sums(tmp_path)
    said = subprocess.run(
        ["sha256sum", "--check", releasing.SUMS],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert said == "a.tgz: OK\nb.whl: OK\n"


def test_only_files_of_a_release_are_removed(tmp_path: Path) -> None:
    out = tmp_path / "dist"
    releasing.empty(out)
    for name in ("mcad-1.2.3.tgz", releasing.SUMS):
        (out / name).write_text("")
    releasing.empty(out)
    assert list(out.iterdir()) == []
    (out / "thesis.tex").write_text("")
    (out / "mcad-1.2.3.tgz").write_text("")
    with pytest.raises(ReleaseError, match=r"has thesis.tex, which no release made"):
        releasing.empty(out)
    assert len(list(out.iterdir())) == 2


def test_the_build_of_the_image_takes_what_the_labels_say() -> None:
    last = stages((ROOT / "deploy" / "Dockerfile").read_text())[-1]
    taken = {one.partition("=")[0] for one in last.all("ARG")}
    given = releasing._labels(RELEASE)
    assert {one.partition("=")[0] for one in given[1::2]} == taken
    (labels,) = last.all("LABEL")
    assert {name for name in taken if f'="${name}"' in labels} == taken
    assert f"VERSION={RELEASE.version}" in last.all("ARG")


def test_the_workflows_are_correct() -> None:
    """As actionlint sees them: syntax, expressions, contexts, inputs of known actions."""
    tool = built_or_skip(binaries.ensure_actionlint)
    files = sorted(map(str, WORKFLOWS.glob("*.yaml")))
    assert len(files) == 3
    done = subprocess.run(
        [str(tool), "-no-color", *files], capture_output=True, text=True, check=False
    )
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0


def test_workflows_have_the_least_rights() -> None:
    for file in WORKFLOWS.glob("*.yaml"):
        flow = yaml.safe_load(file.read_text())
        assert flow["permissions"] in ({}, {"contents": "read"}), file
    jobs = yaml.safe_load((WORKFLOWS / "release.yaml").read_text())["jobs"]
    assert jobs["release"]["permissions"] == {"contents": "write", "packages": "write"}
    assert jobs["release"]["needs"] == "test"
