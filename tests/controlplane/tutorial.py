"""The cluster of MCAD's tutorial: one small node, most of it taken by pods of others."""

from __future__ import annotations

from typing import Any

from tests.controlplane.controlplane import ControlPlane

NODE = "minikube"
NAMESPACE = "kube-system"

# Requests and limits of (cpu, memory). With the first AppWrapper's 2 x (100m, 256Mi), they come to
# the table that the tutorial shows: cpu 1950m and 1200m, memory 1706Mi and 1706Mi.
_FOREIGN_PODS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "coredns": ({"cpu": "100m", "memory": "70Mi"}, {"memory": "170Mi"}),
    "etcd-minikube": ({"cpu": "100m", "memory": "100Mi"}, {}),
    "kube-apiserver-minikube": ({"cpu": "250m"}, {}),
    "kube-controller-manager-minikube": ({"cpu": "200m"}, {}),
    "kube-proxy": ({}, {}),
    "kube-scheduler-minikube": ({"cpu": "100m"}, {}),
    "storage-provisioner": ({}, {}),
    "mcad-controller": (
        {"cpu": "1", "memory": "1Gi"},
        {"cpu": "1", "memory": "1Gi"},
    ),
}


def load_tutorial_node(plane: ControlPlane) -> None:
    """Add the node, with 1750m and 1194Mi requested by pods that run on it."""
    plane.add_node(NODE, cpu="2", memory="8129036Ki", pods=110)
    plane.apply([_pod(name, *amounts) for name, amounts in _FOREIGN_PODS.items()])
    plane.wait_for(lambda: _running(plane) == len(_FOREIGN_PODS), 30, "the foreign pods run")


def _pod(name: str, requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeName": NODE,  # bound by hand, as a kubelet's static pods are
            "containers": [{"name": name, "image": name, "resources": resources}],
        },
    }


def _running(plane: ControlPlane) -> int:
    _, pods = plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")
    return sum(pod["status"]["phase"] == "Running" for pod in pods["items"])
