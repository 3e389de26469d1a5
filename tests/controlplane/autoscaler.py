"""The real cluster-autoscaler beside a control plane, with node groups that KWOK plays.

Registries do not have its binary: `MCAD_CLUSTER_AUTOSCALER` names it (cluster-autoscaler 1.36 built
with the tag `kwok`). Tests that need it are skipped otherwise, with that reason, in CI as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.processes import free_ports

BINARY = "MCAD_CLUSTER_AUTOSCALER"
NAME = "cluster-autoscaler"
GROUP = "kwok-nodegroup"
"""The label of a node with the name of its group. A template without it makes no group, and no
error says so."""
KINDS = Path(__file__).parent / "autoscaling"
"""The CRDs of ProvisioningRequest and CapacityBuffer, as cluster-autoscaler 1.36.1 ships them."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one size that the autoscaler may add, from zero to `largest`."""

    name: str
    cpu: str
    largest: int
    memory: str = "32Gi"
    pods: int = 110
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()

    def template(self) -> dict[str, Any]:
        """The node that the autoscaler copies."""
        capacity = {"cpu": self.cpu, "memory": self.memory, "pods": str(self.pods)}
        name, counts = f"kwok-{self.name}", "cluster-autoscaler.kwok.nodegroup"
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "node.kubernetes.io/instance-type": self.name,
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    GROUP: self.name,
                    **self.labels,
                },
                "annotations": {
                    "kwok.x-k8s.io/node": "fake",
                    f"{counts}/min-count": "0",
                    f"{counts}/max-count": str(self.largest),
                    f"{counts}/desired-count": "0",
                },
            },
            "spec": {"taints": list(self.taints)},
            "status": {
                "capacity": {**capacity, **self.extended},
                "allocatable": {**capacity, **self.extended},
            },
        }


def kinds() -> str:
    """The YAML of the CRDs, for `ControlPlane(kinds=...)`."""
    return "\n---\n".join(one.read_text() for one in sorted(KINDS.glob("*.yaml")))


def binary_or_skip() -> str:
    """The path of the autoscaler; skips the test without one."""
    path = os.environ.get(BINARY, "")
    if not path:
        pytest.skip(f"{BINARY} names no cluster-autoscaler")
    if not os.access(path, os.X_OK):
        pytest.fail(f"{BINARY}={path} is not a program", pytrace=False)
    return path


@contextmanager
def autoscaler(
    plane: ControlPlane, *groups: NodeGroup, unneeded: str = "1m", flags: Sequence[str] = ()
) -> Iterator[None]:
    """Run it with these groups; a node that is empty for `unneeded` is removed."""
    binary = binary_or_skip()
    plane.apply(_settings(groups))
    port = free_ports(1)[0]
    host, _, api_port = plane.url.rpartition(":")
    environment = {
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "POD_NAMESPACE": "default",
        "KWOK_PROVIDER_MODE": "local",
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": api_port,
    }
    command = [
        binary,
        f"--kubeconfig={plane.admin_kubeconfig}",
        "--cloud-provider=kwok",
        "--namespace=default",
        "--leader-elect=false",
        "--scan-interval=2s",
        "--enable-provisioning-requests=true",
        "--capacity-buffer-controller-enabled",
        "--capacity-buffer-pod-injection-enabled",
        "--kube-client-qps=100",
        "--kube-client-burst=200",
        f"--address=127.0.0.1:{port}",
        f"--scale-down-unneeded-time={unneeded}",
        f"--scale-down-delay-after-add={unneeded}",
        *flags,
    ]
    plane.spawn(NAME, command, environment)
    try:
        plane.wait_for(lambda: _has_looked(plane), 60, f"{NAME} has looked at the cluster")
        yield
    finally:
        plane.end(NAME)


def _has_looked(plane: ControlPlane) -> bool:
    """Whether its first pass is over: it writes its status then."""
    path = "/api/v1/namespaces/default/configmaps/cluster-autoscaler-status"
    return plane.request("GET", path)[0] == 200


def _settings(groups: Sequence[NodeGroup]) -> list[dict[str, Any]]:
    """The two ConfigMaps that the provider kwok reads."""
    templates = {"apiVersion": "v1", "kind": "List", "items": [one.template() for one in groups]}
    provider = {
        "apiVersion": "v1alpha1",
        "readNodesFrom": "configmap",
        "nodegroups": {"fromNodeLabelKey": GROUP},
        "nodes": {"skipTaint": True},
        "configmap": {"name": "kwok-provider-templates", "key": "templates"},
    }
    return [
        _config_map("kwok-provider-templates", "templates", templates),
        _config_map("kwok-provider-config", "config", provider),
    ]


def _config_map(name: str, key: str, content: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {key: yaml.safe_dump(content)},
    }
