"""Nodes, namespaces, storage, leases, quotas, classes: what belongs to the cluster as a whole."""

from __future__ import annotations

from typing import Any

from mcad.sim.serving.tables.printer import (
    NONE,
    UNKNOWN,
    UNSET,
    Json,
    age,
    condition,
    name,
    printer,
    status,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


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


def _lease(obj: Json, now_us: int) -> list[Any]:
    return [name(obj), (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now_us)]


def _resource_quota(obj: Json, now_us: int) -> list[Any]:
    hard, used = status(obj).get("hard") or {}, status(obj).get("used") or {}
    shown: dict[bool, list[str]] = {False: [], True: []}
    for resource in sorted(hard):
        is_limit = resource.startswith("limits.")
        shown[is_limit].append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name(obj), ", ".join(shown[False]), ", ".join(shown[True]), age(obj, now_us)]


def _priority_class(obj: Json, now_us: int) -> list[Any]:
    is_default = bool(obj.get("globalDefault"))
    return [
        name(obj),
        obj.get("value", 0),
        is_default,
        age(obj, now_us),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: Json, now_us: int) -> list[Any]:
    return [name(obj), obj.get("handler", ""), age(obj, now_us)]


def _storage_class(obj: Json, now_us: int) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    is_default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        name(obj) + (" (default)" if is_default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now_us),
    ]


def _volume(obj: Json, now_us: int) -> list[Any]:
    spec = obj["spec"]
    claim = spec.get("claimRef")
    return [
        name(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _volume_phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_name(obj),
        spec.get("volumeAttributesClassName", UNSET),
        status(obj).get("reason", ""),
        age(obj, now_us),
        spec.get("volumeMode", UNSET),
    ]


def _claim(obj: Json, now_us: int) -> list[Any]:
    spec, state = obj["spec"], status(obj)
    volume = spec.get("volumeName", "")
    return [
        name(obj),
        _volume_phase(obj),
        volume,
        (state.get("capacity") or {}).get("storage", "0") if volume else "",
        _access_modes(state.get("accessModes")) if volume else "",
        _class_name(obj),
        spec.get("volumeAttributesClassName", UNSET),
        age(obj, now_us),
        spec.get("volumeMode", UNSET),
    ]


def _volume_phase(obj: Json) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = status(obj).get("phase", "")
    return phase


def _access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _class_name(obj: Json) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    found: str = annotations.get(_CLASS_ANNOTATION) or obj["spec"].get("storageClassName", "")
    return found


NODES = printer(
    "Name, Status, Roles, Age, Version, Internal-IP+, External-IP+, OS-Image+, Kernel-Version+, "
    "Container-Runtime+",
    _node,
)
NAMESPACES = printer("Name, Status, Age", _namespace)
LEASES = printer("Name, Holder, Age", _lease)
RESOURCE_QUOTAS = printer("Name, Request, Limit, Age", _resource_quota)
PRIORITY_CLASSES = printer(
    "Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy", _priority_class
)
RUNTIME_CLASSES = printer("Name, Handler, Age", _runtime_class)
STORAGE_CLASSES = printer(
    "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
    _storage_class,
)
VOLUMES = printer(
    "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
    "VolumeAttributesClass, Reason, Age, VolumeMode+",
    _volume,
)
CLAIMS = printer(
    "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, "
    "VolumeMode+",
    _claim,
)
