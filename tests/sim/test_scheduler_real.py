"""Decisions, one by one, beside those of a real kube-scheduler.

Random pods are given to the real one; after each, ours looks at the very same cluster. The node
that was really chosen must be among those that we find best (ties are random in both); where there
is none, the message must be the same to the letter, up to what preemption says.
"""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

import pytest

from mcad.kube.types import Json
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.controllers.scheduler import Scheduler
from mcad.sim.registry import Registry
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip

PODS = "/api/v1/namespaces/default/pods"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
COUNT = 150
APART = {"matchLabels": {"app": "apart"}}

NODES: list[tuple[str, str, str, Json, list[Json]]] = [
    ("n0", "8", "32Gi", {ZONE: "x", "disk": "ssd"}, []),
    ("n1", "8", "32Gi", {ZONE: "x", "disk": "hdd"}, []),
    ("n2", "16", "32Gi", {ZONE: "y", "disk": "ssd"}, []),
    ("n3", "4", "64Gi", {ZONE: "y"}, [{"key": "soft", "effect": "PreferNoSchedule"}]),
    ("n4", "8", "16Gi", {ZONE: "z"}, [{"key": "gpu", "value": "1", "effect": "NoSchedule"}]),
    ("n5", "12", "48Gi", {"disk": "hdd"}, []),
]


def _random_pod(rng: Random, name: str) -> Json:
    container: Json = {"name": "c", "image": "busybox"}
    if rng.random() < 0.8:
        cpu, memory = rng.choice(["100m", "500m", "1", "2"]), rng.choice(["128Mi", "1Gi", "4Gi"])
        container["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    if rng.random() < 0.15:
        port = rng.choice([8080, 9090])
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"disk": rng.choice(["ssd", "hdd"])}
    if rng.random() < 0.2:
        key = rng.choice(["gpu", "soft"])
        spec["tolerations"] = [{"key": key, "operator": "Exists"}]
    affinity: Json = {}
    if rng.random() < 0.2:
        affinity |= _random_affinity(rng)
    if rng.random() < 0.2:
        affinity |= _required("podAntiAffinity", [{"topologyKey": HOST, "labelSelector": APART}])
    labels = APART["matchLabels"] if "podAntiAffinity" in affinity else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec | {"affinity": affinity}}


def _random_affinity(rng: Random) -> Json:
    wanted = {"key": "disk", "operator": rng.choice(["Exists", "DoesNotExist"])}
    term = {"matchExpressions": [wanted]}
    if rng.random() < 0.5:
        return _required("nodeAffinity", {"nodeSelectorTerms": [term]})
    preferred = {"weight": rng.randint(1, 100), "preference": term}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}


def _required(kind: str, wanted: Any) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}


def _decided(plane: ControlPlane, name: str) -> Json:
    def judged() -> Json | None:
        pod: Json = plane.get(f"{PODS}/{name}")
        conditions = (pod.get("status") or {}).get("conditions") or ()
        found = any(one["type"] == "PodScheduled" for one in conditions)
        return pod if found else None

    return plane.wait_for(judged, 10, f"{name} was looked at")


def _message(pod: Json) -> str:
    conditions = pod["status"]["conditions"]
    message: str = next(one for one in conditions if one["type"] == "PodScheduled")["message"]
    return message


@pytest.mark.controlplane
def test_every_decision_could_have_been_ours() -> None:
    rng = Random(1)
    with controlplane_or_skip() as plane:
        for name, cpu, memory, labels, taints in NODES:
            plane.add_node(name, cpu, memory, labels=labels, taints=taints)
        nodes = plane.get("/api/v1/nodes")["items"]
        refused, differing = run_virtually(_compare(plane, rng, nodes))

    assert differing == []
    assert 10 < refused < COUNT - 50  # or the comparison says little


async def _compare(plane: ControlPlane, rng: Random, nodes: list[Json]) -> tuple[int, list[Any]]:
    registry = Registry(VirtualClock(), Random(0))
    node_kind, pod_kind = registry.kind("v1", "Node"), registry.kind("v1", "Pod")
    for node in nodes:
        registry.create(node_kind, None, _bare(node))
    scheduler = Scheduler(registry)
    scheduler.start()
    refused, differing = 0, []
    for number in range(COUNT):
        name = f"p{number}"
        plane.ask("POST", PODS, _random_pod(rng, name))
        real = _decided(plane, name)
        node = real["spec"].pop("nodeName", "")
        pod = registry.create(pod_kind, "default", _bare(real) | {"spec": real["spec"]})
        info = scheduler.lines.pods[pod["metadata"]["uid"]]
        best = [one.name for one in scheduler.decider.best(info)]
        if node and node not in best:
            differing.append((name, node, best, real["spec"]))
        if not node:
            refused += 1
            await asyncio.sleep(1)
            ours = _message(registry.get(pod_kind, ("default", name)))
            theirs = _message(real).split(" no new claims")[0]  # nothing is preempted here
            if best or ours != theirs:
                differing.append((name, theirs, ours, best))
            plane.ask("DELETE", f"{PODS}/{name}")
            registry.delete(pod_kind, ("default", name))
        else:
            registry.patch(pod_kind, ("default", name), partial(_bound, node))
        if rng.random() < 0.15:
            _remove_one(plane, registry, rng)
    scheduler.stop()
    return refused, differing


def _bound(node: str, pod: Json) -> Json:
    return pod | {"spec": pod["spec"] | {"nodeName": node}}


def _bare(obj: Json) -> Json:
    """As a client could create it."""
    metadata = {key: obj["metadata"][key] for key in ("name", "labels") if key in obj["metadata"]}
    return {"metadata": metadata} | {k: obj[k] for k in ("spec", "status") if k in obj}


def _remove_one(plane: ControlPlane, registry: Registry, rng: Random) -> None:
    kind = registry.kind("v1", "Pod")
    names = [one["metadata"]["name"] for one in registry.list_all(kind)]
    if names:
        name = rng.choice(names)
        plane.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        path = f"{PODS}/{name}"
        plane.wait_for(lambda: plane.request("GET", path)[0] == 404, 10, f"{name} is gone")
        registry.store.remove(kind.storage, ("default", name))
