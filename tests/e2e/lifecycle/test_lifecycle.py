"""Requeues, resets, ends and what is told of them, in both dialects."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e import fleet
from tests.e2e.lifecycle.objects import (
    DEPLOYMENTS,
    JOBS,
    PODS,
    QUICK,
    annotated,
    await_phase,
    generic,
    job,
    owned,
    running,
)
from tests.e2e.support import (
    GROUP,
    appwrapper,
    conditions_of,
    configmap,
    create,
    delete,
    deployment,
    items,
    patch,
    pod,
    pods,
    states,
    status_of,
)
from tests.manifests import bearing

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]


def test_a_deployment_of_mcad_may_select_by_labels_that_only_itself_has(
    plane: ControlPlane,
) -> None:
    """MCAD copies them into the template, so such manifests exist."""
    made = deployment("web", 1)
    made["metadata"]["labels"] = {"app": "web-of-mcad"}
    made["spec"]["selector"] = {"matchLabels": {"app": "web-of-mcad"}}
    made["spec"]["template"]["metadata"]["labels"] = {"tier": "front"}
    create(plane, generic("web", made))
    plane.wait_for(lambda: status_of(plane, "web").get("running") == 1, 60, "its pod runs")


# -- MCAD's dialect ------------------------------------------------------------------------------


def test_with_too_few_pods_it_is_requeued_and_given_up_at_last(plane: ControlPlane) -> None:
    never = annotated(deployment("late", 1), start_delay="1h")
    rules = {
        "minAvailable": 1,
        "requeuing": {"timeInSeconds": 2, "growthType": "none", "maxNumRequeuings": 1},
    }
    create(plane, generic("late", never, schedulingSpec=rules))
    plane.wait_for(
        lambda: status_of(plane, "late").get("state") == "Deleted", 90, "late is given up"
    )
    status = status_of(plane, "late")
    assert status["numberOfRequeueings"] == 1
    assert status["requeueingTimeInSeconds"] == 2
    candidate = conditions_of(plane, "late")["PreemptCandidate"]
    assert candidate["reason"] == "MinPodsNotRunning"
    assert candidate["message"] == (
        "Insufficient number of Running and Completed pods, minimum=1, running=0, completed=0."
    )
    plane.wait_for(lambda: owned(plane, DEPLOYMENTS) == [], 30, "its objects are gone")


def test_its_time_is_limited(plane: ControlPlane) -> None:
    rules = {"dispatchDuration": {"limit": 3}}
    create(plane, generic("brief", deployment("brief", 1), schedulingSpec=rules))
    plane.wait_for(lambda: status_of(plane, "brief").get("state") == "Failed", 60, "it fails")
    failed = conditions_of(plane, "brief")["Failed"]
    assert (failed["reason"], failed["message"]) == (
        "DispatchDeadlineExceeded",
        "Dispatch deadline exceeded. allowed to run for 3 seconds",
    )
    plane.wait_for(lambda: owned(plane, DEPLOYMENTS) == [], 30, "its objects are gone")


def test_its_time_is_that_in_which_its_pods_could_run(plane: ControlPlane) -> None:
    """No scheduler gives this pod a node, until the test does."""
    rules = {"dispatchDuration": {"limit": 15}}
    template = pod("placed-late", schedulerName="none")
    create(plane, generic("late", template, schedulingSpec=rules))
    plane.wait_for(lambda: pods(plane), what="its pod exists")
    since = time.monotonic()
    plane.wait_for(lambda: time.monotonic() - since > 12, what="most of its time is over")
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "placed-late"}}
    path = "/api/v1/namespaces/default/pods/placed-late/binding"
    assert plane.request("POST", path, binding | {"target": target})[0] == 201
    bound = time.monotonic()
    plane.wait_for(lambda: states(plane)["late"] == "Failed", 60, "its time is over")
    assert time.monotonic() - bound > 13
    assert conditions_of(plane, "late")["Failed"]["reason"] == "DispatchDeadlineExceeded"


# -- fault tolerance -----------------------------------------------------------------------------


def test_what_fails_is_retried_and_fails_at_last(plane: ControlPlane) -> None:
    failing = appwrapper("failing", job("failing", "sleep 1; exit 1"), configmap("with-it"))
    patient = QUICK | {"failureGracePeriodDuration": "1m"}  # the Job says so before that
    create(plane, bearing(failing, retryLimit="1", terminalExitCodes="2, 3", **patient))
    await_phase(plane, "failing", "Resetting")
    assert conditions_of(plane, "failing")["QuotaReserved"]["status"] == "True"
    status = await_phase(plane, "failing", "Failed", 90)
    assert (status["resettingCount"], status["state"]) == (1, "Failed")
    assert conditions_of(plane, "failing")["Unhealthy"]["reason"] == "FailedComponent"
    plane.wait_for(lambda: owned(plane, JOBS) == [], 30, "its objects are gone")
    assert status_of(plane, "failing")["dispatch"]["attempt"] == 2


def test_a_terminal_exit_code_is_the_end(plane: ControlPlane) -> None:
    fatal = appwrapper("fatal", pod("fatal", command=("sh", "-c", "exit 3")))
    at_once = {"failureGracePeriodDuration": "0s", "retryPausePeriodDuration": "0s"}
    create(plane, bearing(fatal, terminalExitCodes="2, 3", **at_once))
    assert "resettingCount" not in await_phase(plane, "fatal", "Failed")


def test_what_failed_is_kept_and_what_succeeded_too(plane: ControlPlane) -> None:
    kept = appwrapper("kept", job("kept", "sleep 1; exit 1"))
    for_a_while = {"deletionOnFailureGracePeriodDuration": "5s"}
    create(plane, bearing(kept, retryLimit="0", **for_a_while, **QUICK))
    create(plane, bearing(appwrapper("done", job("done", "sleep 1")), successTTLDuration="5s"))
    older = generic("older", job("older", "sleep 1"))
    older["spec"]["resources"]["GenericItems"][0]["completionstatus"] = "Complete"
    create(plane, bearing(older, successTTLDuration="5s"))
    await_phase(plane, "kept", "Failed")
    await_phase(plane, "done", "Succeeded")
    assert {"done", "kept"} <= set(owned(plane, JOBS))
    assert conditions_of(plane, "kept")["DeletingResources"]["reason"] == "DeletionPaused"
    plane.wait_for(lambda: owned(plane, JOBS) == [], 60, "their time is over")
    plane.wait_for(
        lambda: conditions_of(plane, "done")["ResourcesDeployed"]["status"] == "False",
        30,
        "that is shown",
    )
    phases = [status_of(plane, name)["phase"] for name in ("kept", "done")]
    assert (*phases, states(plane)["older"]) == ("Failed", "Succeeded", "Completed")


def test_a_pod_that_does_not_go_is_deleted_by_force(plane: ControlPlane) -> None:
    """No kubelet ends it, as on a node that is gone for good."""
    hangs = pod("hangs")
    hangs["metadata"]["annotations"] = {"controlplane.test/hangs": "true"}
    create(plane, bearing(appwrapper("hangs", hangs), forcefulDeletionGracePeriodDuration="1s"))
    plane.wait_for(lambda: running(plane) == 1, 60, "it runs")
    since = plane.audit_mark()
    patch(plane, "hangs", {"spec": {"suspend": True}})
    await_phase(plane, "hangs", "Suspended")
    assert items(plane, PODS) == []
    asked = [one for one in plane.audit(since) if (one.verb, one.name) == ("delete", "hangs")]
    assert [one.code for one in asked] == [200, 200]  # asked first, then forced


def test_nonsense_is_told_and_keeps_nothing_from_running(plane: ControlPlane) -> None:
    create(plane, bearing(appwrapper("odd", pod("odd")), retryLimit="many"))
    await_phase(plane, "odd", "Running")
    events = items(plane, "/api/v1/namespaces/default/events")
    notes = [one["message"] for one in events if one["involvedObject"]["name"] == "odd"]
    (note,) = [one for one in notes if "retryLimit" in one]
    field = f"metadata.annotations.{GROUP}.appwrapper/retryLimit"
    assert f"{field}: is the string 'many', not a whole" in note
    assert note.endswith("the default is used, 3.")


# -- pod counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["v1beta1", "v1beta2"])
def test_a_gang_comes_up_and_status_tells_how_many_run(plane: ControlPlane, dialect: str) -> None:
    """Of three hundred changes of its pods few are worth a write."""
    gang = deployment("gang", 100, "10m")
    made = generic("gang", gang) if dialect == "v1beta1" else appwrapper("gang", gang)
    mark = plane.audit_mark()
    create(plane, made)
    plane.wait_for(lambda: status_of(plane, "gang").get("running") == 100, 90, "all run")
    fleet.wait_until_quiet(plane)
    status = status_of(plane, "gang")
    assert (status["totalcpu"], status.get("pending", 0)) == (1000, 0)
    assert "pendingpodconditions" not in status
    written = [one for one in fleet.writes(plane.audit(mark)) if one.resource == "appwrappers"]
    assert 3 <= len(written) < 30


def test_a_pod_without_a_node_is_named(plane: ControlPlane) -> None:
    """Room that was there is taken without asking the dispatcher."""
    here = {"nodeSelector": {"pool": "tight"}}
    plane.add_node("tight-1", cpu="2", labels={"pool": "tight"})
    create(plane, generic("tight", deployment("tight", 1, "1500m", **here)))
    plane.wait_for(lambda: status_of(plane, "tight").get("running") == 1, 60, "it runs")
    plane.kubectl("cordon", "tight-1")
    plane.kubectl("delete", "pods", "--all", "--wait=false")
    plane.wait_for(lambda: "pendingpodconditions" in status_of(plane, "tight"), 60, "it is told")
    (waiting,) = status_of(plane, "tight")["pendingpodconditions"]
    (found,) = items(plane, PODS)
    assert waiting["podname"] == found["metadata"]["name"]
    (said,) = waiting["conditions"]
    assert (said["type"], said["status"], said["reason"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    assert "nodes are available" in said["message"]
    plane.kubectl("uncordon", "tight-1")
    plane.wait_for(lambda: status_of(plane, "tight").get("running") == 1, 60, "it runs again")
    assert "pendingpodconditions" not in status_of(plane, "tight")
    delete(plane)
    plane.remove_node("tight-1")
