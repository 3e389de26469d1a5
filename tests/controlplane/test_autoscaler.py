"""What ADR 68 stands on: how the real cluster-autoscaler treats requests for nodes.

Each fact is one on which a decision of ours rests: run these first with another version of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.autoscaler import NodeGroup, autoscaler, binary_or_skip, kinds
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

API = "/apis/autoscaling.x-k8s.io"
REQUESTS = f"{API}/v1/namespaces/default/provisioningrequests"
BUFFERS = f"{API}/v1beta1/namespaces/default/capacitybuffers"
GPU = "nvidia.com/gpu"
CPUS = NodeGroup("cpus", "4", 6)
GPUS = NodeGroup("gpus", "8", 2, extended={GPU: "8"}, taints=[{"key": GPU, "effect": "NoSchedule"}])


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """No nodes, and two groups of them."""
    binary_or_skip()
    with controlplane_or_skip(kinds=kinds()) as plane, autoscaler(plane, CPUS, GPUS):
        yield plane


def template(plane: ControlPlane, name: str, cpu: str, gpus: int = 0) -> None:
    """A PodTemplate; one with GPUs tolerates the taint of their nodes."""
    extended = {GPU: str(gpus)} if gpus else {}
    container = {"requests": {"cpu": cpu, **extended}, "limits": extended}
    spec = {
        "containers": [{"name": "main", "image": "busybox:1.36", "resources": container}],
        "tolerations": [{"key": GPU, "operator": "Exists"}] if gpus else [],
    }
    body = {"metadata": {"name": name}, "template": {"spec": spec}}
    plane.ask("POST", "/api/v1/namespaces/default/podtemplates", body)


def request(plane: ControlPlane, name: str, **pods: int) -> None:
    """A ProvisioningRequest for so many pods of each template."""
    sets = [{"count": count, "podTemplateRef": {"name": of}} for of, count in pods.items()]
    kind = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    body = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name},
        "spec": {"provisioningClassName": kind, "podSets": sets},
    }
    plane.ask("POST", REQUESTS, body)


def condition(plane: ControlPlane, path: str, name: str) -> tuple[str, str]:
    """Status and reason of a condition, as soon as there is one."""

    def found() -> Json | None:
        given = plane.get(path).get("status", {}).get("conditions") or []
        return next((one for one in given if one["type"] == name), None)

    one = plane.wait_for(found, 60, f"{path} has a condition {name}")
    return one["status"], one["reason"]


def nodes(plane: ControlPlane) -> int:
    return len(plane.get("/api/v1/nodes")["items"])


def test_a_request_fills_free_room_before_nodes_are_added(plane: ControlPlane) -> None:
    template(plane, "three", "3")
    template(plane, "half", "500m")
    request(plane, "first", three=2)
    assert condition(plane, f"{REQUESTS}/first", "Provisioned") == ("True", "CapacityIsProvisioned")
    plane.wait_for(lambda: nodes(plane) == 2)
    request(plane, "second", half=2)  # what the first one leaves
    assert condition(plane, f"{REQUESTS}/second", "Provisioned") == ("True", "CapacityIsFound")
    request(plane, "third", three=1)  # but not what is booked for it
    assert condition(plane, f"{REQUESTS}/third", "Provisioned") == ("True", "CapacityIsProvisioned")
    plane.wait_for(lambda: nodes(plane) == 3)


def test_a_request_that_cannot_be_served_is_not_failed_and_blocks_no_other(
    plane: ControlPlane,
) -> None:
    template(plane, "huge", "64")
    template(plane, "three", "3")
    request(plane, "never", huge=1)
    request(plane, "many", three=7)
    request(plane, "can", three=2)
    for name in ("never", "many"):
        told = condition(plane, f"{REQUESTS}/{name}", "Provisioned")
        assert told == ("False", "CapacityIsNotFound")
    assert condition(plane, f"{REQUESTS}/can", "Provisioned")[0] == "True"
    plane.wait_for(lambda: nodes(plane) == 2)


def test_one_request_is_served_from_one_node_group(plane: ControlPlane) -> None:
    template(plane, "three", "3")
    template(plane, "gpu", "1", gpus=8)
    request(plane, "both", three=1, gpu=1)
    told = condition(plane, f"{REQUESTS}/both", "Provisioned")
    assert told == ("False", "CapacityIsNotFound")
    request(plane, "one-0", three=1)
    request(plane, "one-1", gpu=1)
    for name in ("one-0", "one-1"):
        assert condition(plane, f"{REQUESTS}/{name}", "Provisioned")[0] == "True"


def test_a_request_without_its_template_fails_for_good(plane: ControlPlane) -> None:
    request(plane, "early", three=1)
    assert condition(plane, f"{REQUESTS}/early", "Failed") == ("True", "FailedToCreatePods")


def test_a_buffer_is_filled_again_when_pods_use_it(plane: ControlPlane) -> None:
    template(plane, "three", "3")
    body = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "buffer"},
        "spec": {"podTemplateRef": {"name": "three"}, "replicas": 2},
    }
    plane.ask("POST", BUFFERS, body)
    assert condition(plane, f"{BUFFERS}/buffer", "Provisioning") == ("True", "FakePodsInjected")
    plane.wait_for(lambda: nodes(plane) == 2)
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": "3"}}}
    pod = {"metadata": {"name": "one"}, "spec": {"containers": [container]}}
    plane.ask("POST", "/api/v1/namespaces/default/pods", pod)
    plane.wait_for(lambda: nodes(plane) == 3)
