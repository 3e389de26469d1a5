"""Makes everything that a release publishes, from a tag: ``make release VERSION=0.2.0``.

In dist/: the wheel, the CRDs, the chart, the image as an OCI archive, a software bill of materials,
and SHA256SUMS of all of these. Nothing is uploaded without ``--push``, which adds the digests under
which the registry has image and chart: these are what is signed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy" / "helm" / "mcad"
SUMS = "SHA256SUMS"

ENGINES = ("buildah", "podman", "docker")
"""What builds images; the first one that is installed is taken."""

PARTS = ("wheel", "crds", "chart", "sbom", "image")
VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")


class ReleaseError(Exception):
    """Nothing is published; the message says what to mend."""


@dataclass(frozen=True)
class Release:
    """What is made, and where."""

    version: str
    out: Path
    image: str  # without a tag
    source: str  # https address of the repository, "" if it has none
    platforms: tuple[str, ...]
    arguments: tuple[str, ...]  # of the build of the image
    engine: str
    helm: str

    @property
    def reference(self) -> str:
        """Of the image."""
        return f"{self.image}:{self.version}"


# -- before anything is made ---------------------------------------------------------------------


def check(version: str, *, tagged: bool, root: Path = ROOT) -> None:
    """Whether everything says this version, and the tag is what is checked out."""
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version such as 0.2.0")
    wrong = [f"{where} says {found}" for where, found in _versions(root) if found != version]
    if wrong:
        raise ReleaseError(f"this is to be {version}, but {', '.join(wrong)}")
    if not changes(version, root):
        raise ReleaseError(f"CHANGELOG.md has nothing under '## {version}'")
    if tagged:
        _check_tag(version, root)


def _versions(root: Path) -> Iterator[tuple[str, str]]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    yield "pyproject.toml", project["version"]
    said = re.search(r'__version__ = "(.*)"', (root / "mcad" / "version.py").read_text())
    yield "mcad/version.py", said[1] if said else "nothing"
    chart = yaml.safe_load((root / "deploy" / "helm" / "mcad" / "Chart.yaml").read_text())
    yield "the version of the chart", chart["version"]
    yield "appVersion of the chart", chart["appVersion"]


def _check_tag(version: str, root: Path) -> None:
    if _git(root, "status", "--porcelain"):
        raise ReleaseError("the work tree has changes; commit them, or stash them")
    if f"v{version}" not in _git(root, "tag", "--points-at", "HEAD").split():
        raise ReleaseError(f"the tag v{version} is not at this commit; `git checkout v{version}`")


def changes(version: str, root: Path = ROOT) -> list[tuple[str, str]]:
    """(kind, text) of each change of a version in CHANGELOG.md."""
    text = (root / "CHANGELOG.md").read_text()
    part = re.search(
        rf"^## \[?{re.escape(version)}(?![\w.-]).*?$(.*?)(?=^## |\Z)", text, re.M | re.S
    )
    found: list[tuple[str, str]] = []
    kind = ""
    for line in part[1].splitlines() if part else ():
        if line.startswith("### "):
            kind = line.removeprefix("### ").strip().lower()
        elif line.startswith("- "):
            found.append((kind, line.removeprefix("- ")))
        elif line.startswith("  ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


# -- the parts -----------------------------------------------------------------------------------


def wheel(release: Release) -> None:
    """The Python package; the same bytes from the same commit."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    _run(*command, "--no-build-isolation", "--wheel-dir", str(release.out), str(ROOT), env=_dated())
    shutil.rmtree(ROOT / "build", ignore_errors=True)


def crds(release: Release) -> None:
    """The CustomResourceDefinitions, for those that install without Helm."""
    printed = _run(sys.executable, "-m", "mcad", "crd")
    (release.out / f"mcad-crds-{release.version}.yaml").write_text(printed)


