"""Common faults of a pod, alone or in the template of a workload.

Source: ``ValidatePodSpec`` in ``k8s.io/kubernetes/pkg/apis/core/validation``, of which the larger
part is left to a real server: volumes, probes, ports, security, affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import duplicate, invalid, not_supported, required
from mcad.sim.objects.metavalidation import annotation_faults, label_faults, selector_faults
from mcad.sim.objects.podresources import resource_faults

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_MAX = 100
_PULL = ("Always", "IfNotPresent", "Never")
_RESTART = ("Always", "OnFailure", "Never")


def template_faults(template: Json, field: str) -> list[Cause]:
    """Faults of a pod template."""
    metadata = template.get("metadata") or {}
    return [
        *label_faults(metadata.get("labels"), f"{field}.labels"),
        *annotation_faults(metadata.get("annotations"), f"{field}.annotations"),
        *pod_spec_faults(template.get("spec") or {}, f"{field}.spec"),
    ]


def pod_spec_faults(spec: Json, field: str = "spec") -> list[Cause]:
    """Faults of a defaulted pod spec."""
    return [
        *_all_container_faults(spec, field),
        *_choice(spec, "restartPolicy", _RESTART, field),
        *_name_faults(spec, field),
        *label_faults(spec.get("nodeSelector"), f"{field}.nodeSelector"),
        *_placement_faults(spec, field),
    ]


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


def _name_faults(spec: Json, field: str) -> Iterator[Cause]:
    for key in ("nodeName", "serviceAccountName", "priorityClassName"):
        for fault in names.dns_subdomain(spec[key]) if spec.get(key) else ():
            yield invalid(f"{field}.{key}", spec[key], fault)


def _placement_faults(spec: Json, field: str) -> Iterator[Cause]:
    """Faults of constraints that the scheduler could not read."""
    for kind, affinity in (spec.get("affinity") or {}).items():
        where = f"{field}.affinity.{kind}"
        preferred = affinity.get(_PREFERRED) or []
        for index, one in enumerate(preferred):
            if not 1 <= (one.get("weight") or 0) <= _WEIGHT_MAX:
                place = f"{where}.{_PREFERRED}[{index}].weight"
                yield invalid(place, one.get("weight") or 0, "must be in the range 1-100")
        if kind != "nodeAffinity":
            for index, term in enumerate(affinity.get(_REQUIRED) or ()):
                yield from _topology_faults(term, f"{where}.{_REQUIRED}[{index}]")
            for index, one in enumerate(preferred):
                place = f"{where}.{_PREFERRED}[{index}].podAffinityTerm"
                yield from _topology_faults(one.get("podAffinityTerm") or {}, place)
    for index, one in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, skew = f"{field}.topologySpreadConstraints[{index}]", one.get("maxSkew") or 0
        if skew <= 0:
            yield invalid(f"{where}.maxSkew", skew, "must be greater than zero")
        yield from _topology_faults(one, where)


def _topology_faults(term: Json, where: str) -> Iterator[Cause]:
    yield from selector_faults(term.get("labelSelector"), f"{where}.labelSelector")
    if not term.get("topologyKey"):
        yield required(f"{where}.topologyKey", "can not be empty")


def _all_container_faults(spec: Json, field: str) -> Iterator[Cause]:
    seen: set[str] = set()
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            where, name = f"{field}.{key}[{index}]", container.get("name") or ""
            yield from _container_faults(container, where)
            if name and name in seen:
                yield duplicate(f"{where}.name", name)
            seen.add(name)


def _container_faults(container: Json, where: str) -> Iterator[Cause]:
    name, image = container.get("name") or "", container.get("image") or ""
    if not name:
        yield required(f"{where}.name")
    for fault in names.dns_label(name) if name else ():
        yield invalid(f"{where}.name", name, fault)
    if not image:
        yield required(f"{where}.image")
    yield from _choice(container, "imagePullPolicy", _PULL, where)
    yield from resource_faults(container.get("resources") or {}, f"{where}.resources")
