"""The chart of a former version is upgraded, uninstalled, and installed again in another namespace.

AppWrappers run and wait meanwhile, as the former dispatcher left them on a real API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from tests.chart import former
from tests.chart.cluster import Release
from tests.chart.former import STATES, TEAM, VALUES
from tests.chart.helm import CHART, Helm, HelmError
from tests.controlplane.audit import AuditEntry
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrappers, delete, pods, states

Json = dict[str, Any]

pytestmark = pytest.mark.controlplane

CRDS = [yaml.safe_load(path.read_text()) for path in sorted(CHART.glob("files/crds/*.yaml"))]
KEPT = {f"customresourcedefinition/{one['metadata']['name']}" for one in CRDS}
ELSEWHERE = "mcad-elsewhere"
LEASE = f"{former.LEASES}/mcad-dispatcher"
STATUS_OF_THE_DISPATCHER = ("state", "phase", "conditions", "dispatch")


@pytest.fixture(scope="module")
def installed(
    helm: Helm, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Release:
    """The former chart, with what its dispatcher left."""
    release = Release(helm, control_plane, former.unpacked(tmp_path_factory.mktemp("former")))
    release.install(**VALUES)
    former.add_node(control_plane)
    former.restore(control_plane)
    control_plane.wait_for(lambda: len(phases(control_plane)) == 4, what="the pods are there")
    done = lambda: phases(control_plane)["done"] == "Succeeded"  # noqa: E731
    control_plane.wait_for(done, what="its pod has ended")
    return release


@pytest.fixture(scope="module")
def former_crds(installed: Release, control_plane: ControlPlane) -> Json:
    """The schemas before the upgrade."""
    return schemas(control_plane)


def phases(plane: ControlPlane) -> dict[str, str]:
    """Name -> phase of the pods."""
    return {one["metadata"]["name"]: one["status"].get("phase", "") for one in pods(plane, TEAM)}


def uids(plane: ControlPlane) -> set[str]:
    """Of AppWrappers and pods: another uid is another object."""
    found = [*appwrappers(plane, TEAM).values(), *pods(plane, TEAM)]
    return {one["metadata"]["uid"] for one in found}


def schemas(plane: ControlPlane) -> Json:
    """The schemas of the CRDs, without descriptions."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    found = (plane.get(f"{path}/{one['metadata']['name']}") for one in CRDS)
    return {one["metadata"]["name"]: one["spec"]["versions"] for one in found}


def versions(plane: ControlPlane) -> dict[str, str]:
    """The resourceVersion of each AppWrapper: another one means that it was written."""
    found = appwrappers(plane, TEAM)
    return {name: one["metadata"]["resourceVersion"] for name, one in found.items()}


def statuses(plane: ControlPlane) -> Json:
    """What the dispatcher has recorded, with its times."""
    return {
        name: {key: one["status"].get(key) for key in STATUS_OF_THE_DISPATCHER}
        for name, one in appwrappers(plane, TEAM).items()
        if name != "waiting"  # its reason says how much is missing, and may be worded anew
    }


def lead(plane: ControlPlane, release: Release, name: str) -> list[AuditEntry]:
    """What the dispatcher of a release asks for, from its start until the queue is as before."""
    since = plane.audit_mark()
    with Dispatcher(plane, release.account(), "--config", str(release.config()), name=name) as one:
        plane.wait_for(lambda: queue(one) == [("waiting", 1)], what="the queue is as before")
        assert states(plane, TEAM) == STATES
    user = f"system:serviceaccount:{release.namespace}:{release.full_name}"
    return [one for one in plane.audit(since) if one.user == user]


def queue(dispatcher: Dispatcher) -> list[tuple[str, int]]:
    """Names and positions."""
    rows = json.loads(dispatcher.get("/api/v1/queue")[1])["items"]
    return [(one["name"], one["position"]) for one in rows]


def touched(entries: Iterable[AuditEntry]) -> set[tuple[str, str]]:
    """What was created or deleted, but for Events and the Lease."""
    writes = {(one.verb, one.resource) for one in entries if one.verb in ("create", "delete")}
    return {one for one in writes if one[1] not in ("events", "leases")}