def chart(release: Release) -> None:
    """The chart, with the annotations that only a release knows."""
    with TemporaryDirectory() as name:
        copy = Path(name) / "mcad"
        shutil.copytree(CHART, copy)
        annotated(copy, release)
        _run(release.helm, "package", str(copy), "--destination", str(release.out))


def annotated(chart: Path, release: Release) -> None:
    """Write image, changes and address into a copy of the chart."""
    file = chart / "Chart.yaml"
    meta: dict[str, Any] = yaml.safe_load(file.read_text())
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    listed = [
        {"kind": kind if kind in kinds else "changed", "description": text}
        for kind, text in changes(release.version)
    ]
    meta["annotations"] |= {
        "artifacthub.io/changes": _block(listed),
        "artifacthub.io/images": _block([{"name": "mcad", "image": release.reference}]),
        "artifacthub.io/prerelease": "true" if "-" in release.version else "false",
    }
    if release.source:
        meta |= {"home": release.source, "sources": [release.source]}
        meta["icon"] = f"{release.source}/raw/v{release.version}/docs/pictures/icon.svg"
    file.write_text(yaml.safe_dump(meta, sort_keys=False, width=1000))
    values = chart / "values.yaml"
    text = values.read_text().replace("  repository: mcad\n", f"  repository: {release.image}\n", 1)
    values.write_text(text)


def _block(value: object) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, width=1000)
    return text


def sbom(release: Release) -> None:
    """The libraries of the image in CycloneDX. Those of its base are listed by its publisher."""
    with TemporaryDirectory() as name:
        _run(sys.executable, "-m", "venv", name)
        python = str(Path(name) / "bin" / "python")
        lock = str(ROOT / "deploy" / "release.lock")
        _run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", lock)
        made = str(release.out / f"mcad-{release.version}.cdx.json")
        program = [python, "-m", "cyclonedx_py", "requirements", "--output-reproducible"]
        about = ["--pyproject", str(ROOT / "pyproject.toml"), "--of", "JSON", "-o", made]
        _run(*program, *about, str(ROOT / "requirements.lock"))


def image(release: Release) -> None:
    """The image of all platforms as one OCI archive."""
    archive = release.out / f"mcad-image-{release.version}.tar"
    date = _dated()["SOURCE_DATE_EPOCH"]
    build = ["--file", str(ROOT / "deploy" / "Dockerfile"), *_labels(release)]
    build += [f"--build-arg=SOURCE_DATE_EPOCH={date}", *release.arguments]
    if release.platforms:
        build.append(f"--platform={','.join(release.platforms)}")
    if release.engine == "docker":
        output = f"type=oci,dest={archive},rewrite-timestamp=true"
        tag = ["--tag", release.reference, "--provenance=false"]  # it has the time of the build
        _show("docker", "buildx", "build", *build, *tag, "--output", output, str(ROOT))
        return
    build.append(f"--timestamp={date}")
    subprocess.run(  # of an earlier try: a manifest list only grows
        [release.engine, "manifest", "rm", release.reference], capture_output=True, check=False
    )
    _show(release.engine, "build", *build, "--manifest", release.reference, str(ROOT))
    target = f"oci-archive:{archive}:{release.reference}"
    _show(release.engine, "manifest", "push", "--all", release.reference, target)


def _labels(release: Release) -> list[str]:
    said = {
        "VERSION": release.version,
        "REVISION": _git(ROOT, "rev-parse", "HEAD"),
        "CREATED": _git(ROOT, "log", "-1", "--format=%cI"),
        "SOURCE": release.source,
    }
    return [part for name, text in said.items() for part in ("--build-arg", f"{name}={text}")]


def empty(out: Path) -> None:
    """Make the folder, or remove what an earlier release has left in it."""
    out.mkdir(parents=True, exist_ok=True)
    left = [path for path in out.iterdir() if not path.name.startswith(("mcad-", SUMS))]
    if left:
        raise ReleaseError(f"{out} has {left[0].name}, which no release made; choose another --out")
    for path in out.iterdir():
        path.unlink()


