"""What a pod will ask for beyond its template, from an AppWrapper to the dispatcher's answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.cli.commands.demo import Shape
from mcad.sim.cluster import Cluster
from tests.cli.embedded import Embedded, wait_for
from tests.manifests import components, deployment, generic, job, pod

Json = dict[str, Any]

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SMALL = Shape(nodes=1, cpu="2")


def _crd(group: str, version: str, kind: str) -> Json:
    plural = f"{kind.lower()}s"
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [served | {"schema": {"openAPIV3Schema": ANYTHING}}],
        },
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Embedded]:
    """One node of 2 CPUs, on which RayJobs are installed."""
    with Embedded(tmp_path, SMALL).running() as running:
        running.create(_crd("ray.io", "v1", "RayJob"))
        yield running


def _ray_job(name: str, mode: str) -> Json:
    requests = {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    spec = {"containers": [{"name": "c", "image": "busybox", **requests}]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "submissionMode": mode,
            "rayClusterSpec": {"headGroupSpec": {"template": {"spec": spec}}},
        },
    }


def _why(cluster: Embedded, name: str) -> str:
    """Why it waits, as soon as the dispatcher has said so."""

    def look() -> str:
        found = cluster.mcad("why", name)
        is_told = "waits" in found.output or "missing" in found.output
        return found.output if found.exit_code == 0 and is_told else ""

    return wait_for(look, f"why {name} waits")


def test_the_head_of_a_sidecar_mode_ray_job_asks_for_its_submitter(cluster: Embedded) -> None:
    cluster.create(components("side", _ray_job("side", "SidecarMode")))
    assert "2500m" in (told := _why(cluster, "side")), told
    cluster.create(components("http", _ray_job("http", "HTTPMode")))
    cluster.until("http", "Running")


# -- the priority of the pods --------------------------------------------------------------------


def _priority_class(name: str, value: int, **more: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def _classed(name: str, priority_class: str = "") -> Json:
    """A Job of one pod that takes the whole node."""
    made = job(name, 1, "2", 600.0)
    if priority_class:
        made["spec"]["template"]["spec"]["priorityClassName"] = priority_class
    return made


@pytest.mark.parametrize("wrap", [components, generic])
def test_the_priority_class_of_the_pods_goes_ahead_and_evicts(tmp_path: Path, wrap: Any) -> None:
    config = Config(preemption=True, minRunTime=0)
    with Embedded(tmp_path, SMALL, config).running() as cluster:
        cluster.create(
            _priority_class("high-priority", 10),
            _priority_class("usual", 5, globalDefault=True),
            wrap("old", _classed("old")),
        )
        cluster.until("old", "Running")
        cluster.create(wrap("older", _classed("older")))
        cluster.create(wrap("urgent", _classed("urgent", "high-priority")))
        found = cluster.until("urgent", "Running")
        assert found["status"]["prioritySource"]["name"] == "high-priority"
        assert cluster.until("old", "Pending")["status"]["prioritySource"]["value"] == 5
        told = cluster.mcad("describe", "urgent").output
        assert "10 (of PriorityClass high-priority)" in told, told


# -- nominated pods ------------------------------------------------------------------------------


def test_a_nominated_pod_of_others_holds_its_room(cluster: Embedded) -> None:
    guest = pod("guest", cpu="1500m") | {"kind": "Pod"}
    guest["spec"]["schedulerName"] = "slow"  # which has made room by preemption

    def nominate(inside: Cluster) -> None:
        kind = inside.registry.kind("v1", "Pod")
        (node,) = inside.registry.list_all(inside.registry.kind("v1", "Node"))
        found = inside.registry.get(kind, ("default", "guest"))
        named = {"nominatedNodeName": node["metadata"]["name"]}
        inside.registry.update_status(kind, found | {"status": found["status"] | named})

    cluster.create(guest)
    cluster.on_loop(nominate)
    cluster.create(components("waits", job("waits", 1, "1", 600.0)))
    assert "500m" in (told := _why(cluster, "waits")), told
    cluster.create(components("fits", job("fits", 1, "500m", 600.0)))
    cluster.until("fits", "Running")


def test_a_pod_of_a_daemon_set_holds_its_room_before_it_is_bound(cluster: Embedded) -> None:
    daemon_set = deployment("agent", cpu="1500m") | {"kind": "DaemonSet"}
    del daemon_set["spec"]["replicas"]

    def is_wanted(inside: Cluster) -> bool:
        found = inside.registry.list_all(inside.registry.kind("v1", "Pod"), "default")
        return any(one["metadata"]["name"].startswith("agent-") for one in found)

    def remove_first(inside: Cluster) -> None:
        inside.registry.delete(inside.registry.kind("v1", "Pod"), ("default", "first"))

    cluster.create(pod("first", cpu="1") | {"kind": "Pod"})
    cluster.create(daemon_set)
    wait_for(lambda: cluster.on_loop(is_wanted), "the pod of the DaemonSet")
    cluster.create(components("waits", job("waits", 1, "500m", 600.0)))
    assert "500m" in (told := _why(cluster, "waits")), told
    assert "Overcommitted" not in (told := cluster.mcad("capacity").output), told
    cluster.on_loop(remove_first)
    cluster.until("waits", "Running")


# -- devices of dynamic resource allocation ------------------------------------------------------


@pytest.mark.parametrize("wrap", [components, generic])
def test_a_resource_that_no_node_has_is_said_to_be_unsupported(
    cluster: Embedded, wrap: Any
) -> None:
    asks = pod("mig", cpu="1", extended={"example.com/gpu": "1"})
    cluster.create(wrap("mig", asks))
    told = " ".join(_why(cluster, "mig").split())
    assert "No node that admits its pods has it: example.com/gpu: 1 requested" in told, told
    assert "dynamic resource allocation" in told
    assert "larger than any node" not in told


def test_a_claimed_device_is_no_negative_figure(cluster: Embedded) -> None:
    guest = pod("guest", cpu="1", extended={"example.com/gpu": "1"})
    guest["spec"]["nodeName"] = "node-1"  # as kube-scheduler binds it

    def claim(inside: Cluster) -> None:
        kind = inside.registry.kind("v1", "Pod")
        found = inside.registry.get(kind, ("default", "guest"))
        named = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
        told = {"resourceClaimName": "c", "requestMappings": [named]}
        status = found["status"] | {"extendedResourceClaimStatus": told}
        inside.registry.update_status(kind, found | {"status": status})

    cluster.create(guest)
    cluster.on_loop(claim)
    table = wait_for(
        lambda: told if " 1 " in (told := cluster.mcad("capacity").output) else "", "its CPU"
    )
    assert " -1" not in table, table
    assert "example.com/gpu" not in table, table
