"""The chart of a former version, and AppWrappers as its dispatcher left them on a real API server.

``python -m tests.chart.former`` records both anew from the history of this repository.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.chart.cluster import PULLED_NOWHERE, Release
from tests.chart.helm import ROOT, Helm
from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    appwrapper,
    appwrappers_path,
    configmap,
    create,
    deployment,
    get,
    pod,
    states,
)
from tests.upgrades.versions import VERSIONS

Json = dict[str, Any]

COMMIT = VERSIONS[-1].commit
HERE = Path(__file__).parent
PACKED, WORLD = HERE / "chart.tar.xz", HERE / "world.json"

TEAM = "team"
VALUES: Json = {**PULLED_NOWHERE, "config": {"backoffTime": 5}}
"""What the administrator has set; kept on the upgrade."""

STATES = {"deployed": "Running", "bare": "Running", "waiting": "Pending", "done": "Completed"}

_KINDS = {"configmaps": "api/v1", "pods": "api/v1", "deployments": "apis/apps/v1"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion")


def unpacked(folder: Path) -> Path:
    """The former chart."""
    with tarfile.open(PACKED) as tar:
        tar.extractall(folder, filter="data")
    return folder / "deploy" / "helm" / "mcad"


def add_node(plane: ControlPlane) -> None:
    """Room for what runs, not for what waits."""
    plane.add_node("worker", cpu="2")


def restore(plane: ControlPlane) -> None:
    """Create what the former dispatcher left a moment ago: AppWrappers with their status, their
    items, and the Lease."""
    plane.create_namespace(TEAM)
    world = json.loads(_as_of_now(WORLD.read_text()))
    plane.ask("POST", LEASES, world["lease"])
    path, merge = appwrappers_path(TEAM), "application/merge-patch+json"
    for one in world["appwrappers"]:
        name, uid = one["appwrapper"]["metadata"]["name"], one["appwrapper"]["metadata"]["uid"]
        made = plane.ask("POST", path, one["appwrapper"] | {"status": None})
        for item in one["items"]:
            named = json.loads(json.dumps(item["object"]).replace(uid, made["metadata"]["uid"]))
            plane.ask("POST", f"/{item['path']}", named)
        status = {"status": one["appwrapper"]["status"]}
        plane.ask("PATCH", f"{path}/{name}/status", status, content_type=merge)


def _as_of_now(text: str) -> str:
    """With every time later by as much as the recording is old."""
    age = datetime.now(UTC) - datetime.fromisoformat(json.loads(text)["lease"]["spec"]["renewTime"])

    def later(found: re.Match[str]) -> str:
        return (datetime.fromisoformat(found[0]) + age).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", later, text)


# -- recording -----------------------------------------------------------------------------------


def record() -> None:
    """Write both files; takes the history of this repository and the binaries of the tests."""
    with TemporaryDirectory() as name, ControlPlane() as plane:
        folder = Path(name)
        for path in ("mcad", "deploy/helm/mcad"):
            with tarfile.open(fileobj=io.BytesIO(_archived(path))) as tar:
                tar.extractall(folder, filter="data")
        with tarfile.open(PACKED, "w:xz", preset=9) as tar:
            tar.add(folder / "deploy/helm/mcad", "deploy/helm/mcad", filter=_anonymous)
        helm = Helm(binaries.ensure_helm(), folder)
        WORLD.write_text(json.dumps(_lived(plane, helm, folder), indent=1) + "\n")


def _archived(path: str) -> bytes:
    command = ["git", "archive", COMMIT, path]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _lived(plane: ControlPlane, helm: Helm, folder: Path) -> Json:
    """What is there after some time under the former dispatcher."""
    release = Release(helm, plane, chart=folder / "deploy/helm/mcad")
    release.install(**VALUES)
    add_node(plane)
    plane.create_namespace(TEAM)
    env = {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}
    config = ("--config", str(release.config()))
    with Dispatcher(plane, release.account(), *config, env=env):
        _submit(plane)
        plane.wait_for(lambda: states(plane, TEAM) == STATES, 90, "all is as it is told")
        plane.wait_for(lambda: _counts(plane) == [2, 1], 60, "the counts of pods are written")
        found = [get(plane, name, TEAM) for name in STATES]
    lease = _client_side(plane.get(f"{LEASES}/mcad-dispatcher"))
    return {"lease": lease, "appwrappers": [_with_items(plane, one) for one in found]}


def _submit(plane: ControlPlane) -> None:
    before = {
        "deployed": deployment("deployed", 2, "500m"),
        "bare": pod("bare", "500m"),
        "done": pod("done", "100m", ("true",)),
    }
    for name, template in before.items():
        more = [configmap(name)] if name == "bare" else []
        create(plane, appwrapper(name, template, *more, namespace=TEAM))
    started = ("Running", "Completed")
    plane.wait_for(
        lambda: all(one in started for one in states(plane, TEAM).values()), 60, "all have started"
    )
    create(plane, appwrapper("waiting", deployment("waiting", 2, "400m"), namespace=TEAM))


def _counts(plane: ControlPlane) -> list[int]:
    return [get(plane, name, TEAM)["status"].get("running", 0) for name in ("deployed", "bare")]


def _with_items(plane: ControlPlane, owner: Json) -> Json:
    found = []
    for plural, api in _KINDS.items():
        path = f"{api}/namespaces/{TEAM}/{plural}"
        for one in plane.get(f"/{path}")["items"]:
            if owner["metadata"]["uid"] in [ref["uid"] for ref in _owners(one)]:
                del one["metadata"]["uid"]
                one.pop("status", None)
                found.append({"path": path, "object": _client_side(one)})
    return {"appwrapper": _client_side(owner), "items": found}


def _owners(obj: Json) -> list[Json]:
    found: list[Json] = obj["metadata"].get("ownerReferences", [])
    return found


def _client_side(obj: Json) -> Json:
    metadata = {key: one for key, one in obj["metadata"].items() if key not in _OF_THE_SERVER}
    return obj | {"metadata": metadata}
