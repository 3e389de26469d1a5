"""Nodes that fail under what runs on them: GPUs that are broken, not ready, and gone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e import fleet
from tests.e2e.lifecycle.objects import (
    PODS,
    QUICK,
    annotated,
    generic,
    job,
    running,
    running_on,
)
from tests.e2e.support import (
    appwrapper,
    conditions_of,
    create,
    delete,
    deployment,
    items,
    pod,
    states,
    status_of,
)
from tests.manifests import bearing

Json = dict[str, Any]

pytestmark = pytest.mark.controlplane

GPU = "nvidia.com/gpu"
RACK = "topology.example.com/rack"
HEALTH = "autopilot.ibm.com/gpuhealth"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AVOIDED = {"key": HEALTH, "operator": "NotIn", "values": ["TESTING", "EVICT"]}


def is_told(plane: ControlPlane, name: str) -> bool:
    """Whether it is told that a pod of it finds no node."""
    return conditions_of(plane, name).get("Stalled", {}).get("reason") == "PodsUnschedulable"


def test_a_gpu_that_autopilot_finds_broken_is_left(plane: ControlPlane) -> None:
    """In both dialects, and neither counts it: v1beta2 resets, v1beta1 queues again."""
    gpus = {"cpu": "4", "extended": {GPU: "2"}, "labels": {HEALTH: "PASS"}}
    plane.add_node("gpu-1", **gpus)
    training = appwrapper("training", job("training", "sleep 3600", **{GPU: "1"}))
    create(plane, bearing(training, retryLimit="0", **QUICK))
    create(plane, generic("older", job("older", "sleep 3600", **{GPU: "1"})))
    plane.wait_for(lambda: running(plane) == 2, 60, "both run")
    plane.add_node("gpu-2", **gpus)
    plane.kubectl("label", "node", "gpu-1", f"{HEALTH}=EVICT", "--overwrite")
    plane.wait_for(lambda: running_on(plane) == ["gpu-2", "gpu-2"], 90, "they run elsewhere")
    for one in items(plane, PODS):
        required = one["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert required == [{"matchExpressions": [AVOIDED]}], "they keep away from such nodes"
    assert "resettingCount" not in status_of(plane, "training")
    older = status_of(plane, "older")
    assert (older["dispatch"]["attempt"], older.get("numberOfRequeueings", 0)) == (2, 0)
    delete(plane)
    for name in ("gpu-1", "gpu-2"):
        plane.remove_node(name)


@pytest.mark.parametrize("lasts", [False, True])
def test_a_small_pod_leaves_the_node_that_the_large_one_needs(
    plane: ControlPlane, *, lasts: bool
) -> None:
    """kube-scheduler binds the small pod first, and would put it where most is free. The pods of
    Deployments only prefer other nodes."""
    for name, cpu, gpus in (("whole", "8", "8"), ("part", "4", "7")):
        plane.add_node(name, cpu=cpu, labels={"pool": "gang"}, extended={GPU: gpus})
    here = {"nodeSelector": {"pool": "gang"}}
    small, large = (job(f"needs-{n}", "sleep 3600", **{GPU: str(n)}) for n in (1, 8))
    if lasts:
        small, large = (_for_ever(one) for one in (small, large))
    for one in (small, large):
        one["spec"]["template"]["spec"] |= here
    create(plane, appwrapper("gang", small, large))
    plane.wait_for(lambda: running(plane) == 2, 60, "both are bound")
    assert running_on(plane) == ["part", "whole"]
    assert status_of(plane, "gang")["dispatch"]["attempt"] == 1
    delete(plane)
    for name in ("whole", "part"):
        plane.remove_node(name)


def _for_ever(one: Json) -> Json:
    """A Deployment of the same pod."""
    made = deployment(one["metadata"]["name"], 1)
    made["spec"]["template"]["spec"] = one["spec"]["template"]["spec"] | {"restartPolicy": "Always"}
    return made


def test_all_pods_of_a_gang_are_bound_in_one_rack(plane: ControlPlane) -> None:
    """kube-scheduler would put one of them on the node of the other rack, which has most free."""
    racks = {"a-1": ("a", "32"), "b-1": ("b", "4"), "b-2": ("b", "4")}
    for name, (rack, cpu) in racks.items():
        labels = {"pool": "racks", RACK: rack}
        plane.add_node(name, cpu=cpu, labels=labels, extended={GPU: "8"})
    one = job("racked", "sleep 3600", **{GPU: "8"})
    one["spec"] |= {"parallelism": 2, "completions": 2}
    one["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "racks"}
    asked = {"kueue.x-k8s.io/podset-required-topology": RACK}
    one["spec"]["template"].setdefault("metadata", {})["annotations"] = asked
    create(plane, appwrapper("racked", one))
    plane.wait_for(lambda: running(plane) == 2, 60, "both are bound")
    assert running_on(plane) == ["b-1", "b-2"]
    (domain,) = status_of(plane, "racked")["dispatch"]["domains"]
    assert (domain["label"], domain["value"]) == (RACK, "b")
    delete(plane)
    for name in racks:
        plane.remove_node(name)


def test_a_node_that_is_not_ready_is_left_and_what_hangs_there_is_forced(
    plane: ControlPlane,
) -> None:
    """No new pod goes there at once; those that run there are evicted by Kubernetes when they no
    longer tolerate it, and no kubelet ends them. A Deployment replaces its own, so it is left
    alone; where ``minAvailable`` asks for pods, all of them are taken back."""
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
    plane.wait_for(lambda: running_on(plane) == ["frail-1", "frail-1"], 60, "both run")

    plane.spoil_node("frail-1")
    create(plane, appwrapper("three", pod("three", nodeSelector={"pool": "frail"})))
    plane.wait_for(lambda: status_of(plane, "three").get("queuejobstate"), 60, "three is judged")
    plane.wait_for(lambda: status_of(plane, "two")["state"] == "Pending", 120, "two is taken back")
    plane.wait_for(lambda: len(items(plane, PODS)) == 2, 120, "its pods are gone")
    assert status_of(plane, "three")["queuejobstate"] == "Backoff"
    plane.wait_for(lambda: is_told(plane, "one"), 60, "one is told of")
    assert status_of(plane, "two")["numberOfRequeueings"] == 1

    plane.add_node("frail-2", cpu="2", labels={"pool": "frail"})
    plane.wait_for(lambda: running_on(plane).count("frail-2") == 3, 60, "all run elsewhere")
    assert status_of(plane, "one")["dispatch"]["attempt"] == 1
    plane.kubectl("annotate", "pods", "--all", "controlplane.test/hangs-")
    delete(plane)
    for name in ("frail-1", "frail-2"):
        plane.remove_node(name)


def test_a_node_is_not_ready_and_then_gone(plane: ControlPlane) -> None:
    """While it may come back, those that run there are left alone, and no new pod goes there. When
    it is gone, so are their pods. A Deployment has replaced its own, which waits for a node; where
    ``minAvailable`` asks for pods, it is requeued."""
    here = {"nodeSelector": {"pool": "doomed"}}
    soon = {"warmupGracePeriodDuration": "3s", "admissionGracePeriodDuration": "3s", **QUICK}
    plane.add_node("doomed-1", cpu="2", labels={"pool": "doomed"})
    rules = {"minAvailable": 1, "requeuing": {"timeInSeconds": 2}}
    one, two = (deployment(name, 1, "500m", **here) for name in ("one", "two"))
    create(plane, bearing(appwrapper("one", one), **soon))
    create(plane, generic("two", two, schedulingSpec=rules))
    plane.wait_for(lambda: running_on(plane) == ["doomed-1", "doomed-1"], 60, "both run")

    plane.spoil_node("doomed-1")
    create(plane, appwrapper("three", pod("three", **here)))
    plane.wait_for(
        lambda: status_of(plane, "three").get("queuejobstate") == "Backoff", 60, "three waits"
    )
    fleet.wait_until_quiet(plane, 5)  # longer than any grace of theirs
    assert states(plane) == {"one": "Running", "two": "Running", "three": "Pending"}
    assert [status_of(plane, name)["dispatch"]["attempt"] for name in ("one", "two")] == [1, 1]

    plane.remove_node("doomed-1")
    waiting = {"one": "Running", "two": "Pending", "three": "Pending"}
    plane.wait_for(lambda: states(plane) == waiting, 120, "two waits for a node")
    plane.wait_for(lambda: is_told(plane, "one"), 60, "one is told of")
    assert status_of(plane, "two")["numberOfRequeueings"] == 1

    plane.add_node("doomed-2", cpu="2", labels={"pool": "doomed"})
    plane.wait_for(lambda: running_on(plane) == ["doomed-2"] * 3, 60, "all run on another node")
    assert [status_of(plane, name)["dispatch"]["attempt"] for name in ("one", "two")] == [1, 2]
    delete(plane)
    plane.remove_node("doomed-2")
