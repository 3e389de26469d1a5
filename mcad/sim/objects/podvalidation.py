"""What must hold of a pod, alone or in the template of a workload.

Source: ``ValidatePodSpec`` in ``k8s.io/kubernetes/pkg/apis/core/validation``; the words were taken
from the answers of a real server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import duplicate, forbidden, invalid, not_supported, required
from mcad.sim.objects.metavalidation import label_faults
from mcad.sim.objects.podplacement import placement_faults
from mcad.sim.objects.podresources import resource_faults
from mcad.sim.objects.podvolumes import mount_faults, volume_faults

PORT_MAX = 65535
INT32_MAX = 2**31 - 1
_PULL = ("Always", "IfNotPresent", "Never")
_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGES = ("File", "FallbackToLogsOnError")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_RESOURCE_FIELDS = tuple(
    f"{side}.{name}"
    for side in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "metadata.labels",
    "metadata.annotations",
)


def pod_spec_faults(spec: Json, field: str = "spec") -> list[Cause]:
    """Faults of a defaulted pod spec."""
    return [
        *volume_faults(spec.get("volumes") or [], f"{field}.volumes"),
        *_all_container_faults(spec, field),
        *_choice(spec, "restartPolicy", _RESTART, field),
        *_choice(spec, "dnsPolicy", _DNS, field),
        *_rest(spec, field),
        *placement_faults(spec, field),
    ]


def one_of_range(value: int, low: int, high: int, field: str) -> Iterator[Cause]:
    """Faults of a number that has bounds."""
    if not low <= value <= high:
        yield invalid(field, value, f"must be between {low} and {high}, inclusive")


def not_negative(obj: Json, keys: Iterable[str], field: str) -> Iterator[Cause]:
    """Faults of numbers that may not be below zero."""
    for key in keys:
        if (obj.get(key) or 0) < 0:
            yield invalid(f"{field}.{key}", obj[key], "must be greater than or equal to 0")


def _choice(obj: Json, key: str, choices: tuple[str, ...], field: str) -> Iterator[Cause]:
    value = obj.get(key) or ""
    if not value:
        yield required(f"{field}.{key}")
    elif value not in choices:
        yield not_supported(f"{field}.{key}", value, choices)


def _rest(spec: Json, field: str) -> Iterator[Cause]:
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        detail = "must provide `dnsConfig` when `dnsPolicy` is None"
        yield required(f"{field}.dnsConfig", detail)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        yield from one_of_range(deadline, 1, INT32_MAX, f"{field}.activeDeadlineSeconds")
    forms = (
        ("hostname", names.dns_label),
        ("subdomain", names.dns_label),
        ("nodeName", names.dns_subdomain),
        ("serviceAccountName", names.dns_subdomain),
        ("priorityClassName", names.dns_subdomain),
    )
    for key, form in forms:
        if spec.get(key):
            for fault in form(spec[key]):
                yield invalid(f"{field}.{key}", spec[key], fault)
    yield from label_faults(spec.get("nodeSelector"), f"{field}.nodeSelector")
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        for fault in names.label_key(name):
            yield invalid(f"{field}.schedulingGates[{index}]", name, fault)


# Containers -------------------------------------------------------------------------------------


def _all_container_faults(spec: Json, field: str) -> Iterator[Cause]:
    containers, first = spec.get("containers") or [], spec.get("initContainers") or []
    volumes = {one.get("name") for one in spec.get("volumes") or ()}
    seen: set[str] = set()
    if not containers:
        yield required(f"{field}.containers")
    for key, group in (("containers", containers), ("initContainers", first)):
        host_ports: set[str] = set()
        for index, container in enumerate(group):
            where = f"{field}.{key}[{index}]"
            on_host = bool(spec.get("hostNetwork"))
            yield from _container_faults(container, where, on_host=on_host)
            yield from mount_faults(container, volumes, where)
            name = container.get("name") or ""
            if name and name in seen:
                yield duplicate(f"{where}.name", name)
            seen.add(name)
            if key == "containers":
                yield from _host_port_faults(container, host_ports, where)
            else:
                yield from _init_faults(container, where)


def _init_faults(container: Json, where: str) -> Iterator[Cause]:
    policy = container.get("restartPolicy")
    if policy == "Always":
        return
    if policy is not None and policy not in _RESTART:
        yield not_supported(f"{where}.restartPolicy", policy, sorted(_RESTART))
    for key in ("lifecycle", *_PROBES):
        if container.get(key) is not None:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{where}.{key}", detail)


def _host_port_faults(container: Json, seen: set[str], where: str) -> Iterator[Cause]:
    for index, port in enumerate(container.get("ports") or ()):
        if port.get("hostPort"):
            text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if text in seen:
                yield duplicate(f"{where}.ports[{index}].hostPort", text)
            seen.add(text)


def _container_faults(container: Json, where: str, *, on_host: bool) -> Iterator[Cause]:
    name, image = container.get("name") or "", container.get("image") or ""
    if not name:
        yield required(f"{where}.name")
    else:
        for fault in names.dns_label(name):
            yield invalid(f"{where}.name", name, fault)
    if not image:
        yield required(f"{where}.image")
    elif image != image.strip():
        yield invalid(f"{where}.image", image, "must not have leading or trailing whitespace")
    yield from _choice(container, "terminationMessagePolicy", _MESSAGES, where)
    yield from _port_faults(container.get("ports") or [], f"{where}.ports", on_host=on_host)
    yield from _env_faults(container, where)
    for key in _PROBES:
        if container.get(key) is not None:
            yield from _probe_faults(container[key], key, f"{where}.{key}")
    for hook, action in (container.get("lifecycle") or {}).items():
        if isinstance(action, dict):
            yield from _handler_faults(action, _HOOKS, f"{where}.lifecycle.{hook}")
    yield from _choice(container, "imagePullPolicy", _PULL, where)
    yield from resource_faults(container.get("resources") or {}, f"{where}.resources")
    yield from _security_faults(container.get("securityContext") or {}, f"{where}.securityContext")


def _security_faults(context: Json, where: str) -> Iterator[Cause]:
    for key in ("runAsUser", "runAsGroup"):
        if context.get(key) is not None:
            yield from one_of_range(context[key], 0, INT32_MAX, f"{where}.{key}")
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(where, context, detail)


def _port_faults(ports: list[Json], where: str, *, on_host: bool) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        field, name, number = f"{where}[{index}]", port.get("name"), port.get("containerPort") or 0
        if name:
            faults = names.port_name(name)
            for fault in faults:
                yield invalid(f"{field}.name", name, fault)
            if not faults and name in seen:
                yield duplicate(f"{field}.name", name)
            seen.add(name)
        if not number:
            yield required(f"{field}.containerPort")
        else:
            yield from one_of_range(number, 1, PORT_MAX, f"{field}.containerPort")
        if port.get("hostPort"):
            yield from one_of_range(port["hostPort"], 1, PORT_MAX, f"{field}.hostPort")
            if on_host and port["hostPort"] != number:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{field}.hostPort", port["hostPort"], detail)
        yield from _choice(port, "protocol", _PROTOCOLS, field)


def _env_faults(container: Json, where: str) -> Iterator[Cause]:
    for index, variable in enumerate(container.get("env") or ()):
        field, name = f"{where}.env[{index}]", variable.get("name") or ""
        if not name:
            yield required(f"{field}.name")
        else:
            for fault in names.env_name(name):
                yield invalid(f"{field}.name", name, fault)
        if variable.get("valueFrom") is not None:
            yield from _env_source_faults(variable, f"{field}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        field = f"{where}.envFrom"
        if not any(source.get(key) is not None for key in ("configMapRef", "secretRef")):
            yield invalid(field, "", "must specify one of: `configMapRef` or `secretRef`")
        for key in ("configMapRef", "secretRef"):
            if source.get(key) is not None and not source[key].get("name"):
                yield required(f"{field}[{index}].{key}.name")


def _env_source_faults(variable: Json, where: str) -> Iterator[Cause]:
    source: Json = variable["valueFrom"]
    given = [key for key in _SOURCES if source.get(key) is not None]
    if not given:
        listed = ", ".join(f"`{key}`" for key in _SOURCES[:-1])
        yield invalid(where, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")
    elif variable.get("value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(where, "", "may not have more than one field specified at a time")
    path = (source.get("fieldRef") or {}).get("fieldPath")
    if source.get("fieldRef") is not None:
        if not path:
            yield required(f"{where}.fieldRef.fieldPath")
        elif path not in _FIELDS and "['" not in path:
            detail = f"error converting fieldPath: field label not supported: {path}"
            yield invalid(f"{where}.fieldRef.fieldPath", path, detail)
    yield from _resource_field_faults(source.get("resourceFieldRef"), f"{where}.resourceFieldRef")
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None and not source[key].get("key"):
            yield required(f"{where}.{key}.key")


def _resource_field_faults(reference: Json | None, where: str) -> Iterator[Cause]:
    if reference is None:
        return
    resource = reference.get("resource") or ""
    if not resource:
        yield required(f"{where}.resource")
    elif resource not in _RESOURCE_FIELDS and "hugepages-" not in resource:
        yield not_supported(f"{where}.resource", resource, _RESOURCE_FIELDS)


def _probe_faults(probe: Json, kind: str, where: str) -> Iterator[Cause]:
    yield from _handler_faults(probe, _HANDLERS, where)
    yield from not_negative(probe, _COUNTS, where)
    threshold = probe.get("successThreshold", 1)
    if kind != "readinessProbe" and threshold not in {0, 1}:
        yield invalid(f"{where}.successThreshold", threshold, "must be 1")


def _handler_faults(action: Json, handlers: tuple[str, ...], where: str) -> Iterator[Cause]:
    given = [key for key in handlers if action.get(key) is not None]
    if not given:
        yield required(where, "must specify a handler type")
    for key in given[1:]:
        yield forbidden(f"{where}.{key}", "may not specify more than 1 handler type")
    for key in given[:1]:
        handler: Json = action[key]
        if key == "exec" and not handler.get("command"):
            yield required(f"{where}.exec.command")
        elif key in {"httpGet", "tcpSocket", "grpc"}:
            yield from port_or_name_faults(handler.get("port", 0), f"{where}.{key}.port")


def port_or_name_faults(port: Any, where: str) -> Iterator[Cause]:
    """Faults of a port that is given by its number or by its name."""
    if isinstance(port, str):
        for fault in names.port_name(port):
            yield invalid(where, port, fault)
    else:
        yield from one_of_range(port or 0, 1, PORT_MAX, where)
