"""Build the control plane's binaries once and keep them in a cache folder.

The versions are the ones in go.mod next to this file. A cache folder is named by the hash of
everything that decides what comes out of a build, so a changed go.mod never meets old binaries
and nothing ever has to be invalidated.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
OPERATORS = HERE / "operators"
HELM = HERE / "helm"
PROMTOOL = HERE / "promtool"
ACTIONLINT = HERE / "actionlint"
DASHBOARDS = HERE / "dashboards"
LUA = HERE / "lua"

CACHE_ENV = "MCAD_CONTROLPLANE_CACHE"
GO_NEEDED = (1, 26)

STRIP = "-s -w"
NO_DISCOVERY = "remove_all_sd"
"""The build tag of Prometheus without the clients of clouds, which are most of it."""

SHIPPED = {
    "kuberay": ("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/*.yaml", ""),
    "training": (
        "github.com/kubeflow/training-operator",
        "manifests/base/crds/kubeflow.org_*.yaml",
        "",
    ),
    "jobset": (
        "sigs.k8s.io/jobset",
        "config/components/crd/bases/*.yaml",
        "config/components/webhook/manifests.yaml",
    ),
    "lws": ("sigs.k8s.io/lws", "config/crd/bases/*.yaml", "config/webhook/manifests.yaml"),
    "coscheduling": (
        "sigs.k8s.io/scheduler-plugins",
        "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        "",
    ),
}
"""Operator -> its Go module, and what is installed with it: its CRDs, and its webhooks if any."""


class MissingGo(Exception):  # noqa: N818 - it names what to install
    """There is no Go toolchain, or it is too old, and the cache does not hold the binaries."""


class BuildError(Exception):
    """Go is there, but did not build."""


def ensure() -> Path:
    """The folder with etcd, kube-apiserver and the others; built first if it is not there."""
    folder = cache_root() / f"kubernetes-{_key(HERE, _kubernetes_ldflags())}"
    return _ensure(folder, _build_kubernetes) / "bin"


def ensure_operators() -> Path:
    """The folder with the operators' binaries in ``bin``, and with ``crds-NAME.yaml`` and, if it
    has some, ``webhooks-NAME.yaml`` of each (see SHIPPED)."""
    sources = (path.read_bytes() for path in sorted(OPERATORS.glob("*/*.go")))
    key = _key(OPERATORS, STRIP, repr(SHIPPED).encode(), *sources)
    folder = cache_root() / f"operators-{key}"
    return _ensure(folder, _build_operators)


def ensure_helm() -> Path:
    """Helm's binary."""
    folder = cache_root() / f"helm-{_key(HELM, _helm_ldflags())}"
    return _ensure(folder, _build_helm) / "bin" / "helm"


def ensure_promtool() -> Path:
    """Prometheus's checker of rules."""
    folder = cache_root() / f"promtool-{_key(PROMTOOL, STRIP, NO_DISCOVERY.encode())}"
    return _ensure(folder, _build_promtool) / "bin" / "promtool"


def ensure_actionlint() -> Path:
    """The checker of workflows of GitHub Actions."""
    folder = cache_root() / f"actionlint-{_key(ACTIONLINT, STRIP)}"
    return _ensure(folder, _build_actionlint) / "bin" / "actionlint"


def ensure_checkdashboard() -> Path:
    """The checker of dashboards of Grafana."""
    sources = (path.read_bytes() for path in sorted(DASHBOARDS.glob("*/*.go")))
    folder = cache_root() / f"checkdashboard-{_key(DASHBOARDS, STRIP, *sources)}"
    return _ensure(folder, _build_checkdashboard) / "bin" / "checkdashboard"


def ensure_health() -> Path:
    """The interpreter of health checks of Argo CD."""
    sources = (path.read_bytes() for path in sorted(LUA.glob("*/*.go")))
    folder = cache_root() / f"lua-{_key(LUA, STRIP, *sources)}"
    return _ensure(folder, _build_health) / "bin" / "health"


def kubernetes_version() -> str:
    """As go.mod has it: v1.36.3."""
    return _required(HERE, "k8s.io/kubernetes")


