"""What happens after the dispatch, on a real control plane: both dialects, in short times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcad.api import labels
from tests.controlplane.controlplane import ControlPlane
from tests.e2e import fleet
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers_path,
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
GPU = "nvidia.com/gpu"
HEALTH = "autopilot.ibm.com/gpuhealth"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AVOIDED = {"key": HEALTH, "operator": "NotIn", "values": ["TESTING", "EVICT"]}


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A node for all."""
    control_plane.add_node("node-1", cpu="16", memory="64Gi", pods=500)
    return control_plane


@pytest.fixture(scope="module", autouse=True)
def dispatcher(plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    often = ("--set", "backoffTime=1", "--set", "podCountsInterval=1")
    with Dispatcher(plane, account, *often) as running:
        yield running


@pytest.fixture(autouse=True)
def _emptied(plane: ControlPlane) -> Iterator[None]:
    yield
    delete(plane)


def job(name: str, script: str, **requests: str) -> Json:
    """A Job of one pod that ends as its script says, without a retry of its own."""
    made = pod(name, command=("sh", "-c", script))["spec"]
    made["containers"][0]["resources"]["requests"].update(requests)
    if requests:
        made["containers"][0]["resources"]["limits"] = dict(requests)
    spec = {"backoffLimit": 0, "template": {"spec": made}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def annotated(obj: Json, **notes: str) -> Json:
    """A Deployment whose pods have annotations for the control plane of the tests."""
    meta = obj["spec"]["template"]["metadata"]
    meta["annotations"] = {f"controlplane.test/{k.replace('_', '-')}": v for k, v in notes.items()}
    return obj


def generic(name: str, template: Json, **spec: Any) -> Json:
    """In MCAD's dialect."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"resources": {"GenericItems": [{"generictemplate": template}]}, **spec},
    }


def await_phase(plane: ControlPlane, name: str, phase: str, seconds: float = 60) -> Json:
    """Wait for ``status.phase``; returns the status."""
    plane.wait_for(
        lambda: status_of(plane, name).get("phase") == phase, seconds, f"{name} is {phase}"
    )
    return status_of(plane, name)


def owned(plane: ControlPlane, path: str) -> list[str]:
    """Names of the wrapped objects of a collection."""
    found = items(plane, path)
    return sorted(
        one["metadata"]["name"]
        for one in found
        if f"{GROUP}/appwrapper" in one["metadata"].get("labels", {})
    )


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


JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


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


# -- fault tolerance -----------------------------------------------------------------------------

QUICK = {"failureGracePeriodDuration": "1s", "retryPausePeriodDuration": "6s"}


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
    plane.wait_for(lambda: _running(plane) == 1, 60, "it runs")
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


def _running(plane: ControlPlane) -> int:
    return sum(one["status"].get("phase") == "Running" for one in items(plane, PODS))


def test_a_gpu_that_autopilot_finds_broken_is_left(plane: ControlPlane) -> None:
    """In both dialects, and neither counts it: v1beta2 resets, v1beta1 queues again."""
    gpus = {"cpu": "4", "extended": {GPU: "2"}, "labels": {HEALTH: "PASS"}}
    plane.add_node("gpu-1", **gpus)
    training = appwrapper("training", job("training", "sleep 3600", **{GPU: "1"}))
    create(plane, bearing(training, retryLimit="0", **QUICK))
    create(plane, generic("older", job("older", "sleep 3600", **{GPU: "1"})))
    plane.wait_for(lambda: _running(plane) == 2, 60, "both run")
    plane.add_node("gpu-2", **gpus)
    plane.kubectl("label", "node", "gpu-1", f"{HEALTH}=EVICT", "--overwrite")
    plane.wait_for(lambda: _running_on(plane) == ["gpu-2", "gpu-2"], 90, "they run elsewhere")
    for one in items(plane, PODS):
        required = one["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert required == [{"matchExpressions": [AVOIDED]}], "they keep away from such nodes"
    assert "resettingCount" not in status_of(plane, "training")
    older = status_of(plane, "older")
    assert (older["dispatch"]["attempt"], older.get("numberOfRequeueings", 0)) == (2, 0)
    delete(plane)
    for name in ("gpu-1", "gpu-2"):
        plane.remove_node(name)


def _running_on(plane: ControlPlane) -> list[str]:
    """The nodes of all pods, "" if one does not run."""
    return sorted(
        one["spec"]["nodeName"] if one["status"].get("phase") == "Running" else ""
        for one in items(plane, PODS)
    )


def test_a_node_that_is_not_ready_is_left_and_what_hangs_there_is_forced(
    plane: ControlPlane,
) -> None:
    """No new pod goes there at once; those that run there are evicted by Kubernetes when they no
    longer tolerate it, and no kubelet ends them. Both dialects find another node."""
    leaves_soon = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 1,
    }
    here = {"nodeSelector": {"pool": "frail"}, "tolerations": [leaves_soon]}
    soon = {"warmupGracePeriodDuration": "2s", "admissionGracePeriodDuration": "2s"}
    force = {"forcefulDeletionGracePeriodDuration": "2s", "retryPausePeriodDuration": "0s"}
    plane.add_node("frail-1", cpu="2", labels={"pool": "frail"})
    one, two = (annotated(deployment(n, 1, "500m", **here), hangs="true") for n in ("one", "two"))
    rules = {"minAvailable": 1, "requeuing": {"timeInSeconds": 1}}
    create(plane, bearing(appwrapper("one", one), **soon, **force))
    create(plane, bearing(generic("two", two, schedulingSpec=rules), **force))
    plane.wait_for(lambda: _running_on(plane) == ["frail-1", "frail-1"], 60, "both run")

    plane.spoil_node("frail-1")
    create(plane, appwrapper("three", pod("three", nodeSelector={"pool": "frail"})))
    plane.wait_for(lambda: status_of(plane, "three").get("queuejobstate"), 60, "three is judged")
    plane.wait_for(lambda: items(plane, PODS) == [], 120, "their pods are gone")
    assert status_of(plane, "three")["queuejobstate"] == "Backoff"
    states = ("Suspended", "Pending")
    plane.wait_for(
        lambda: states == (status_of(plane, "one")["phase"], status_of(plane, "two")["state"]),
        60,
        "both wait for a node",
    )
    assert status_of(plane, "one")["resettingCount"] == 1
    assert status_of(plane, "two")["numberOfRequeueings"] == 1

    plane.add_node("frail-2", cpu="2", labels={"pool": "frail"})
    plane.wait_for(lambda: _running_on(plane) == ["frail-2"] * 3, 60, "all run on the other node")
    plane.kubectl("annotate", "pods", "--all", "controlplane.test/hangs-")
    delete(plane)
    for name in ("frail-1", "frail-2"):
        plane.remove_node(name)


def test_a_node_is_not_ready_and_then_gone(plane: ControlPlane) -> None:
    """While it may come back, those that run there are left alone, and no new pod goes there. When
    it is gone, so are their pods, and they find another node: a reset, and a requeue."""
    here = {"nodeSelector": {"pool": "doomed"}}
    soon = {"warmupGracePeriodDuration": "3s", "admissionGracePeriodDuration": "3s", **QUICK}
    plane.add_node("doomed-1", cpu="2", labels={"pool": "doomed"})
    rules = {"minAvailable": 1, "requeuing": {"timeInSeconds": 2}}
    one, two = (deployment(name, 1, "500m", **here) for name in ("one", "two"))
    create(plane, bearing(appwrapper("one", one), **soon))
    create(plane, generic("two", two, schedulingSpec=rules))
    plane.wait_for(lambda: _running_on(plane) == ["doomed-1", "doomed-1"], 60, "both run")

    plane.spoil_node("doomed-1")
    create(plane, appwrapper("three", pod("three", **here)))
    plane.wait_for(
        lambda: status_of(plane, "three").get("queuejobstate") == "Backoff", 60, "three waits"
    )
    fleet.wait_until_quiet(plane, 5)  # longer than any grace of theirs
    assert states(plane) == {"one": "Running", "two": "Running", "three": "Pending"}
    assert [status_of(plane, name)["dispatch"]["attempt"] for name in ("one", "two")] == [1, 1]

    plane.remove_node("doomed-1")
    waiting = {"one": "Pending", "two": "Pending", "three": "Pending"}
    plane.wait_for(
        lambda: states(plane) == waiting and items(plane, PODS) == [], 120, "all wait for a node"
    )
    await_phase(plane, "one", "Suspended")
    assert status_of(plane, "one")["resettingCount"] == 1
    assert status_of(plane, "two")["numberOfRequeueings"] == 1

    plane.add_node("doomed-2", cpu="2", labels={"pool": "doomed"})
    plane.wait_for(lambda: _running_on(plane) == ["doomed-2"] * 3, 60, "all run on another node")
    assert [status_of(plane, name)["dispatch"]["attempt"] for name in ("one", "two")] == [2, 2]
    delete(plane)
    plane.remove_node("doomed-2")


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


# -- suspended and deleted at any time -----------------------------------------------------------

PHASES = (
    "Suspended",
    "Resuming",
    "Running",
    "Suspending",
    "Resetting",
    PAUSING := "Resetting, in the pause",
    "Failed",
    "Succeeded",
    "Terminating",
)
HELD = {"Suspending", "Resetting", "Terminating"}
"""Phases that last for as long as an object has to go and does not."""

FINALIZER = {"metadata": {"finalizers": ["example.com/keep"]}}
NO_ROOM = {"metadata": {"name": "no-room-for-more"}}
NOT_NOW = {
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"full": "true"}},
    },
    "validations": [{"expression": "false", "reason": "RequestEntityTooLarge"}],
}
"""What an API server says that takes nothing for now; it is asked again."""


@pytest.fixture(scope="module")
def _full(plane: ControlPlane) -> None:
    kind = {"apiVersion": "admissionregistration.k8s.io/v1"}
    bind = {"policyName": "no-room-for-more", "validationActions": ["Deny"]}
    plane.apply(
        [
            {**kind, "kind": "ValidatingAdmissionPolicy", **NO_ROOM, "spec": NOT_NOW},
            {**kind, "kind": "ValidatingAdmissionPolicyBinding", **NO_ROOM, "spec": bind},
        ]
    )
    _fill(plane, full=True)
    probe = configmap("probe")
    path = "/api/v1/namespaces/default/configmaps?dryRun=All"
    plane.wait_for(lambda: plane.request("POST", path, probe)[0] == 413, what="the policy")
    _fill(plane, full=False)


def _fill(plane: ControlPlane, *, full: bool) -> None:
    """Whether the namespace takes ConfigMaps."""
    plane.kubectl("label", "namespace", "default", f"full={str(full).lower()}", "--overwrite")


def brought_to(plane: ControlPlane, phase: str, name: str) -> None:
    """An AppWrapper that stays in this phase, for some until it is ``released``."""
    obj = appwrapper(name, deployment(name, 1), configmap(name))
    match phase:
        case "Suspended":
            obj = appwrapper(name, pod(name, cpu="999"))
        case "Resuming":
            _fill(plane, full=True)
            bearing(obj, admissionGracePeriodDuration="1h")
        case "Resetting" | "Resetting, in the pause":
            obj = appwrapper(name, job(name, "sleep 2; exit 1"), configmap(name))
            pause = "1h" if phase == PAUSING else "0s"
            bearing(obj, retryPausePeriodDuration=pause, failureGracePeriodDuration="1s")
        case "Failed":
            obj = appwrapper(name, job(name, "sleep 1; exit 1"))
            bearing(obj, retryLimit="0", deletionOnFailureGracePeriodDuration="1h")
        case "Succeeded":
            obj = appwrapper(name, job(name, "sleep 1"))
        case _:
            pass
    create(plane, obj)
    if phase in HELD:
        plane.wait_for(lambda: name in owned(plane, CONFIGMAPS), what="its ConfigMap")
        plane.kubectl("patch", "configmap", name, "--type=merge", "-p", json.dumps(FINALIZER))
    if phase in ("Suspending", "Terminating"):
        await_phase(plane, name, "Running")
    if phase == "Suspending":
        patch(plane, name, {"spec": {"suspend": True}})
    if phase == "Terminating":
        after_its_objects = {"propagationPolicy": "Foreground"}
        plane.request("DELETE", f"{appwrappers_path()}/{name}", after_its_objects)
    await_phase(plane, name, phase.partition(",")[0])


def released(plane: ControlPlane, phase: str, name: str) -> None:
    """What kept it in its phase is over."""
    if phase == "Resuming":
        _fill(plane, full=False)
    if phase in HELD:
        free = json.dumps({"metadata": {"finalizers": None}})
        plane.kubectl("patch", "configmap", name, "--type=merge", "-p", free)


SUSPENDED = {phase: phase for phase in PHASES} | {
    "Resuming": "Suspended",
    "Running": "Suspended",
    "Resetting": "Suspending",
    PAUSING: "Suspended",
}
RESUMED = {phase: phase for phase in PHASES} | {PAUSING: "Running"}
RELEASED = {"Resuming": "Running", "Suspending": "Running"}


@pytest.mark.usefixtures("_full")
@pytest.mark.parametrize("phase", PHASES)
def test_suspend_may_be_set_and_unset_in_every_phase(plane: ControlPlane, phase: str) -> None:
    name = f"to-suspend-{PHASES.index(phase)}"
    brought_to(plane, phase, name)
    patch(plane, name, {"spec": {"suspend": True}})
    await_phase(plane, name, SUSPENDED[phase])
    if SUSPENDED[phase] in ("Suspended", "Failed"):
        plane.wait_for(
            lambda: not owned(plane, JOBS) and not owned(plane, PODS), 60, "nothing is left"
        )
    patch(plane, name, {"spec": {"suspend": False}})
    await_phase(plane, name, RESUMED[phase])
    released(plane, phase, name)
    if phase in RELEASED:
        await_phase(plane, name, RELEASED[phase])
    if phase == "Resetting":
        plane.wait_for(
            lambda: status_of(plane, name)["dispatch"]["attempt"] > 1, 60, "it is tried again"
        )
    if phase == "Terminating":
        plane.wait_for(lambda: owned_or_all(plane, appwrappers_path()) == [], 60, "it is gone")


@pytest.mark.usefixtures("_full")
@pytest.mark.parametrize("phase", PHASES)
def test_it_may_be_deleted_in_every_phase(plane: ControlPlane, phase: str) -> None:
    name = f"to-delete-{PHASES.index(phase)}"
    brought_to(plane, phase, name)
    plane.request("DELETE", f"{appwrappers_path()}/{name}")
    if phase in HELD:
        plane.wait_for(lambda: owned(plane, JOBS) == owned(plane, PODS) == [], 60, "the rest goes")
        assert owned(plane, CONFIGMAPS) == [name]
    released(plane, phase, name)
    for path in (appwrappers_path(), JOBS, PODS, DEPLOYMENTS, CONFIGMAPS):
        plane.wait_for(lambda path=path: owned_or_all(plane, path) == [], 60, f"no {path} is left")


ORPHANED = {
    "Suspended": [],
    "Resuming": [DEPLOYMENTS],
    "Running": [CONFIGMAPS, DEPLOYMENTS],
    "Suspending": [],
    PAUSING: [],
    "Failed": [JOBS],
    "Succeeded": [JOBS],
}
"""Where something stays of an AppWrapper that is deleted without its objects, by its phase."""


@pytest.mark.usefixtures("_full")
@pytest.mark.parametrize("phase", ORPHANED)
def test_what_is_orphaned_stays(plane: ControlPlane, phase: str) -> None:
    name = f"to-orphan-{PHASES.index(phase)}"
    brought_to(plane, phase, name)
    before = kept(plane)
    assert sorted(before) == ORPHANED[phase]
    plane.kubectl("delete", "appwrapper", name, "--cascade=orphan")
    released(plane, phase, name)
    assert owned_or_all(plane, appwrappers_path()) == []
    fleet.wait_until_quiet(plane, 5)
    assert kept(plane) == before
    for path in before:
        (found,) = (one for one in items(plane, path) if one["metadata"]["name"] == name)
        assert found["metadata"].get("ownerReferences", []) == []
        plane.request("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"})
    for path in (JOBS, PODS, DEPLOYMENTS, CONFIGMAPS):
        plane.wait_for(lambda path=path: owned(plane, path) == [], 60, f"no {path} is left")


def kept(plane: ControlPlane) -> dict[str, list[str]]:
    """The uids of wrapped objects that are not being deleted, by their collection, if it has
    any."""
    found = {
        path: [
            one["metadata"]["uid"]
            for one in items(plane, path)
            if f"{GROUP}/appwrapper" in one["metadata"].get("labels", {})
            and "deletionTimestamp" not in one["metadata"]
        ]
        for path in (JOBS, DEPLOYMENTS, CONFIGMAPS)
    }
    return {path: uids for path, uids in found.items() if uids}


@pytest.mark.parametrize("dialect", ["v1beta1", "v1beta2"])
def test_what_is_orphaned_keeps_its_room(plane: ControlPlane, dialect: str) -> None:
    here = {"nodeSelector": {"pool": "home"}}
    plane.add_node("home-1", cpu="2", labels={"pool": "home"})
    first = deployment("first", 1, "1500m", **here)
    create(plane, generic("first", first) if dialect == "v1beta1" else appwrapper("first", first))
    plane.wait_for(lambda: _running_on(plane) == ["home-1"], 60, "the first runs")
    plane.kubectl("delete", "appwrapper", "first", "--cascade=orphan")
    create(plane, appwrapper("second", deployment("second", 1, "1500m", **here)))
    plane.wait_for(
        lambda: status_of(plane, "second").get("queuejobstate") == "Backoff", 60, "second waits"
    )
    fleet.wait_until_quiet(plane, 5)
    assert [one["metadata"]["labels"]["app"] for one in items(plane, PODS)] == ["first"]
    plane.kubectl("delete", "deployment", "first")
    plane.wait_for(
        lambda: status_of(plane, "second").get("running") == 1, 60, "the second has its room"
    )
    delete(plane)
    plane.remove_node("home-1")


MCADS = {
    "waiting": "Pending",
    "running": "Running",
    "holding": "RunningHoldCompletion",
    "late": "Failed",
    "done": "Completed",
    "given-up": "Deleted",
}
"""Names of AppWrappers of MCAD's dialect, and the states that they come to."""


def _in_mcads_states(plane: ControlPlane) -> None:
    def said(template: Json, word: str) -> Json:
        return {"generictemplate": template, "completionstatus": word}

    never = annotated(deployment("given-up", 1), start_delay="1h")
    rules = {"minAvailable": 1, "requeuing": {"timeInSeconds": 1, "maxNumRequeuings": 1}}
    holding = generic("holding", deployment("holding", 1))
    holding["spec"]["resources"]["GenericItems"] = [said(deployment("holding", 1), "Progressing")]
    done = generic("done", job("done", "sleep 1"))
    done["spec"]["resources"]["GenericItems"] = [said(job("done", "sleep 1"), "Complete")]
    limit = {"dispatchDuration": {"limit": 1}}
    create(plane, generic("given-up", never, schedulingSpec=rules))
    create(plane, generic("late", deployment("late", 1), schedulingSpec=limit))
    create(plane, generic("waiting", pod("waiting", cpu="999")))
    create(plane, generic("running", deployment("running", 1)))
    create(plane, holding)
    create(plane, done)
    plane.wait_for(lambda: states(plane) == MCADS, 90, f"these states: {MCADS}")
    status = status_of(plane, "done")
    assert (status["Succeeded"], status["totalcpu"]) == (1, 100)


def test_suspend_and_deletion_in_mcads_states(plane: ControlPlane) -> None:
    _in_mcads_states(plane)
    for name in MCADS:
        patch(plane, name, {"spec": {"suspend": True}})
    held = MCADS | {"running": "Pending", "holding": "Pending"}
    plane.wait_for(
        lambda: states(plane) == held and not owned(plane, DEPLOYMENTS), 60, "what ran is held"
    )
    for name in MCADS:
        patch(plane, name, {"spec": {"suspend": False}})
    plane.wait_for(lambda: states(plane) == MCADS, 60, "what was held runs again")
    delete(plane)
    for path in (JOBS, PODS, DEPLOYMENTS):
        plane.wait_for(lambda path=path: owned(plane, path) == [], 60, f"no {path} is left")


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


def owned_or_all(plane: ControlPlane, path: str) -> list[str]:
    """Wrapped objects; of AppWrappers all."""
    if path == appwrappers_path():
        return [one["metadata"]["name"] for one in items(plane, path)]
    return owned(plane, path)


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
