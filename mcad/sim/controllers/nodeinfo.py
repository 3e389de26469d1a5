"""A Node as its kubelet registers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcad.kube.types import Json

READY = "Ready"
HOSTNAME = "kubernetes.io/hostname"
KUBELET_VERSION = "v1.36.3"
LEASE_S = 40

_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_STOPPED = "Kubelet stopped posting node status."


def new_node(
    name: str,
    capacity: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Json:
    """A Node as it is before it is registered; ``capacity`` in quantities."""
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": [dict(one) for one in taints]} if taints else {},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity)},
    }


def registered(node: Json, number: int, at: str) -> Json:
    """The same as its kubelet completes it; ``number`` gives it addresses of its own."""
    metadata, spec, status = (node.get(key) or {} for key in ("metadata", "spec", "status"))
    name = metadata["name"]
    labels = {
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    } | (metadata.get("labels") or {})
    cidr = f"10.{244 + number // 256}.{number % 256}.0/24"
    address = f"172.{18 + number // 62500}.{number // 250 % 250}.{number % 250 + 2}"
    capacity = status.get("capacity") or status.get("allocatable") or {}
    return node | {
        "metadata": metadata | {"labels": labels},
        "spec": {"podCIDR": cidr, "podCIDRs": [cidr]} | spec,
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _system(name),
        }
        | status
        | {"conditions": healthy(status.get("conditions") or (), at)},
    }


def healthy(before: Sequence[Json], at: str) -> list[Json]:
    """All conditions of a node whose kubelet is well."""
    wanted = [(name, "False", reason, text) for name, reason, text in _HEALTHY]
    wanted.append((READY, "True", "KubeletReady", "kubelet is posting ready status"))
    return _conditions(before, wanted, at)


def silent(before: Sequence[Json], at: str) -> list[Json]:
    """All conditions of a node whose kubelet has not been heard for a while."""
    names = [*(name for name, _, _ in _HEALTHY), READY]
    return _conditions(
        before, [(one, "Unknown", "NodeStatusUnknown", _STOPPED) for one in names], at
    )


def _conditions(
    before: Sequence[Json], wanted: Sequence[tuple[str, str, str, str]], at: str
) -> list[Json]:
    known = {one["type"]: one for one in before}
    found = []
    for name, status, reason, message in wanted:
        old = known.pop(name, {})
        since = old.get("lastTransitionTime", at) if old.get("status") == status else at
        condition = {"type": name, "status": status, "lastHeartbeatTime": at}
        said = {"reason": reason, "message": message}
        found.append(condition | {"lastTransitionTime": since} | said)
    return [*known.values(), *found]


def lease(node: Json, now: str) -> Json:
    """Its Lease, so that ``kubectl describe node`` finds one; it is never renewed."""
    metadata = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "metadata": {"name": metadata["name"], "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": metadata["name"],
            "leaseDurationSeconds": LEASE_S,
            "renewTime": now,
        },
    }


def condition(node: Json, name: str) -> str:
    """The status of a condition, "" if there is none."""
    for one in (node.get("status") or {}).get("conditions") or ():
        if one["type"] == name:
            status: str = one["status"]
            return status
    return ""


def _system(name: str) -> Json:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "sim://1",
        "kernelVersion": "",
        "osImage": "simulated",
        "bootID": "",
        "machineID": name,
        "systemUUID": "",
    }
