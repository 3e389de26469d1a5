"""What the API server does to an object of each kind before it is written.

Modelled after the ``PrepareForCreate`` and ``PrepareForUpdate`` of each kind's strategy in
``k8s.io/kubernetes/pkg/registry``: which writes may set status, what counts as a new generation,
and which fields the server fills in itself.
"""

from __future__ import annotations

from collections.abc import Callable

from mcad.kube.types import Json
from mcad.sim.kinds import CRDS, Kind
from mcad.sim.objects import requests
from mcad.sim.objects.defaults import job_defaults
from mcad.sim.times import seconds

CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
NAMESPACE_FINALIZER = "kubernetes"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_GENERATED = {
    ("", "pods"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("discovery.k8s.io", "endpointslices"),
    CRDS,
}
_KEEPS_STATUS_AT_CREATE = {("", "nodes"), ("", "services")}
_WHOLE_OBJECT = {("discovery.k8s.io", "endpointslices"), ("scheduling.k8s.io", "priorityclasses")}


def has_generation(kind: Kind) -> bool:
    """Whether ``metadata.generation`` is counted."""
    return kind.is_custom or kind.storage in _GENERATED


def prepare_create(kind: Kind, obj: Json, now_us: int) -> Json:
    """The object as it is stored first; ``obj`` is the caller's own copy."""
    if kind.has_status and kind.storage not in _KEEPS_STATUS_AT_CREATE:
        obj.pop("status", None)
    if has_generation(kind):
        obj["metadata"]["generation"] = 1
    complete = _ON_CREATE.get(kind.storage)
    return complete(obj, now_us) if complete else obj


def prepare_update(kind: Kind, new: Json, old: Json, subresource: str) -> Json:
    """The object as it replaces ``old``; ``new`` is the caller's own copy."""
    if subresource == "status":
        new = _status_only(kind, new, old)
    elif kind.has_status and subresource != "binding":
        new = _replace_key(new, old, "status")
    if has_generation(kind):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + (
            subresource not in {"status", "binding"} and _is_new_generation(kind, new, old)
        )
    return new


def _status_only(kind: Kind, new: Json, old: Json) -> Json:
    """Everything of the old object but its status (and, of built-in kinds, its metadata)."""
    metadata = old["metadata"] if kind.is_custom else new["metadata"]
    kept = {key: value for key, value in old.items() if key not in {"metadata", "status"}}
    status = {"status": new["status"]} if "status" in new else {}
    return kept | {"metadata": dict(metadata)} | status


def _replace_key(new: Json, old: Json, key: str) -> Json:
    kept = {name: value for name, value in new.items() if name != key}
    return kept | {key: old[key]} if key in old else kept


def _is_new_generation(kind: Kind, new: Json, old: Json) -> bool:
    if kind.is_custom or kind.storage in _WHOLE_OBJECT:
        ignored = {"metadata", "status"} if kind.has_status else {"metadata"}
        return _without(new, ignored) != _without(old, ignored)
    if kind.storage == ("apps", "deployments") and (
        new["metadata"].get("annotations") != old["metadata"].get("annotations")
    ):
        return True  # its annotations are copied to ReplicaSets, so they count as spec
    return bool(new.get("spec") != old.get("spec"))


def _without(obj: Json, keys: set[str]) -> Json:
    return {key: value for key, value in obj.items() if key not in keys}


# -- what the server fills in at creation ------------------------------------------------------


def _namespace(obj: Json, _now_us: int) -> Json:
    name = obj["metadata"]["name"]
    labels = (obj["metadata"].get("labels") or {}) | {NAMESPACE_LABEL: name}
    obj["metadata"]["labels"] = labels
    obj["spec"] = (obj.get("spec") or {}) | {"finalizers": [NAMESPACE_FINALIZER]}
    obj["status"] = {"phase": "Active"}
    return obj


def _pod(obj: Json, _now_us: int) -> Json:
    if (obj.get("spec") or {}).get("terminationGracePeriodSeconds", 0) < 0:
        obj["spec"]["terminationGracePeriodSeconds"] = 1
    spec = obj.get("spec") or {}
    _default_pod_only(spec)
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": None,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        obj["status"]["conditions"] = [gated]
    return obj


def _default_pod_only(spec: Json) -> None:
    """Defaults that pods have but templates have not, so that controllers do not bring them."""
    spec.setdefault("enableServiceLinks", True)
    requests.complete(spec)


def _claim(obj: Json, _now_us: int) -> Json:
    obj["status"] = {"phase": "Pending"}
    return obj


def _service(obj: Json, _now_us: int) -> Json:
    obj["status"] = {"loadBalancer": {}}
    return obj


def _workload(obj: Json, _now_us: int) -> Json:
    obj["status"] = {}
    return obj


def _job(obj: Json, _now_us: int) -> Json:
    obj["status"] = {}
    return job_defaults(obj)


def _replicas(obj: Json, _now_us: int) -> Json:
    obj["status"] = {"replicas": 0}
    return obj


def _crd(obj: Json, now_us: int) -> Json:
    """Accepted and established at once; the real server takes some milliseconds."""
    spec = obj["spec"]
    names = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    at = seconds(now_us)
    obj["status"] = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", at),
            _condition(
                "Established", "InitialNamesAccepted", "the initial names have been accepted", at
            ),
        ],
        "acceptedNames": dict(names),
        "storedVersions": [one["name"] for one in spec["versions"] if one.get("storage")],
    }
    return obj


def _condition(name: str, reason: str, message: str, at: str) -> Json:
    return {
        "type": name,
        "status": "True",
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


_ON_CREATE: dict[tuple[str, str], Callable[[Json, int], Json]] = {
    ("", "namespaces"): _namespace,
    ("", "pods"): _pod,
    ("", "persistentvolumeclaims"): _claim,
    ("", "services"): _service,
    ("", "replicationcontrollers"): _replicas,
    ("", "resourcequotas"): _workload,
    ("apps", "deployments"): _workload,
    ("apps", "daemonsets"): _workload,
    ("apps", "statefulsets"): _workload,
    ("apps", "replicasets"): _replicas,
    ("batch", "jobs"): _job,
    CRDS: _crd,
}

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort (Kubernetes docs, "Pod Quality of Service Classes")."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    all_resources = [container.get("resources") or {} for container in containers]
    amounts = [
        (resources.get(side) or {}).get(name)
        for resources in all_resources
        for side in ("requests", "limits")
        for name in _COMPUTE
    ]
    if not any(amounts):
        return "BestEffort"
    guaranteed = all(
        (resources.get("limits") or {}).get(name)
        and (resources.get("requests") or resources["limits"]).get(name, resources["limits"][name])
        == resources["limits"][name]
        for resources in all_resources
        for name in _COMPUTE
    )
    return "Guaranteed" if guaranteed else "Burstable"