def sums(out: Path) -> None:
    """SHA256SUMS, as ``sha256sum --check`` reads it."""
    files = sorted(path for path in out.iterdir() if path.name != SUMS)
    lines = [f"{_sha256(path)}  {path.name}\n" for path in files]
    (out / SUMS).write_text("".join(lines))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def push(release: Release) -> None:
    """Upload image and chart to the registry of the image, beside each other, and write the digests
    that they have there."""
    archive = release.out / f"mcad-image-{release.version}.tar"
    if release.engine == "docker":
        raise ReleaseError("--push needs buildah or podman: docker does not read OCI archives")
    target = f"docker://{release.reference}"
    digest = f"--digestfile={_digest_file(release, 'image')}"
    _show(release.engine, "manifest", "push", "--all", digest, release.reference, target)
    package = release.out / f"mcad-{release.version}.tgz"
    registry = release.image.rpartition("/")[0]
    said = _run(release.helm, "push", str(package), f"oci://{registry}/charts", errors=True)
    _digest_file(release, "chart").write_text(digest_of(said))
    print(f"{archive.name} and {package.name} are in {registry}")


def _digest_file(release: Release, what: str) -> Path:
    return release.out / f"mcad-{what}-{release.version}.digest"


def digest_of(said: str) -> str:
    """The digest of a chart, of what ``helm push`` says."""
    found = re.search(r"^Digest: (sha256:[0-9a-f]{64})$", said, re.M)
    if found is None:
        raise ReleaseError(f"`helm push` names no digest: {said.strip()!r}")
    return found[1]


# -- tools ---------------------------------------------------------------------------------------


def _run(*command: str, env: dict[str, str] | None = None, errors: bool = False) -> str:
    """What a tool prints, on standard error as well if ``errors``; what it complains of if it
    fails."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)}:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout + done.stderr * errors


def _show(*command: str) -> None:
    """Run a tool that shows its progress itself."""
    print("+", *command, flush=True)
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise ReleaseError(f"{command[0]} has failed, see above")


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _dated() -> dict[str, str]:
    """Files in archives are as old as the commit."""
    return {**os.environ, "SOURCE_DATE_EPOCH": _git(ROOT, "log", "-1", "--format=%ct")}


def _found(names: Sequence[str], what: str) -> str:
    for name in names:
        if shutil.which(name):
            return name
    raise ReleaseError(f"{what} is missing: install one of {', '.join(names)}, or leave it out")


MAKE: dict[str, Callable[[Release], None]] = {
    "wheel": wheel,
    "crds": crds,
    "chart": chart,
    "sbom": sbom,
    "image": image,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts")
    parser.add_argument("--untagged", action="store_true", help="to try it: without a tag")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--image", default="mcad", help="REGISTRY/NAME of the image")
    parser.add_argument("--source", default="", help="https address of the repository")
    parser.add_argument("--platform", action="append", default=[], help="linux/arm64; repeated")
    parser.add_argument("--build-arg", action="append", default=[], help="of the image: BASE=...")
    parser.add_argument("--helm", default="helm", help="the binary")
    parser.add_argument("--push", action="store_true", help="upload image and chart")
    given = parser.parse_args(arguments)
    try:
        _make(given)
    except ReleaseError as error:
        sys.exit(f"error: {error}")


def _make(given: argparse.Namespace) -> None:
    check(given.version, tagged=not given.untagged)
    release = Release(
        given.version,
        given.out.resolve(),
        given.image,
        given.source.rstrip("/"),
        tuple(given.platform),
        tuple(part for one in given.build_arg for part in ("--build-arg", one)),
        _found(ENGINES, "what builds images") if "image" in given.only else "",
        _found([given.helm], "Helm") if "chart" in given.only else "",
    )
    empty(release.out)
    for name in given.only:
        print(f"{name} ...", flush=True)
        MAKE[name](release)
    if given.push:
        push(release)
    sums(release.out)
    print((release.out / SUMS).read_text(), end="")


if __name__ == "__main__":
    main()