def refused(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """What a right is missing for."""
    return [one for one in entries if one.code in (401, 403)]


def test_the_recording_is_of_the_last_former_version() -> None:
    found = json.loads(former.WORLD.read_text())["commit"]
    assert found == former.COMMIT, "python -m tests.chart.former"


def test_upgrade(
    helm: Helm, control_plane: ControlPlane, installed: Release, former_crds: Json
) -> None:
    """Helm upgrades the CRDs and touches no AppWrapper; the new dispatcher goes on with all."""
    plane, release = control_plane, Release(helm, control_plane)
    before = uids(plane), versions(plane), statuses(plane)
    assert before[2]["deployed"]["dispatch"]["epoch"] == 1, "recorded by the former dispatcher"
    former = installed.objects()

    release.upgrade(**VALUES)

    assert (uids(plane), versions(plane), statuses(plane)) == before
    assert release.objects() >= KEPT | former
    for one in CRDS:
        plane.wait_for_crd(one["metadata"]["name"])
    entries = lead(plane, release, "upgraded")
    assert not refused(entries)
    assert touched(entries) == set()
    assert (uids(plane), statuses(plane)) == (before[0], before[2])


def test_roll_back_and_forth(
    helm: Helm, control_plane: ControlPlane, installed: Release, former_crds: Json
) -> None:
    """Helm takes back the CRDs, too: the dispatcher of the newer version refuses these, and no
    AppWrapper is touched. The upgrade can be made again."""
    plane, release = control_plane, Release(helm, control_plane)
    before, newer = (uids(plane), versions(plane), statuses(plane)), schemas(plane)

    release.roll_back(1)

    assert schemas(plane) == former_crds
    assert former_crds != newer
    assert (uids(plane), versions(plane), statuses(plane)) == before
    newer_one = Dispatcher(plane, release.account(), name="too-new").start(ready=False)
    assert newer_one.end_of_life(30) == 1
    assert "is not the one of this version" in newer_one.log()
    release.upgrade(**VALUES)
    assert schemas(plane) == newer
    assert (uids(plane), versions(plane), statuses(plane)) == before
    assert touched(lead(plane, release, "forth")) == set()


def test_uninstall_and_reinstall(
    helm: Helm, control_plane: ControlPlane, installed: Release
) -> None:
    """The CRDs and every AppWrapper stay, and the next release goes on where the last one was."""
    plane, release = control_plane, Release(helm, control_plane)
    before, epoch = uids(plane), plane.get(LEASE)["spec"]["leaseTransitions"]

    said = release.uninstall()

    assert all(one.partition("/")[2] in said for one in KEPT)
    assert release.objects() == KEPT
    assert uids(plane) == before
    assert plane.request("GET", LEASE)[0] == 200, "of the cluster, not of the release"

    other = Release(helm, plane, name="other", namespace=ELSEWHERE)
    with pytest.raises(HelmError, match="cannot be imported into the current release"):
        other.install(**VALUES)
    other.install("--take-ownership", **VALUES)
    entries = lead(plane, other, "elsewhere")
    assert not refused(entries)
    assert touched(entries) == set()
    assert uids(plane) == before
    assert plane.get(LEASE)["spec"]["leaseTransitions"] > epoch
    assert {"clusterrole/other-mcad", "serviceaccount/other-mcad"} <= other.objects()

    with Dispatcher(plane, other.account(), "--config", str(other.config()), name="goes-on"):
        delete(plane, "bare", namespace=TEAM)
        plane.wait_for(lambda: states(plane, TEAM)["waiting"] == "Running", 60, "its turn has come")


def test_helm_test_leaves_nothing_behind(
    helm: Helm, control_plane: ControlPlane, installed: Release
) -> None:
    """Its account and its rights are there while its pod runs. No image is pulled here, so the end
    of the pod is written by hand; tests/e2e/test_visibility.py runs its command."""
    plane, other = control_plane, Release(helm, control_plane, name="other", namespace=ELSEWHERE)
    pod = f"/api/v1/namespaces/{ELSEWHERE}/pods/other-mcad-check"
    with ThreadPoolExecutor() as beside:
        tested = beside.submit(other.test)
        plane.wait_for(lambda: plane.request("GET", pod)[0] == 200, what="the pod of the test")
        assert len(hooks(plane)) == 3
        ended = {"status": {"phase": "Succeeded"}}
        plane.ask("PATCH", f"{pod}/status", ended, content_type="application/merge-patch+json")
        assert "Succeeded" in tested.result(60)
    assert plane.request("GET", pod)[0] == 404
    assert hooks(plane) == []


def hooks(plane: ControlPlane) -> list[str]:
    """The account, the role and the binding of ``helm test``."""
    kinds = "serviceaccounts,roles,rolebindings"
    label = "app.kubernetes.io/component=test"
    return plane.kubectl("get", kinds, "--all-namespaces", "-l", label, "-o", "name").split()


def test_a_second_release_beside_it_is_refused(
    helm: Helm, control_plane: ControlPlane, installed: Release
) -> None:
    """Objects of the cluster have the name of the release: two of one name collide, and Helm says
    so; under another name the CRDs do."""
    other = Release(helm, control_plane, name="other", namespace="mcad-again")
    for crds in (True, False):
        with pytest.raises(HelmError, match="cannot be imported into the current release"):
            other.install("--dry-run=server", crds={"enabled": crds})
