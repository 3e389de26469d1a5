"""Nodes, namespaces, priority classes: what belongs to the cluster as a whole."""

from __future__ import annotations

from typing import Any

from mcad.kube.types import Json
from mcad.sim.serving.tables.printer import NONE, UNKNOWN, age, condition, name, printer, status

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node(obj: Json, now_us: int) -> list[Any]:
    info = status(obj).get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name(obj),
        _node_state(obj),
        ",".join(_roles(obj)) or NONE,
        age(obj, now_us),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_state(obj: Json) -> str:
    ready = condition(obj, "Ready")
    word = "Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if obj["spec"].get("unschedulable") else word


def _roles(obj: Json) -> list[str]:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted({*roles, labels.get(_ROLE_LABEL, "")} - {""})


def _address(obj: Json, kind: str) -> str:
    addresses = status(obj).get("addresses") or ()
    return next((one["address"] for one in addresses if one["type"] == kind), NONE)


def _namespace(obj: Json, now_us: int) -> list[Any]:
    return [name(obj), status(obj).get("phase", ""), age(obj, now_us)]


def _priority_class(obj: Json, now_us: int) -> list[Any]:
    is_default = bool(obj.get("globalDefault"))
    return [
        name(obj),
        obj.get("value", 0),
        is_default,
        age(obj, now_us),
        obj.get("preemptionPolicy", ""),
    ]


NODES = printer(
    "Name, Status, Roles, Age, Version, Internal-IP+, External-IP+, OS-Image+, Kernel-Version+, "
    "Container-Runtime+",
    _node,
)
NAMESPACES = printer("Name, Status, Age", _namespace)
PRIORITY_CLASSES = printer(
    "Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy", _priority_class
)
