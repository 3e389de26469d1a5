"""Native gangs of Kubernetes 1.36 (KEP-4671): alpha, and off unless the control plane is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcad.kube.types import Json

API = "scheduling.k8s.io/v1alpha2"
_GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"

NATIVE_GANGS: Mapping[str, Sequence[str]] = {
    "kube-apiserver": (_GATES, f"--runtime-config={API}=true"),
    "kube-controller-manager": (_GATES,),
    "kube-scheduler": (_GATES,),
}
"""``extra_args`` of a control plane that has them."""


def pod_group(name: str, least: int) -> Json:
    """A PodGroup whose pods are bound when this many of them have room."""
    policy = {"gang": {"minCount": least}}
    meta, spec = {"name": name}, {"schedulingPolicy": policy}
    return {"apiVersion": API, "kind": "PodGroup", "metadata": meta, "spec": spec}
