"""What kube-apiserver fills in where a manifest of a built-in kind says nothing.

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

JOB_UID = "batch.kubernetes.io/controller-uid"
_MODE = 0o644
_MAX_INT32 = 2**31 - 1
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
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


def _all(spec: Json, keys: Iterable[str] = _CONTAINERS) -> Iterable[Json]:
    return [one for key in keys for one in spec.get(key) or ()]


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
    for volume in spec.get("volumes") or ():
        _volume(volume)
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
    for variable in container.get("env") or ():
        _variable(variable)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            _probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _http(hook.get("httpGet"))


def _variable(variable: Json) -> None:
    if variable.get("value") == "":
        del variable["value"]  # Go does not write it
    source = variable.get("valueFrom") or {}
    _field(source.get("fieldRef"))
    if source.get("resourceFieldRef") is not None:
        _set(source["resourceFieldRef"], divisor="0")


def _tag(image: str) -> str:
    """The tag of an image: "latest" if it has neither tag nor digest."""
    if "@" in image:
        return ""
    name = image.rpartition("/")[2]
    return name.partition(":")[2] if ":" in name else "latest"


def _probe(probe: Json) -> None:
    for key, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe[key] = probe.get(key) or value
    _http(probe.get("httpGet"))
    if probe.get("grpc") is not None and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _http(action: Json | None) -> None:
    if action is not None:
        _set(action, path="/", scheme="HTTP")


def _field(reference: Json | None) -> None:
    if reference is not None:
        _set(reference, apiVersion="v1")


def _volume(volume: Json) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for key in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(key)
        if source is not None:
            _set(source, defaultMode=_MODE)
            _projected(source, key)
    _host_path(volume)
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        _part(claim, "metadata")
        _claim_spec(_part(claim, "spec"))


def _host_path(source: Json) -> None:
    if source.get("hostPath") is not None:
        source["hostPath"].setdefault("type", "")


def _projected(source: Json, key: str) -> None:
    sources = source.get("sources") or () if key == "projected" else [{key: source}]
    for one in sources:
        for item in (one.get("downwardAPI") or {}).get("items") or ():
            _field(item.get("fieldRef"))
            if item.get("resourceFieldRef") is not None:
                _set(item["resourceFieldRef"], divisor="0")
        if one.get("serviceAccountToken") is not None:
            _set(one["serviceAccountToken"], expirationSeconds=3600)


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
    policy = _part(spec, "persistentVolumeClaimRetentionPolicy")
    _set(policy, whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        _claim(claim)
        _set(_part(claim, "status"), phase="Pending")
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
    spec = _part(obj, "spec")
    _set(spec, sessionAffinity="None", type="ClusterIP")
    kind = spec["type"]
    if spec["sessionAffinity"] == "ClientIP":
        affinity = _part(_part(spec, "sessionAffinityConfig"), "clientIP")
        _set(affinity, timeoutSeconds=10800)
    else:
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        _set(port, protocol="TCP")
        if port.get("targetPort") in {None, 0, ""}:
            port["targetPort"] = port.get("port", 0)
    if kind == "ExternalName":
        return
    _set(spec, internalTrafficPolicy="Cluster")
    if kind in {"NodePort", "LoadBalancer"} or spec.get("externalIPs"):
        _set(spec, externalTrafficPolicy="Cluster")
    if kind == "LoadBalancer":
        _set(spec, allocateLoadBalancerNodePorts=True)
    _addresses(obj, spec)


def _addresses(obj: Json, spec: Json) -> None:
    """One address, which follows from the name; a real server draws it."""
    metadata = obj.get("metadata") or {}
    if not spec.get("clusterIP") and not spec.get("clusterIPs"):
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        third, fourth = sha256(name.encode()).digest()[:2]
        spec["clusterIP"] = ".".join(map(str, (*_SERVICE_NET, third, fourth)))
    _set(spec, clusterIP=(spec.get("clusterIPs") or [""])[0])
    # A headless service that selects nothing is whatever its endpoints are.
    both = spec["clusterIP"] == "None" and not spec.get("selector")
    _set(spec, ipFamilyPolicy="RequireDualStack" if both else "SingleStack")
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4", *(["IPv6"] if both else [])]


def _claim(obj: Json) -> None:
    _claim_spec(_part(obj, "spec"))


def _claim_spec(spec: Json) -> None:
    _set(spec, volumeMode="Filesystem")
    _part(spec, "resources")


def _volume_object(obj: Json) -> None:
    policy = "persistentVolumeReclaimPolicy"
    spec = _part(obj, "spec")
    _set(spec, **{policy: "Retain", "volumeMode": "Filesystem"})
    _host_path(spec)


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
    info = _part(_part(obj, "status"), "nodeInfo")
    for key in _NODE_INFO:
        info.setdefault(key, "")
    _part(_part(obj["status"], "daemonEndpoints"), "kubeletEndpoint").setdefault("Port", 0)
    _part(obj, "spec")


def _limit_range(obj: Json) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            limits = (item.get("max") or {}) | (item.get("default") or {})
            requests = (item.get("min") or {}) | limits | (item.get("defaultRequest") or {})
            item |= {"default": limits} if limits else {}
            item |= {"defaultRequest": requests} if requests else {}


def _endpoints(obj: Json) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            _set(port, protocol="TCP")


def _slice(obj: Json) -> None:
    for port in obj.get("ports") or ():
        _set(port, protocol="TCP")
        port.setdefault("name", "")
    for endpoint in obj.get("endpoints") or ():
        _part(endpoint, "conditions")


def _event(obj: Json) -> None:
    """Fields that Go writes even if they say nothing."""
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(key, None)
    for key in ("reportingComponent", "reportingInstance"):
        obj.setdefault(key, "")
    _part(obj, "source")


def _network_policy(obj: Json) -> None:
    spec = _part(obj, "spec")
    rules = [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]
    for port in [port for rule in rules for port in rule.get("ports") or ()]:
        _set(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _priority_class(obj: Json) -> None:
    _set(obj, preemptionPolicy="PreemptLowerPriority")


def _storage_class(obj: Json) -> None:
    _set(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _binding(obj: Json) -> None:
    """Subjects of RBAC: the group follows from the kind."""
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in {"User", "Group"}:
            _set(subject, apiGroup="rbac.authorization.k8s.io")
    _set(_part(obj, "roleRef"), apiGroup="rbac.authorization.k8s.io")


def _crd(obj: Json) -> None:
    spec = _part(obj, "spec")
    names = _part(spec, "names")
    if names.get("kind"):
        _set(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
    _set(_part(spec, "conversion"), strategy="None")


_KINDS: dict[tuple[str, str], Callable[[Json], None]] = {
    ("", "Pod"): _pod,
    ("", "PodTemplate"): _template,
    ("", "ReplicationController"): _replication_controller,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume_object,
    ("", "Secret"): _secret,
    ("", "Namespace"): _namespace,
    ("", "Event"): _event,
    ("", "Node"): _node,
    ("", "LimitRange"): _limit_range,
    ("", "Endpoints"): _endpoints,
    ("discovery.k8s.io", "EndpointSlice"): _slice,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): default_job,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("rbac.authorization.k8s.io", "RoleBinding"): _binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _binding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
}
