"""What the benchmarks on the real control plane share: the cluster, AppWrappers, the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.audit import AuditEntry
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import install, printed

APPWRAPPERS = "/apis/workload.codeflare.dev/v1beta1/namespaces/default/appwrappers"
PODS = "/api/v1/namespaces/default/pods"

LEASE_S, PATIENT = 480, "--node-monitor-grace-period=600s"
"""For hundreds of nodes: their leases are renewed every two minutes, which leaves the cores to
what is measured, and the controller manager bears that."""


def pod(name: str, cpu: str = "10m") -> dict[str, object]:
    """A bare pod that runs for ever."""
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


def appwrapper(name: str, *pods: dict[str, object]) -> dict[str, object]:
    """An AppWrapper of bare pods, in MCAD's dialect."""
    items = [{"replicas": 1, "generictemplate": one} for one in pods]
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"resources": {"GenericItems": items}},
    }


@contextmanager
def cluster(
    nodes: int,
    *,
    options: Mapping[str, Any] | None = None,
    labels: Callable[[int], Mapping[str, str]] | None = None,
    **size: Any,
) -> Iterator[tuple[ControlPlane, Path]]:
    """A fresh control plane with ready nodes, CRD and RBAC; and the account's kubeconfig.

    ``options`` are the control plane's, ``labels`` those of a node by its number, and ``size`` is
    what every node has.
    """
    with ControlPlane(start_delay_ms=0, kinds=printed("crd"), **(options or {})) as plane:
        account = install(plane)
        plane.create_namespace("default")
        for number in range(nodes):
            name = f"node-{number}"
            plane.add_node(
                name, pods=500, wait=False, labels=labels(number) if labels else {}, **size
            )
        plane.wait_for_nodes((f"node-{number}" for number in range(nodes)), 60 + nodes / 4)
        yield plane, account


def create(plane: ControlPlane, body: dict[str, object], path: str = APPWRAPPERS) -> dict:
    """Create an object as the admin; the answer."""
    status, answer = plane.request("POST", path, body)
    if status != 201:
        raise RuntimeError(json.dumps(answer))
    return answer


def clear(plane: ControlPlane) -> None:
    """Delete all AppWrappers and pods of the namespace and wait until they are gone."""
    for path in (APPWRAPPERS, PODS):
        plane.request("DELETE", path)
    plane.wait_for(
        lambda: not any(plane.request("GET", path)[1]["items"] for path in (APPWRAPPERS, PODS)),
        timeout=120,
        what="an empty namespace",
    )


def span(entries: list[AuditEntry]) -> float:
    """Seconds from the first to the last of these requests."""
    times = sorted(entry.time for entry in entries)
    return (times[-1] - times[0]).total_seconds()
