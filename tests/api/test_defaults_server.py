"""The demand that we judge by against the pods that a real API server makes of the manifests."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api.defaults import PodDefaults, read_limit_range, read_runtime_class
from mcad.api.pods import read_pod
from mcad.core.state.model import PodSet
from tests.api.builders import Map, accepted, container, deployment, job, obj, pod, v1beta1
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

TEAM = "/api/v1/namespaces/team"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
BARE = {"name": "main", "image": "busybox"}

LIMITS = obj(
    "v1",
    "LimitRange",
    "limits",
    {
        "limits": [
            {
                "type": "Container",
                "max": {"ephemeral-storage": "2Gi"},
                "default": {"cpu": "2", "memory": "1Gi"},
                "defaultRequest": {"cpu": "300m"},
            },
            {"type": "Pod", "max": {"cpu": "100"}},
        ]
    },
)
KATA = obj("node.k8s.io/v1", "RuntimeClass", "kata") | {
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    "scheduling": {
        "nodeSelector": {"kata": "yes"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


def says(**resources: Map) -> Map:
    """A container with these resources."""
    return BARE | {"resources": resources}


SPECS: dict[str, Map] = {
    "nothing said": {"containers": [BARE]},
    "a request": {"containers": [says(requests={"cpu": "1"})]},
    "a limit": {"containers": [says(limits={"cpu": "1", "memory": "2Gi"})]},
    "a request of nothing": {"containers": [says(requests={"cpu": "0"})]},
    "several": {"containers": [BARE, container("50m", name="other")]},
    "one that goes first": {
        "containers": [says(requests={"cpu": "10m"})],
        "initContainers": [BARE | {"name": "first"}],
    },
    "a sidecar": {
        "containers": [BARE],
        "initContainers": [BARE | {"name": "side", "restartPolicy": "Always"}],
    },
    "a limit as a whole": {"containers": [BARE], "resources": {"limits": {"cpu": "8"}}},
    "a class": {"containers": [BARE], "runtimeClassName": "kata"},
    "a class, with places of its own": {
        "containers": [BARE],
        "runtimeClassName": "kata",
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
    },
    "host ports": {"containers": [BARE | {"ports": [{"containerPort": 80}]}], "hostNetwork": True},
}


@pytest.fixture(scope="module", name="team")
def namespace_with_limits(control_plane: ControlPlane) -> tuple[ControlPlane, PodDefaults]:
    """A namespace with a LimitRange, a RuntimeClass, and what we read of them."""
    plane, pod_defaults = control_plane, PodDefaults()
    assert plane.request("POST", "/api/v1/namespaces", obj("v1", "Namespace", "team"))[0] == 201
    status, limits = plane.request("POST", f"{TEAM}/limitranges", LIMITS)
    assert status == 201, limits
    status, kata = plane.request("POST", CLASSES, KATA)
    assert status == 201, kata
    uid = limits["metadata"]["uid"]
    pod_defaults.put_range("team", uid, read_limit_range(limits))
    pod_defaults.put_class("kata", read_runtime_class(kata))
    return plane, pod_defaults


def judged(pod_defaults: PodDefaults, manifest: Map) -> PodSet:
    """The only pod set of a manifest, as a gang of it is judged."""
    parsed = pod_defaults.completed(accepted(v1beta1(manifest)))
    return parsed.workload.sets[0]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_pod_requests_what_its_gang_was_judged_by(
    team: tuple[ControlPlane, PodDefaults], spec: Map, request: Any
) -> None:
    plane, pod_defaults = team
    name = f"p-{sorted(SPECS).index(request.node.callspec.id)}"
    manifest = pod(name) | {"spec": spec}
    status, live = plane.request("POST", f"{TEAM}/pods", manifest)
    assert status == 201, live
    one, made = judged(pod_defaults, manifest), read_pod(live)

    assert made.request == one.request
    assert made.ports == one.ports
    assert dict(one.constraint.selector) == live["spec"].get("nodeSelector", {})
    keys = {toleration.key for toleration in one.constraint.tolerations}
    given = {each["key"] for each in live["spec"]["tolerations"]}
    assert keys == {key for key in given if not key.startswith("node.kubernetes.io/")}


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_so_do_the_pods_of_what_makes_pods(
    team: tuple[ControlPlane, PodDefaults], kind: str
) -> None:
    plane, pod_defaults = team
    name = kind.lower()
    spec = {"runtimeClassName": "kata", "containers": [BARE]}
    if kind == "Deployment":
        manifest = deployment(name, 2)
        manifest["spec"]["selector"] = {"matchLabels": {"made": name}}
        manifest["spec"]["template"] = {"metadata": {"labels": {"made": name}}, "spec": spec}
    else:
        template = {
            "metadata": {"labels": {"made": name}},
            "spec": spec | {"restartPolicy": "Never"},
        }
        manifest = job(name, parallelism=2, completions=2, template=template)
    made = manifest | {"metadata": manifest["metadata"] | {"namespace": "team"}}
    plane.apply([made])

    def pods() -> list[Map] | None:
        _, found = plane.request("GET", f"{TEAM}/pods?labelSelector=made={name}")
        return found["items"] if len(found["items"]) == 2 else None

    expected = judged(pod_defaults, manifest).request
    live = plane.wait_for(pods, 30, f"the pods of {name}")
    assert [read_pod(one).request for one in live] == [expected, expected]
