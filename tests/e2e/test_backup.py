"""A namespace is restored from a backup as Velero does it (docs/operate/backup.md): with the status
of AppWrappers or without, and with the objects that the dispatcher made, which are in the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mcad.api.labels import APPWRAPPER
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import Dispatcher, install
from tests.e2e.support import (
    appwrapper,
    appwrappers,
    cli,
    condition,
    create,
    deployment,
    phases,
    states,
)
from tests.manifests import job

Json = dict[str, Any]

pytestmark = pytest.mark.controlplane

TEAM, MERGE = "team", "application/merge-patch+json"
BEFORE = {"serves": "Running", "computes": "Running", "waits": "Pending", "done": "Completed"}
PATHS = {
    "Pod": "/api/v1/namespaces/team/pods",
    "ReplicaSet": "/apis/apps/v1/namespaces/team/replicasets",
    "Deployment": "/apis/apps/v1/namespaces/team/deployments",
    "Job": "/apis/batch/v1/namespaces/team/jobs",
    "AppWrapper": "/apis/workload.codeflare.dev/v1beta2/namespaces/team/appwrappers",
}
"""In the order of a restore."""
KEPT = ("name", "namespace", "labels", "annotations")
"""Of the metadata; Velero restores neither uids nor owners."""
EXCLUDED = "velero.io/exclude-from-backup"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Four AppWrappers, with a dispatcher that goes on while they are backed up and restored."""
    with controlplane_or_skip() as plane:
        plane.add_node("node-1", cpu="4", memory="8Gi")
        with Dispatcher(plane, install(plane), "--set", "backoffTime=2"):
            yield plane


def backed_up(plane: ControlPlane, selector: str) -> list[Json]:
    """The objects of a namespace in which one AppWrapper has ended, which is left out."""
    plane.create_namespace(TEAM)
    create(plane, appwrapper("serves", deployment("serves", 1, "1"), namespace=TEAM))
    create(plane, appwrapper("computes", job("computes", 1, "1", 3600), namespace=TEAM))
    create(plane, appwrapper("done", job("done", 1, "1", 1), namespace=TEAM))
    plane.wait_for(lambda: states(plane, TEAM).get("done") == "Completed", 60, "it has ended")
    create(plane, appwrapper("waits", deployment("waits", 1, "3"), namespace=TEAM))
    plane.wait_for(lambda: states(plane, TEAM) == BEFORE, 60, "all are seen")
    plane.kubectl("label", "appwrapper", "done", f"{EXCLUDED}=true", "-n", TEAM)
    found: list[Json] = []
    for kind, path in PATHS.items():
        listed = plane.get(f"{path}?labelSelector={selector}{EXCLUDED}!=true")
        about = {"kind": kind, "apiVersion": listed["apiVersion"]}
        found += [one | about for one in listed["items"]]
    return found


def restored(plane: ControlPlane, objects: list[Json], *, with_status: bool = False) -> None:
    """The namespace is lost, and created anew with these objects."""
    plane.kubectl("delete", "namespace", TEAM, "--timeout=60s")
    plane.create_namespace(TEAM)
    for one in objects:
        if one["kind"] in ("Pod", "ReplicaSet"):  # their controllers make new ones
            continue
        made = {key: one[key] for key in ("kind", "apiVersion", "spec")}
        made["metadata"] = {key: text for key, text in one["metadata"].items() if key in KEPT}
        if one["kind"] == "Job":
            del made["spec"]["selector"]
            for key in ("controller-uid", "batch.kubernetes.io/controller-uid"):
                made["spec"]["template"]["metadata"]["labels"].pop(key, None)
        plane.ask("POST", PATHS[one["kind"]], made)
        if with_status and one["kind"] == "AppWrapper":
            path = f"{PATHS[one['kind']]}/{made['metadata']['name']}/status"
            plane.ask("PATCH", path, {"status": one["status"]}, content_type=MERGE)


# with the status or without -> which AppWrappers start first
RESUMED = {
    False: {"computes": "Running", "serves": "Running", "waits": "Pending"},
    True: {"waits": "Running", "computes": "Running", "serves": "Pending"},
}


@pytest.mark.parametrize("with_status", RESUMED)
def test_what_is_restored_queues_again(plane: ControlPlane, with_status: bool) -> None:
    """All of it, what ran included. With the status what waited is ahead, because it alone keeps
    its time of arrival."""
    objects = backed_up(plane, f"!{APPWRAPPER},")
    assert {one["kind"] for one in objects} == {"AppWrapper"}
    administrator = plane.admin_kubeconfig
    assert cli("pause", "--reason", "a restore", kubeconfig=administrator).returncode == 0
    restored(plane, objects, with_status=with_status)
    waiting = dict.fromkeys(RESUMED[with_status], "Pending")
    plane.wait_for(lambda: states(plane, TEAM) == waiting, 60, "all of them queue")
    assert phases(plane, TEAM) == {}
    assert cli("resume", kubeconfig=administrator).returncode == 0
    plane.wait_for(lambda: states(plane, TEAM) == RESUMED[with_status], 60, "they run")
    plane.kubectl("delete", "namespace", TEAM, "--timeout=60s")


def test_objects_of_the_dispatcher_that_are_restored_are_in_the_way(plane: ControlPlane) -> None:
    restored(plane, backed_up(plane, ""))
    failed = {"serves": "Failed", "computes": "Failed", "waits": "Pending"}
    plane.wait_for(lambda: states(plane, TEAM) == failed, 60, "their names are taken")
    said = condition(appwrappers(plane, TEAM)["computes"], "Failed")["message"]
    assert "Job team/computes exists already and belongs to an unknown owner" in said
    plane.kubectl("delete", "namespace", TEAM, "--timeout=60s")
