"""What ``make release`` refuses, what it writes into the chart, and the workflows that call it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import release as releasing
from deploy.release import Release, ReleaseError, check
from mcad.api.crd import crds
from tests.chart.dockerfile import stages
from tests.chart.helm import CHART, ROOT, Helm
from tests.chart.registry import registry
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


# -- the image, and what is uploaded ------------------------------------------------------------

BUILDER = """\
#!/bin/sh
echo "$@" >> {log}
for word in "$@"; do
    case "$word" in --digestfile=*) printf %s sha256:{digest} > "${{word#*=}}";; esac
done
"""
"""In place of buildah, podman and docker: notes what it is asked for."""

DIGEST = "0" * 63 + "1"


def builder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its log."""
    log, tools = tmp_path / "log", tmp_path / "tools"
    tools.mkdir()
    tool = tools / name
    tool.write_text(BUILDER.format(log=log, digest=DIGEST))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return log


def committed() -> str:
    """The time of the commit, in seconds."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("engine", "dated"),
    [
        ("buildah", "--timestamp={}"),
        ("podman", "--timestamp={}"),
        ("docker", "rewrite-timestamp=true"),
    ],
)
def test_the_image_is_as_old_as_the_commit(
    engine: str, dated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = builder(tmp_path, engine, monkeypatch)
    releasing.image(replace(RELEASE, out=tmp_path, engine=engine))
    (build,) = (line for line in log.read_text().splitlines() if "--file" in line)
    assert dated.format(committed()) in build
    assert f"--build-arg=SOURCE_DATE_EPOCH={committed()}" in build
    first = stages((ROOT / "deploy" / "Dockerfile").read_text())[0]
    assert "SOURCE_DATE_EPOCH" in {one.partition("=")[0] for one in first.all("ARG")}


def test_the_digests_of_the_registry_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the image by its builder; of the chart by Helm itself, which pushes it."""
    builder(tmp_path, "buildah", monkeypatch)
    real = built_or_skip(binaries.ensure_helm)
    helm = tmp_path / "helm"
    helm.write_text(f'#!/bin/sh\nexec {real} "$@" --plain-http\n')
    helm.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    out = tmp_path / "dist"
    out.mkdir()
    with registry() as one:
        image = f"{one.address}/team/mcad"
        release = replace(RELEASE, out=out, image=image, engine="buildah", helm=str(real))
        releasing.chart(release)
        releasing.push(replace(release, helm=str(helm)))
    manifest = one.manifests[f"team/charts/mcad:{RELEASE.version}"]
    written = {file.name: file.read_text() for file in out.glob("*.digest")}
    assert written == {
        f"mcad-image-{RELEASE.version}.digest": f"sha256:{DIGEST}",
        f"mcad-chart-{RELEASE.version}.digest": f"sha256:{hashlib.sha256(manifest).hexdigest()}",
    }


def test_a_push_without_a_digest_is_no_success() -> None:
    said = f"Pushed: registry.example.com/charts/mcad:1.2.3\nDigest: sha256:{DIGEST}\n"
    assert releasing.digest_of(said) == f"sha256:{DIGEST}"
    with pytest.raises(ReleaseError, match="`helm push` names no digest: 'Pushed'"):
        releasing.digest_of("Pushed\n")


# -- the workflows -------------------------------------------------------------------------------

PINNED = re.compile(r"(?P<action>[\w.-]+/[\w./-]+)@(?P<commit>[0-9a-f]{40})  # v\d+\.\d+\.\d+")
FLOWS = sorted((ROOT / ".github").rglob("*.y*ml"))


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


@pytest.mark.parametrize("file", FLOWS, ids=lambda one: one.name)
def test_files_of_github_are_yaml_without_a_key_given_twice(file: Path) -> None:
    assert isinstance(yaml.load(file.read_text(), _Strict), dict)


class _Strict(yaml.SafeLoader):
    """Refuses a mapping that has a key twice, of which YAML takes the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{node.start_mark}: {keys}"
        return super().construct_mapping(node, deep=deep)


def uses() -> list[tuple[str, str]]:
    """(file, action) of each step and job, with the comment behind it."""
    lines = ((file.name, line.strip()) for file in FLOWS for line in file.read_text().splitlines())
    return [
        (name, line.partition("uses:")[2].strip())
        for name, line in lines
        if line.removeprefix("- ").startswith("uses:")
    ]


def test_every_action_is_pinned_to_a_commit() -> None:
    """A tag can be moved to other code; a commit cannot. The comment says which release it is."""
    found: dict[str, set[str]] = {}
    for name, action in uses():
        if action.startswith("./"):
            assert (ROOT / action).is_file(), (name, action)
            continue
        pinned = PINNED.fullmatch(action)
        assert pinned, f"{name}: {action} is not OWNER/ACTION@COMMIT  # vX.Y.Z"
        found.setdefault(pinned["action"], set()).add(action)
    assert len(found) > 4
    assert {action: len(pins) for action, pins in found.items()} == dict.fromkeys(found, 1)
    flows = [yaml.safe_load(file.read_text()) for file in WORKFLOWS.glob("*.yaml")]
    jobs = [job for flow in flows for job in flow["jobs"].values()]
    steps = [step for job in jobs for step in (job, *job.get("steps", []))]
    assert sum("uses" in step for step in steps) == len(uses()), "every one was looked at"


def test_a_release_is_signed_and_attested() -> None:
    """Image, chart and checksums by the identity of the workflow; with provenance, and the bill of
    materials that `make release` makes."""
    steps = yaml.safe_load((WORKFLOWS / "release.yaml").read_text())["jobs"]["release"]["steps"]
    names = [step.get("name", step.get("uses", "")) for step in steps]
    made, published = (
        names.index(name) for name in ("Make it, and upload image and chart", "Publish the files")
    )
    signed = next(step for step in steps if step.get("id") == "signed")
    assert made < steps.index(signed) < published
    for command in ("sign --yes --recursive", "sign --yes", "sign-blob --yes"):
        assert f"cosign {command} " in signed["run"]
    for what in ("image", "chart"):
        assert f"mcad-{what}-$version.digest" in signed["run"], "a digest is signed, never a tag"
    attested = [
        step["with"] for step in steps if step.get("uses", "").startswith("actions/attest@")
    ]
    assert [sorted(one) for one in attested] == [
        ["create-storage-record", "push-to-registry", "subject-digest", "subject-name"],
        [
            "create-storage-record",
            "push-to-registry",
            "sbom-path",
            "subject-digest",
            "subject-name",
        ],
        ["subject-checksums"],
    ]
    assert "mcad-$version.cdx.json" in signed["run"]


def test_workflows_have_the_least_rights() -> None:
    for file in WORKFLOWS.glob("*.yaml"):
        flow = yaml.safe_load(file.read_text())
        assert flow["permissions"] in ({}, {"contents": "read"}), file
    jobs = yaml.safe_load((WORKFLOWS / "release.yaml").read_text())["jobs"]
    rights = ("contents", "packages", "id-token", "attestations")
    assert jobs["release"]["permissions"] == dict.fromkeys(rights, "write")
    assert jobs["release"]["needs"] == "test"
