"""What a tenant of another namespace writes about an AppWrapper, on a real API server (P7, C3)."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api import labels
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import wait_until_quiet
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    appwrapper,
    configmap,
    create,
    delete,
    deployment,
    pod,
    pods,
    states,
    status_of,
)
from tests.manifests import components, generic, job

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

OTHER = "elsewhere"


@pytest.fixture(scope="module", autouse=True)
def plane(control_plane: ControlPlane) -> ControlPlane:
    """Four CPUs, and a namespace of another tenant."""
    control_plane.add_node("node-1", cpu="4", memory="16Gi", pods=50)
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}}
    assert control_plane.request("POST", "/api/v1/namespaces", made)[0] == 201
    return control_plane


def forged(obj: Json, uid: str, name: str = "a") -> Json:
    """The object with the labels of an item and a controller reference to this uid."""
    marks = {
        labels.APPWRAPPER: name,
        labels.APPWRAPPER_UID: uid,
        labels.ATTEMPT: "1",
        labels.ITEM: "0",
    }
    owner = {
        "apiVersion": f"{labels.GROUP}/v1beta2",
        "kind": labels.KIND,
        "name": name,
        "uid": uid,
        "controller": True,
    }
    metadata = obj["metadata"]
    metadata["labels"] = metadata.get("labels", {}) | marks
    metadata["ownerReferences"] = [owner]
    return obj


def post(plane: ControlPlane, path: str, obj: Json) -> None:
    status, answer = plane.request("POST", path, obj)
    assert status == 201, answer


def runs(plane: ControlPlane, name: str) -> None:
    plane.wait_for(lambda: states(plane).get(name) == "Running", 60, f"{name} runs")


def test_labels_and_references_of_another_tenant_move_nothing(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    uid = create(plane, appwrapper("a", configmap("settings"), deployment("a", 1, "1")))["metadata"]
    runs(plane, "a")
    before = status_of(plane, "a")
    failing = pod("crash", "100m", command=("sh", "-c", "exit 1"))
    post(plane, f"/api/v1/namespaces/{OTHER}/pods", forged(failing, uid["uid"]))
    copy = forged(configmap("settings-copy"), uid["uid"])
    post(plane, "/api/v1/namespaces/default/configmaps", copy)

    create(plane, appwrapper("b", deployment("b", 1, "1")))
    runs(plane, "b")  # and everything before it has been looked at
    assert status_of(plane, "a")["phase"] == before["phase"]
    assert status_of(plane, "a")["conditions"] == before["conditions"]
    kept = plane.request("GET", "/api/v1/namespaces/default/configmaps/settings-copy")
    assert kept[0] == 200
    delete(plane)


def test_an_invented_appwrapper_keeps_no_room(plane: ControlPlane, dispatcher: Dispatcher) -> None:
    """A ResourceQuota of 1 CPU lets one pod in; the manifest says 40."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    post(plane, f"/api/v1/namespaces/{OTHER}/resourcequotas", quota)
    lie = forged(deployment("lie", 40, "1"), "00000000-1111-2222-3333-444444444444")
    lie["metadata"]["finalizers"] = ["example.com/stays"]
    post(plane, f"/apis/apps/v1/namespaces/{OTHER}/deployments", lie)
    plane.wait_for(
        lambda: any(one["spec"].get("nodeName") for one in pods(plane, OTHER)), 60, "its one pod"
    )
    create(plane, appwrapper("c", deployment("c", 1, "2")))
    runs(plane, "c")
    path = f"/apis/apps/v1/namespaces/{OTHER}/deployments/lie"
    patch = {"metadata": {"finalizers": None}}
    plane.request("PATCH", path, patch)
    plane.request("DELETE", path)
    delete(plane)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_job_that_a_user_deletes_is_missed(
    plane: ControlPlane, dispatcher: Dispatcher, version: str
) -> None:
    wrap = generic if version == "v1beta1" else components
    made = wrap("gone", job("gone", 1, "100m", 1000))
    made["metadata"]["namespace"] = "default"
    create(plane, made)
    runs(plane, "gone")
    plane.wait_for(lambda: len(pods(plane)) == 1, 60, "its pod is there")
    plane.kubectl("delete", "job", "gone")
    plane.wait_for(lambda: states(plane)["gone"] == "Failed", 30, "its state is Failed")
    assert "missing: Job default/gone" in str(status_of(plane, "gone")["conditions"])
    delete(plane)


def test_a_job_with_an_edited_attempt_label_is_still_the_item(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    made = generic("marked", job("marked", 1, "100m", 1000))
    made["metadata"]["namespace"] = "default"
    create(plane, made)
    runs(plane, "marked")
    plane.kubectl("label", "job", "marked", "--overwrite", f"{labels.ATTEMPT}=7")
    wait_until_quiet(plane)
    assert states(plane)["marked"] == "Running"
    # Labelled while no dispatcher runs, it is a stray of an attempt to come: deleted, and missed.
    dispatcher.stop()
    dispatcher.start()
    plane.wait_for(lambda: states(plane)["marked"] == "Failed", 60, "its state is Failed")
    delete(plane)