def _required(module: Path, dependency: str) -> str:
    """The version of a dependency in a module's go.mod."""
    pattern = rf"^(?:require)?\s*{re.escape(dependency)} (v\S+)"
    found = re.search(pattern, (module / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, f"{module / 'go.mod'} requires {dependency}"
    return found[1]


def cache_root() -> Path:
    if chosen := os.environ.get(CACHE_ENV):
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mcad-controlplane"


def _kubernetes_ldflags() -> str:
    """Without them, a Kubernetes that is built from a plain module calls itself v0.0.0-master, and
    clients that look at the server's version take a wrong turn."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    package = "k8s.io/component-base/version"
    return " ".join([STRIP, *(f"-X {package}.{key}={value}" for key, value in stamps.items())])


def _helm_ldflags() -> str:
    """Stamped as Helm's own releases are, so that `helm version` tells the truth."""
    return (
        f"{STRIP} -X helm.sh/helm/v4/internal/version.version={_required(HELM, 'helm.sh/helm/v4')}"
    )


def _key(module: Path, ldflags: str, *more: bytes) -> str:
    inputs = [(module / "go.mod").read_bytes(), (module / "go.sum").read_bytes()]
    inputs += [ldflags.encode(), platform.system().encode(), platform.machine().encode(), *more]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()[:16]


def _ensure(folder: Path, build: Callable[[Path], None]) -> Path:
    """Build into a folder beside the final one and rename it: what has the name is whole."""
    if folder.is_dir():
        return folder
    go()  # say that Go is missing before waiting for another build
    with _locked(folder.with_suffix(".lock")):
        if folder.is_dir():  # another process built it while we waited for the lock
            return folder
        half_made = folder.with_suffix(".half-made")
        shutil.rmtree(half_made, ignore_errors=True)  # of a build that was killed
        try:
            build(half_made)
            half_made.rename(folder)
        finally:
            shutil.rmtree(half_made, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released by the kernel, also when we are killed
        yield


def _build_kubernetes(out: Path) -> None:
    _go_build(HERE, _kubernetes_ldflags(), out / "bin", about="several minutes on a cold machine")
    # The module's last path element is "server", which does not say that it is etcd.
    (out / "bin" / "server").rename(out / "bin" / "etcd")


def _build_operators(out: Path) -> None:
    _go_build(OPERATORS, STRIP, out / "bin", about="two or three minutes on a cold machine")
    for built, name in (("ray-operator", "kuberay"), ("cmd", "lws")):
        (out / "bin" / built).rename(out / "bin" / name)  # of which operator it is
    for name, (source, crds, webhooks) in SHIPPED.items():
        folder = Path(_run(["list", "-m", "-f", "{{.Dir}}", source], OPERATORS).strip())
        # A copy, so that a warm run needs no module cache. The originals are read-only.
        found = [file.read_text() for file in sorted(folder.glob(crds))]
        (out / f"crds-{name}.yaml").write_text("\n---\n".join(found))
        if webhooks:
            (out / f"webhooks-{name}.yaml").write_text((folder / webhooks).read_text())


def _build_helm(out: Path) -> None:
    _go_build(HELM, _helm_ldflags(), out / "bin", about="several minutes on a cold machine")


def _build_promtool(out: Path) -> None:
    about = "several minutes on a cold machine"
    _go_build(PROMTOOL, STRIP, out / "bin", about=about, tags=NO_DISCOVERY)


def _build_actionlint(out: Path) -> None:
    _go_build(ACTIONLINT, STRIP, out / "bin", about="half a minute on a cold machine")


def _build_checkdashboard(out: Path) -> None:
    _go_build(DASHBOARDS, STRIP, out / "bin", about="a minute on a cold machine")


def _build_health(out: Path) -> None:
    _go_build(LUA, STRIP, out / "bin", about="a few seconds")


def _go_build(module: Path, ldflags: str, out: Path, *, about: str, tags: str = "") -> None:
    out.mkdir(parents=True)
    started = time.monotonic()
    _say(f"building the tools of {module.relative_to(HERE.parent)}/go.mod ({about}) ...")
    # The trailing separator makes -o a folder, also for a module with a single tool.
    flags = ["-buildvcs=false", "-tags", tags, "-ldflags", ldflags]
    _run(["build", *flags, "-o", f"{out}{os.sep}", "tool"], module)
    _say(f"built in {time.monotonic() - started:.0f} s")


def _run(args: list[str], module: Path) -> str:
    done = subprocess.run(
        [go(), *args],
        cwd=module,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"go {args[0]} in {module} failed:\n{done.stderr[-4000:]}")
    return done.stdout


def go() -> str:
    """The Go command, when there is one that is new enough."""
    # Go's own installer does not touch PATH, so its default place is looked at as well.
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if found is None:
        raise MissingGo("the control plane is built with Go, and there is no `go` command")
    asked = subprocess.run(
        [found, "env", "GOVERSION"], cwd=HERE, capture_output=True, text=True, check=False
    )
    version = re.match(r"go(\d+)\.(\d+)", asked.stdout)
    if version is None or tuple(map(int, version.groups())) < GO_NEEDED:
        said = (asked.stdout or asked.stderr).strip()
        raise MissingGo(f"the control plane needs Go {GO_NEEDED[0]}.{GO_NEEDED[1]}; found: {said}")
    return found


def _say(line: str) -> None:
    print(f"controlplane: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    _say(f"binaries are in {ensure()}")
    _say(f"operators are in {ensure_operators() / 'bin'}")
    _say(f"Helm is {ensure_helm()}")
    _say(f"promtool is {ensure_promtool()}")
    _say(f"actionlint is {ensure_actionlint()}")
    _say(f"checkdashboard is {ensure_checkdashboard()}")
