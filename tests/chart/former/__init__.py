"""The chart of a former version, and AppWrappers as its dispatcher left them on a real API server.

``python -m tests.chart.former`` records both anew from the history of this repository, and
``python -m tests.chart.former roll`` upgrades while the former dispatcher leads.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chart.cluster import PULLED_NOWHERE
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import appwrappers_path
from tests.upgrades.versions import VERSIONS

Json = dict[str, Any]

COMMIT = VERSIONS[-1].commit
HERE = Path(__file__).parent
PACKED, WORLD = HERE / "chart.tar.xz", HERE / "world.json"

TEAM = "team"
VALUES: Json = {**PULLED_NOWHERE, "config": {"backoffTime": 5}}
"""What the administrator has set; kept on the upgrade."""

STATES = {"deployed": "Running", "bare": "Running", "waiting": "Pending", "done": "Completed"}

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def unpacked(folder: Path) -> Path:
    """The former chart."""
    shutil.unpack_archive(PACKED, folder)
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
