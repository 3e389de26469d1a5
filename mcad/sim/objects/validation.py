"""What must hold of an object of a built-in kind beyond its types, with the causes of a refusal.

Source: ``k8s.io/kubernetes/pkg/apis/*/validation``; the words were taken from the answers of a real
server (tests/sim/golden/validation.json). Objects are decoded and have their defaults.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects.causes import duplicate, forbidden, invalid, not_supported, required
from mcad.sim.objects.claimvalidation import claim_faults
from mcad.sim.objects.immutable import change_faults
from mcad.sim.objects.metavalidation import (
    label_faults,
    metadata_change_faults,
    metadata_faults,
    selector_faults,
)
from mcad.sim.objects.podplacement import EFFECTS
from mcad.sim.objects.podvalidation import (
    PORT_MAX,
    one_of_range,
    pod_spec_faults,
    port_or_name_faults,
)
from mcad.sim.objects.workloadvalidation import workload_faults

PRIORITY_MAX = 1_000_000_000
_SYSTEM = "system-"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_OF_POLICIES = ("TCP", "UDP", "SCTP")  # the same, but listed in another order
_PREEMPTION = ("PreemptLowerPriority", "Never")
_KEYS_OF_SECRETS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def validate_create(kind: Kind, obj: Json) -> list[Cause]:
    """What is wrong with a new object; of a custom kind, only its metadata is looked at."""
    causes = metadata_faults(kind, obj)
    if not kind.is_custom:
        causes += _faults(kind, obj)
        if kind.kind == "Pod" and (obj.get("spec") or {}).get("ephemeralContainers"):
            causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return causes


def validate_update(kind: Kind, new: Json, old: Json) -> list[Cause]:
    """What is wrong with a change of an object."""
    causes = [*metadata_faults(kind, new), *metadata_change_faults(new, old)]
    if not kind.is_custom:
        causes += _faults(kind, new)
        causes += change_faults(kind, new, old)
    return list(dict.fromkeys(causes))


def _faults(kind: Kind, obj: Json) -> list[Cause]:
    check = _KINDS.get((kind.group, kind.kind))
    if check is not None:
        return list(check(obj))
    if kind.group in {"apps", "batch"} and obj.get("spec") is not None:
        return workload_faults(kind.kind, obj)
    return []


def _pod(obj: Json) -> Iterator[Cause]:
    yield from pod_spec_faults(obj.get("spec") or {})


def _config_map(obj: Json) -> Iterator[Cause]:
    yield from _keys(obj.get("data") or {}, "data")
    yield from _keys(obj.get("binaryData") or {}, "binaryData")
    for key in obj.get("data") or ():
        if key in (obj.get("binaryData") or ()):
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")


def _secret(obj: Json) -> Iterator[Cause]:
    data = obj.get("data") or {}
    yield from _keys(data, "data")
    kind = obj.get("type") or ""
    for key in _KEYS_OF_SECRETS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield required("data[username]")
        yield required("data[password]")


def _keys(data: Json, field: str) -> Iterator[Cause]:
    for key in data:
        for fault in names.config_key(key):
            yield invalid(f"{field}[{key}]", key, fault)


def _node(obj: Json) -> Iterator[Cause]:
    seen = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        field, key = f"metadata.taints[{index}]", taint.get("key") or ""
        for fault in names.label_key(key):
            yield invalid(f"{field}.key", key, fault)
        effect = taint.get("effect") or ""
        if effect not in EFFECTS:
            yield not_supported(f"{field}.effect", effect, EFFECTS)
        pair = (key, effect)
        if pair in seen:
            shown = f'{{"Key":"{key}","Value":"{taint.get("value") or ""}","Effect":"{effect}"'
            text = f'Duplicate value: {shown},"TimeAdded":null}}: '
            detail = f"{text}taints must be unique by key and effect pair"
            yield Cause("FieldValueDuplicate", detail, field)
        seen.add(pair)


def _service(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    kind, ports = spec.get("type") or "", spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    if kind == "ExternalName":
        name = spec.get("externalName") or ""
        if not name:
            yield required("spec.externalName")
        for fault in names.dns_subdomain(name.removesuffix(".")) if name else ():
            yield invalid("spec.externalName", name, fault)
    elif not ports and not headless:
        yield required("spec.ports")
    for index, port in enumerate(ports):
        yield from _service_port(port, f"spec.ports[{index}]", kind, named=len(ports) > 1)
    yield from _same_ports(ports)
    yield from label_faults(spec.get("selector"), "spec.selector")
    if spec.get("sessionAffinity") not in {"ClientIP", "None"}:
        affinity = spec.get("sessionAffinity") or ""
        yield not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    for index, address in enumerate(spec.get("clusterIPs") or ()):
        if address != "None" and not _is_address(address):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid(f"spec.clusterIPs[{index}]", address, detail)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _service_port(port: Json, field: str, kind: str, *, named: bool) -> Iterator[Cause]:
    if named and not port.get("name"):
        yield required(f"{field}.name")
    elif port.get("name"):
        for fault in names.dns_label(port["name"]):
            yield invalid(f"{field}.name", port["name"], fault)
    yield from one_of_range(port.get("port") or 0, 1, PORT_MAX, f"{field}.port")
    if port.get("protocol") not in _PROTOCOLS:
        yield not_supported(f"{field}.protocol", port.get("protocol") or "", _PROTOCOLS)
    yield from port_or_name_faults(port.get("targetPort", 0), f"{field}.targetPort")
    if port.get("nodePort") and kind == "ClusterIP":
        yield forbidden(f"{field}.nodePort", "may not be used when `type` is 'ClusterIP'")


def _same_ports(ports: list[Json]) -> Iterator[Cause]:
    seen_names, seen = set(), set()
    for index, port in enumerate(ports):
        name, pair = port.get("name"), (port.get("protocol"), port.get("port"))
        if name and name in seen_names:
            yield duplicate(f"spec.ports[{index}].name", name)
        seen_names.add(name)
        if pair in seen:
            shown = (
                f'{{"Name":"","Protocol":"{pair[0]}","AppProtocol":null,"Port":{pair[1]},'
                '"TargetPort":0,"NodePort":0}'
            )
            text = f"Duplicate value: {shown}"
            yield Cause("FieldValueDuplicate", text, f"spec.ports[{index}]")
        seen.add(pair)


def _claim(obj: Json) -> Iterator[Cause]:
    yield from claim_faults(obj.get("spec") or {}, "spec")


def _network_policy(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from selector_faults(spec.get("podSelector"), "spec.podSelector")
    for side in ("ingress", "egress"):
        for index, rule in enumerate(spec.get(side) or ()):
            for number, port in enumerate(rule.get("ports") or ()):
                field = f"spec.{side}[{index}].ports[{number}]"
                if port.get("protocol") not in _OF_POLICIES:
                    yield not_supported(f"{field}.protocol", port.get("protocol"), _OF_POLICIES)
                if port.get("port") is not None:
                    yield from port_or_name_faults(port["port"], f"{field}.port")


def _go(value: int | str) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _priority_class(obj: Json) -> Iterator[Cause]:
    name, value = (obj.get("metadata") or {}).get("name") or "", obj.get("value") or 0
    if name.startswith(_SYSTEM):
        detail = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. "
        detail += f"error: {name} is not a known system priority class"
        yield forbidden("metadata.name", detail)
    elif value > PRIORITY_MAX:
        detail = f"maximum allowed value of a user defined priority is {PRIORITY_MAX}"
        yield forbidden("value", detail)
    policy = obj.get("preemptionPolicy")
    if policy not in _PREEMPTION:
        yield not_supported("preemptionPolicy", policy, _PREEMPTION)


def _role(obj: Json) -> Iterator[Cause]:
    for index, rule in enumerate(obj.get("rules") or ()):
        if not rule.get("verbs"):
            yield required(f"rules[{index}].verbs", "verbs must contain at least one value")


_KINDS: dict[tuple[str, str], Callable[[Json], Iterator[Cause]]] = {
    ("", "Pod"): _pod,
    ("", "ConfigMap"): _config_map,
    ("", "Secret"): _secret,
    ("", "Node"): _node,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("rbac.authorization.k8s.io", "ClusterRole"): _role,
    ("rbac.authorization.k8s.io", "Role"): _role,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
}
