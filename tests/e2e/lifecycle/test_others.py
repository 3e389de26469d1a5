"""What others do: delete its namespace or its Job, and write what only the dispatcher should."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcad.api import labels
from tests.controlplane.controlplane import ControlPlane
from tests.e2e import fleet
from tests.e2e.lifecycle.objects import CONFIGMAPS, generic, job
from tests.e2e.lifecycle.phases import FINALIZER
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    appwrapper,
    appwrappers_path,
    conditions_of,
    configmap,
    create,
    deployment,
    pod,
    pods,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]


# -- a namespace that goes -----------------------------------------------------------------------


def test_a_namespace_is_deleted_with_what_is_in_it(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    """First while no controller empties it: whatever is begun there is refused, told and given
    up, and nothing is written any more. Then it is emptied, and nothing of ours keeps it."""
    plane.create_namespace("doomed")
    within = {"namespace": "doomed"}
    kept, later = configmap("kept"), {"spec": {"suspend": False}}
    create(plane, appwrapper("runs", deployment("runs", 1), kept, **within))
    create(plane, appwrapper("held", pod("held"), suspend=True, **within))
    create(plane, generic("older", pod("older"), suspend=True) | _metadata("older"))
    plane.wait_for(lambda: status_of(plane, "runs", "doomed").get("phase") == "Running", 60, "runs")
    keep = ("patch", "configmap", "kept", "--namespace=doomed", "--type=merge", "-p")
    plane.kubectl(*keep, json.dumps(FINALIZER))

    plane.end("kube-controller-manager")
    plane.request("DELETE", "/api/v1/namespaces/doomed")
    mark = plane.audit_mark()
    for name in ("held", "older"):
        plane.kubectl("patch", "aw", name, "-n", "doomed", "--type=merge", "-p", json.dumps(later))
        plane.wait_for(
            lambda name=name: status_of(plane, name, "doomed").get("state") == "Failed", 60, name
        )
        failed = conditions_of(plane, name, "doomed")["Failed"]
        assert failed["reason"] == "ItemCreationFailure."
        assert "because it is being terminated" in failed["message"]
    # An upstream controller's finalizer would keep it; ours to take away, there too.
    plane.kubectl("patch", "aw", "held", "-n", "doomed", "--type=merge", "-p", json.dumps(LEFT))
    plane.wait_for(lambda: _finalizers(plane, "held") == [], 60, "its finalizer is taken away")
    fleet.wait_until_quiet(plane)
    asked = fleet.ours(plane.audit(mark))
    refused = [one for one in asked if one.code == 403 and one.verb == "create"]
    assert len([one for one in refused if one.resource == "pods"]) == 2
    assert len(fleet.events(refused)) < 10

    plane.restart("kube-controller-manager")
    plane.wait_for(lambda: states(plane, "doomed") == {}, 60, "no AppWrapper keeps it")
    plane.kubectl(*keep, json.dumps({"metadata": {"finalizers": None}}))
    plane.wait_for(
        lambda: plane.request("GET", "/api/v1/namespaces/doomed")[0] == 404, 60, "it is gone"
    )
    fleet.wait_until_quiet(plane)
    assert dispatcher.get("/readyz")[0] == 200


LEFT = {"metadata": {"finalizers": ["workload.codeflare.dev/finalizer"]}}


def _metadata(name: str) -> Json:
    return {"metadata": {"name": name, "namespace": "doomed"}}


def _finalizers(plane: ControlPlane, name: str) -> list[str]:
    found = plane.request("GET", f"{appwrappers_path('doomed')}/{name}")[1]
    kept: list[str] = found["metadata"].get("finalizers", [])
    return kept


# -- the garbage collector -----------------------------------------------------------------------


def test_the_garbage_collector_reads_no_item_and_no_owner(plane: ControlPlane) -> None:
    """It reads both if an owner reference has another version than that in which it watches the
    owner (ADR 56)."""
    mark = plane.audit_mark()
    create(plane, appwrapper("later", pod("later")), generic("older", pod("older")))
    plane.wait_for(lambda: len(pods(plane)) == 2, 60, "both have their pod")
    fleet.wait_until_quiet(plane)
    read = [one for one in plane.audit(mark) if one.user.endswith(COLLECTOR) and one.name]
    assert [(one.verb, one.resource, one.name) for one in read] == []


COLLECTOR = "generic-garbage-collector"


# -- what others write about its objects (P7, C3) ------------------------------------------------


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


def runs(plane: ControlPlane, name: str) -> None:
    plane.wait_for(lambda: states(plane).get(name) == "Running", 60, f"{name} runs")


def test_labels_and_references_of_another_tenant_move_nothing(plane: ControlPlane) -> None:
    made = create(plane, appwrapper("a", configmap("settings"), deployment("a", 1, "1")))
    runs(plane, "a")
    before, uid = status_of(plane, "a"), made["metadata"]["uid"]
    plane.create_namespace("elsewhere")
    failing = forged(pod("crash", "100m", command=("sh", "-c", "exit 1")), uid)
    assert plane.request("POST", "/api/v1/namespaces/elsewhere/pods", failing)[0] == 201
    copy = forged(configmap("settings-copy"), uid)
    assert plane.request("POST", CONFIGMAPS, copy)[0] == 201

    create(plane, appwrapper("b", deployment("b", 1, "1")))
    runs(plane, "b")  # and everything before it has been looked at
    assert status_of(plane, "a")["phase"] == before["phase"]
    assert status_of(plane, "a")["conditions"] == before["conditions"]
    assert plane.request("GET", f"{CONFIGMAPS}/settings-copy")[0] == 200


def test_an_invented_appwrapper_keeps_no_room(plane: ControlPlane) -> None:
    """A ResourceQuota of 1 CPU lets one pod in; the manifest says 40."""
    plane.create_namespace("cramped")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    plane.apply(quota | {"spec": {"hard": {"requests.cpu": "1"}}}, namespace="cramped")
    lie = forged(deployment("lie", 40, "1"), "00000000-1111-2222-3333-444444444444")
    lie["metadata"]["finalizers"] = ["example.com/stays"]
    path = "/apis/apps/v1/namespaces/cramped/deployments"
    assert plane.request("POST", path, lie)[0] == 201
    plane.wait_for(
        lambda: any(one["spec"].get("nodeName") for one in pods(plane, "cramped")), 60, "a pod"
    )
    create(plane, appwrapper("c", deployment("c", 1, "2")))
    runs(plane, "c")
    plane.kubectl("patch", "deploy", "lie", "-n=cramped", "-p", '{"metadata":{"finalizers":null}}')
    plane.request("DELETE", f"{path}/lie")


@pytest.mark.parametrize("wrap", [generic, appwrapper], ids=["v1beta1", "v1beta2"])
def test_a_job_that_a_user_deletes_is_missed(
    plane: ControlPlane, wrap: Callable[[str, Json], Json]
) -> None:
    create(plane, wrap("gone", job("gone", "sleep 1000")))
    runs(plane, "gone")
    plane.wait_for(lambda: len(pods(plane)) == 1, 60, "its pod is there")
    plane.kubectl("delete", "job", "gone")
    plane.wait_for(lambda: states(plane)["gone"] == "Failed", 30, "its state is Failed")
    assert "missing: Job default/gone" in str(status_of(plane, "gone")["conditions"])


def test_a_job_with_an_edited_attempt_label_is_still_the_item(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    create(plane, generic("marked", job("marked", "sleep 1000")))
    runs(plane, "marked")
    plane.kubectl("label", "job", "marked", "--overwrite", f"{labels.ATTEMPT}=7")
    fleet.wait_until_quiet(plane)
    assert states(plane)["marked"] == "Running"
    # Labelled while no dispatcher runs, it is a stray of an attempt to come: deleted, and missed.
    dispatcher.stop()
    dispatcher.start()
    plane.wait_for(lambda: states(plane)["marked"] == "Failed", 60, "its state is Failed")
