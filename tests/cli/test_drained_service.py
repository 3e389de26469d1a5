"""A service of two Deployments that leave each other nodes, while nodes are drained (ADR 48)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from mcad.cli.commands.demo import Shape
from mcad.sim.cluster import Cluster
from tests.cli.cluster import deployment
from tests.cli.embedded import PATIENCE_S, Embedded, wait_for
from tests.fakeapi import GROUP

Json = dict[str, Any]


def service(name: str, *items: Json) -> Json:
    """An AppWrapper of these items."""
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"components": [{"template": item} for item in items]},
    }


def running_on(cluster: Cluster) -> list[str]:
    """The nodes of the pods that run, sorted."""
    pods = cluster.registry.list_all(cluster.registry.kind("v1", "Pod"), "default")
    return sorted(
        pod["spec"]["nodeName"]
        for pod in pods
        if pod.get("status", {}).get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    )


def drain(cluster: Cluster, name: str) -> None:
    """``kubectl drain``."""
    cluster.cordon(name)
    kind = cluster.registry.kind("v1", "Pod")
    for pod in cluster.registry.list_all(kind, "default"):
        if pod["spec"].get("nodeName") == name:
            cluster.registry.delete(kind, ("default", pod["metadata"]["name"]))


def until_on(embedded: Embedded, *names: str) -> None:
    wait_for(lambda: embedded.on_loop(running_on) == [*names] or None, f"pods run on {names}")


def test_a_service_is_whole_again_on_a_node_that_it_left_to_a_pod_that_has_gone(
    tmp_path: Path,
) -> None:
    """A required affinity in the template would last as long as the service: its three small pods
    would wait beside the idle node for the whole of placementTimeout, 900 s."""
    embedded = Embedded(tmp_path, Shape(nodes=0))
    items = (
        deployment("web", replicas=3, cpu="1", memory="1Gi"),
        deployment("head", replicas=1, cpu="8", memory="1Gi"),
    )
    with embedded.running():
        for name, cpu in (("large", "8"), ("small", "4")):
            embedded.on_loop(lambda c, n=name, m=cpu: c.add_node(n, cpu=m, memory="64Gi"))
        embedded.create(service("service", *items))
        until_on(embedded, "large", "small", "small", "small")
        dispatch = embedded.until("service", "Running")["status"]["dispatch"]
        assert [(one["nodes"], one["preferred"]) for one in dispatch["excludedNodes"]] == [
            (["large"], True)
        ]

        embedded.on_loop(lambda c: c.add_node("spare", cpu="8", memory="64Gi"))
        embedded.on_loop(lambda c: drain(c, "large"))
        until_on(embedded, "small", "small", "small", "spare")
        embedded.on_loop(lambda c: c.cordon("large", unschedulable=False))
        began = time.monotonic()
        embedded.on_loop(lambda c: drain(c, "small"))
        until_on(embedded, "large", "large", "large", "spare")
        assert time.monotonic() - began < PATIENCE_S
        assert embedded.until("service", "Running")["status"]["dispatch"]["attempt"] == 1
