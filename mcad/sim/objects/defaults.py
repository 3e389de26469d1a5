"""The defaults of kube-apiserver for built-in kinds.

Source: ``SetDefaults_*`` in ``k8s.io/kubernetes/pkg/apis/*/v1/defaults.go`` of 1.36, and the
defaults that its OpenAPI document declares. What admission adds to pods is in admission.py.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from mcad.kube.types import Json
from mcad.sim.kinds import Kind
from mcad.sim.objects import requests

JOB_UID, JOB_NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_MAX_INT32 = 2**31 - 1
_SERVICE_NET = (10, 96)
"""The first two numbers of the address of a service."""


def default(kind: Kind, obj: Json) -> Json:
    """A decoded object with its defaults; ``obj`` itself stays as it is."""
    fill = _KINDS.get((kind.group, kind.kind))
    if fill is None:
        return obj
    filled: Json = _copied(obj)
    fill(filled)
    return filled


def default_job(job: Json) -> None:
    """Defaults of a Job, in place (``SetDefaults_Job``)."""
    spec = _part(job, "spec")
    _job_spec(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    metadata = _part(job, "metadata")
    if labels and not metadata.get("labels"):
        # The same map, as in Go: labels that are generated for the template are the Job's, too.
        metadata["labels"] = labels


def job_defaults(job: Json) -> Json:
    """A new Job, the caller's own copy, with a uid already, completed in place.

    The generated selector and labels are after ``pkg/registry/batch/job/strategy.go``.
    """
    default_job(job)
    if not job["spec"]["manualSelector"]:
        _select_by_uid(job)
    default_job(job)  # a template without labels has some now
    return job


def _select_by_uid(job: Json) -> None:
    """Labels that no other Job's pods have; what the user gave stays, and is checked later."""
    spec, name, uid = job["spec"], job["metadata"].get("name", ""), job["metadata"]["uid"]
    template = spec["template"]
    metadata = template["metadata"] = template.get("metadata") or {}
    labels = metadata["labels"] = metadata.get("labels") or {}
    for key, value in (
        ("job-name", name),
        (JOB_NAME, name),
        ("controller-uid", uid),
        (JOB_UID, uid),
    ):
        labels.setdefault(key, value)
    selector = spec["selector"] = spec.get("selector") or {}
    pairs = selector["matchLabels"] = selector.get("matchLabels") or {}
    pairs.setdefault(JOB_UID, uid)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


def _part(obj: Json, key: str) -> Json:
    """A part that Go has as a struct, not as a pointer: it is always there."""
    if obj.get(key) is None:
        obj[key] = {}
    part: Json = obj[key]
    return part


def _set(obj: Json, **defaults: Any) -> None:
    """Set what is missing; "" counts as missing, as most of these are not pointers in Go."""
    for key, value in defaults.items():
        if obj.get(key) in {None, ""}:
            obj[key] = value


# Pods -------------------------------------------------------------------------------------------


def _pod(pod: Json) -> None:
    spec = _part(pod, "spec")
    _pod_spec(spec)
    requests.complete(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True


def _all(spec: Json) -> Iterable[Json]:
    return [one for key in ("initContainers", "containers") for one in spec.get(key) or ()]


def _template(owner: Json) -> None:
    template = _part(owner, "template")
    _part(template, "metadata")
    _pod_spec(_part(template, "spec"))


def _pod_spec(spec: Json) -> None:
    _set(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        schedulerName="default-scheduler",
    )
    _part(spec, "securityContext")
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in _all(spec):
        _container(container, on_host=bool(spec.get("hostNetwork")))


def _container(container: Json, *, on_host: bool) -> None:
    latest = _tag(container.get("image") or "") == "latest"
    _set(
        container,
        imagePullPolicy="Always" if latest else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    _part(container, "resources")
    for port in container.get("ports") or ():
        _set(port, protocol="TCP")
        if on_host and not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def _tag(image: str) -> str:
    """The tag of an image: "latest" if it has neither tag nor digest."""
    if "@" in image:
        return ""
    name = image.rpartition("/")[2]
    return name.partition(":")[2] if ":" in name else "latest"


# Workloads --------------------------------------------------------------------------------------


def _deployment(obj: Json) -> None:
    spec = _part(obj, "spec")
    _set(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _part(spec, "strategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_part(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(obj: Json) -> None:
    spec = _part(obj, "spec")
    _set(spec, replicas=1)
    if spec.get("template") is not None or obj["apiVersion"] != "v1":
        _template(spec)


def _replication_controller(obj: Json) -> None:
    _replica_set(obj)
    spec = obj["spec"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        metadata = _part(obj, "metadata")
        metadata["labels"] = metadata.get("labels") or dict(labels)
        spec["selector"] = spec.get("selector") or dict(labels)


def _stateful_set(obj: Json) -> None:
    spec = _part(obj, "spec")
    _set(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    strategy = _part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        _part(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        _set(strategy["rollingUpdate"], partition=0)
    _template(spec)


def _daemon_set(obj: Json) -> None:
    spec = _part(obj, "spec")
    _set(spec, revisionHistoryLimit=10)
    strategy = _part(spec, "updateStrategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_part(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _template(spec)


def _job_spec(spec: Json) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    indexed = spec.get("backoffLimitPerIndex") is not None
    failure_policy = spec.get("podFailurePolicy") is not None
    _set(
        spec,
        parallelism=1,
        backoffLimit=_MAX_INT32 if indexed else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="Failed" if failure_policy else "TerminatingOrFailed",
    )
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            _set(pattern, status="True")
    _template(spec)


# Everything else --------------------------------------------------------------------------------


def _service(obj: Json) -> None:
    """One address, which follows from the name; a real server draws it."""
    spec, metadata = _part(obj, "spec"), obj.get("metadata") or {}
    _set(spec, sessionAffinity="None", type="ClusterIP")
    for port in spec.get("ports") or ():
        _set(port, protocol="TCP")
        if port.get("targetPort") in {None, 0, ""}:
            port["targetPort"] = port.get("port", 0)
    if spec["type"] != "ExternalName":
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        third, fourth = sha256(name.encode()).digest()[:2]
        _set(spec, clusterIP=".".join(map(str, (*_SERVICE_NET, third, fourth))))
        spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]


def _secret(obj: Json) -> None:
    _set(obj, type="Opaque")
    given = obj.pop("stringData", None) or {}
    if given:
        encoded = {key: b64encode(text.encode()).decode() for key, text in given.items()}
        obj["data"] = (obj.get("data") or {}) | encoded


def _namespace(obj: Json) -> None:
    metadata = _part(obj, "metadata")
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        metadata["labels"] = labels | {"kubernetes.io/metadata.name": metadata["name"]}


def _node(obj: Json) -> None:
    status = obj.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    _part(obj, "status")
    _part(obj, "spec")


def _limit_range(obj: Json) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            limits = (item.get("max") or {}) | (item.get("default") or {})
            requests = (item.get("min") or {}) | limits | (item.get("defaultRequest") or {})
            item |= {"default": limits} if limits else {}
            item |= {"defaultRequest": requests} if requests else {}


def _priority_class(obj: Json) -> None:
    _set(obj, preemptionPolicy="PreemptLowerPriority")


_KINDS: dict[tuple[str, str], Callable[[Json], None]] = {
    ("", "Pod"): _pod,
    ("", "ReplicationController"): _replication_controller,
    ("", "Service"): _service,
    ("", "Secret"): _secret,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "LimitRange"): _limit_range,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): default_job,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
}
