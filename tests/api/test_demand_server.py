"""Our figures against those of the real thing: kube-scheduler's own sums, and KubeRay's pods."""

from __future__ import annotations

import re
import ssl
import urllib.request
from typing import Any

import pytest

from mcad.api.pods import read_pod
from mcad.api.podsets import infer, inferred_demand
from mcad.api.podspec import effective_request
from mcad.core.state.quantity import amount
from tests.api.builders import Map, container, obj, template
from tests.api.test_podspec import FORMULA
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane
from tests.controlplane.operators import KUBERAY, Operators

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

PODS = "/api/v1/namespaces/default/pods"
SAMPLE = re.compile(r"kube_pod_resource_request\{(?P<labels>[^}]*)\} (?P<value>\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
NOT_ADMITTED = {
    "pod-level extended resources are not supported by Kubernetes",
    "every resource name counts",  # huge pages need cpu or memory, and equal limits
    "the overhead of the runtime comes on top",  # only a RuntimeClass may set it
    "overhead also comes on top of pod-level requests",
}
ADMITTED = sorted(FORMULA.keys() - NOT_ADMITTED)


def admissible(spec: Map) -> Map:
    """The spec with names and images, which the API server asks for."""
    made = dict(spec)
    for key in ("initContainers", "containers"):
        if key in made:
            made[key] = [
                {**one, "name": f"{key.lower()}{i}", "image": "busybox"}
                for i, one in enumerate(made[key])
            ]
    return made


def scheduler_requests(plane: ControlPlane) -> dict[str, dict[str, int]]:
    """What kube-scheduler counts for each pod."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{plane.layout.ports.scheduler}/metrics/resources"
    with urllib.request.urlopen(url, context=trust, timeout=10) as answer:
        text = answer.read().decode()
    counted: dict[str, dict[str, int]] = {}
    for sample in SAMPLE.finditer(text):
        told = dict(LABEL.findall(sample["labels"]))
        resource = told["resource"]
        value = amount(resource, sample["value"])
        counted.setdefault(told["pod"], {})[resource] = value
    return counted


@pytest.fixture(scope="module", name="scheduled")
def pods_of_the_formula(control_plane: ControlPlane) -> dict[str, tuple[dict[str, int], Map]]:
    """(what kube-scheduler counts, the live pod) of every row of the table."""
    plane = control_plane
    names = {f"row-{i}": row for i, row in enumerate(ADMITTED)}
    live = {}
    for name, row in names.items():
        status, made = plane.request(
            "POST", PODS, obj("v1", "Pod", name, admissible(FORMULA[row][0]))
        )
        assert status == 201, made.get("message")
        live[row] = made
    silent = {f"row-{ADMITTED.index(row)}" for row in ADMITTED if not FORMULA[row][1]}

    def all_counted() -> dict[str, dict[str, int]] | None:
        counted = scheduler_requests(plane)
        return counted if names.keys() - silent <= counted.keys() else None

    counted = plane.wait_for(all_counted, 15, "the scheduler has counted every pod")
    return {row: (counted.get(name, {}), live[row]) for name, row in names.items()}


@pytest.mark.parametrize("row", ADMITTED)
def test_the_formula_is_kube_schedulers(row: str, scheduled: dict[str, Any]) -> None:
    counted, live = scheduled[row]
    declared = dict(effective_request(FORMULA[row][0]))
    assert dict(read_pod(live).request) == declared, "defaulting by the server changes nothing"
    assert declared == counted | {"pods": 1}


# KubeRay


@pytest.fixture(scope="module", name="ray")
def kuberay(control_plane: ControlPlane) -> Any:
    with Operators(control_plane, KUBERAY):
        yield control_plane


def ray_cluster(name: str, **more: Any) -> Map:
    def named(cpu: str) -> Map:
        return {"template": template(container(cpu, "1Gi", name="ray")), "rayStartParams": {}}

    workers = [
        {"groupName": "a", "replicas": 1, "minReplicas": 0, "maxReplicas": 5, "numOfHosts": 2},
        {"groupName": "b", "replicas": 9, "minReplicas": 0, "maxReplicas": 2},
        {"groupName": "c", "minReplicas": 1, "maxReplicas": 2},
    ]
    spec = {
        "rayVersion": "2.46.0",
        "headGroupSpec": named("2"),
        "workerGroupSpecs": [one | named("100m") for one in workers],
    }
    return obj("ray.io/v1", "RayCluster", name, spec | more)


CLUSTERS = {
    "fixed": ray_cluster("fixed"),
    "autoscaled": ray_cluster("autoscaled", enableInTreeAutoscaling=True),
    "autoscaled with another size": ray_cluster(
        "sized",
        enableInTreeAutoscaling=True,
        autoscalerOptions={"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    ),
}


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS.keys())
def test_kuberay_makes_the_pods_that_we_infer(ray: ControlPlane, cluster: Map) -> None:
    demand = inferred_demand(cluster, infer(cluster, "ray.io", "RayCluster"), 0)
    expected = sorted(one.request for one in demand.sets for _ in range(one.replicas))
    name = cluster["metadata"]["name"]
    ray.apply([cluster])

    def all_pods() -> list[Map] | None:
        _, found = ray.request("GET", f"{PODS}?labelSelector=ray.io/cluster={name}")
        return found["items"] if len(found["items"]) >= len(expected) else None

    pods = ray.wait_for(all_pods, 20, f"{len(expected)} pods of {name}")
    assert sorted(read_pod(one).request for one in pods) == expected
