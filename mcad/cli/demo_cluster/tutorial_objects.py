"""The objects of MCAD's tutorial: its node, the foreign pods on it, and two AppWrappers.

Source: "Demonstrating Queuing of an AppWrapper Job" in MCAD's documents; the node is loaded so that
it shows the document's figures.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

NODE = "minikube"
NODE_CPU, NODE_MEMORY, NODE_PODS = "2", "8129036Ki", 110
NAMESPACE = "default"
FOREIGN_NAMESPACE = "kube-system"
FIRST, SECOND = "0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"

# Requests and limits of (cpu, memory). With the first AppWrapper's 2 x (100m, 256Mi), they come to
# the table that the tutorial shows: cpu 1950m and 1200m, memory 1706Mi and 1706Mi.
_FOREIGN: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "coredns": ({"cpu": "100m", "memory": "70Mi"}, {"memory": "170Mi"}),
    "etcd-minikube": ({"cpu": "100m", "memory": "100Mi"}, {}),
    "kube-apiserver-minikube": ({"cpu": "250m"}, {}),
    "kube-controller-manager-minikube": ({"cpu": "200m"}, {}),
    "kube-proxy": ({}, {}),
    "kube-scheduler-minikube": ({"cpu": "100m"}, {}),
    "storage-provisioner": ({}, {}),
    "mcad-controller": ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
}


def foreign_pods() -> list[Json]:
    """Foreign pods, bound to the node like static pods of a kubelet."""
    return [_foreign_pod(name, *amounts) for name, amounts in _FOREIGN.items()]


def _foreign_pod(name: str, requests: dict[str, str], limits: dict[str, str]) -> Json:
    resources = {"requests": requests, "limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": FOREIGN_NAMESPACE},
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": name, "image": name, "resources": resources}],
        },
    }


def appwrapper(name: str, cpu: str) -> Json:
    """An AppWrapper of MCAD's dialect around a Deployment of two pods."""
    labels = {"app": name}
    amounts = {"cpu": cpu, "memory": "256Mi"}
    container = {
        "name": name,
        "image": "kicbase/echo-server:1.0",
        "resources": {"requests": amounts, "limits": amounts},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "replicas": 2, "template": template},
    }
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"resources": {"GenericItems": [{"replicas": 1, "generictemplate": deployment}]}},
    }
