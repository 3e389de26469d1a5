"""What must hold of what a pod says about nodes: tolerations, affinity and spreading."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import duplicate, invalid, not_supported, required
from mcad.sim.objects.metavalidation import selector_faults

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SPREADING = ("DoNotSchedule", "ScheduleAnyway")
_WEIGHT_MAX = 100


def placement_faults(spec: Json, field: str) -> Iterator[Cause]:
    """Faults of everything that the scheduler reads but resources and nodeSelector."""
    for index, one in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_faults(one, f"{field}.tolerations[{index}]")
    affinity = spec.get("affinity") or {}
    yield from _node_affinity_faults(affinity.get("nodeAffinity") or {}, f"{field}.affinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity_faults(affinity.get(kind) or {}, f"{field}.affinity.{kind}")
    yield from _spread_faults(
        spec.get("topologySpreadConstraints") or [], f"{field}.topologySpreadConstraints"
    )


def _toleration_faults(one: Json, field: str) -> Iterator[Cause]:
    key, operator = one.get("key") or "", one.get("operator") or "Equal"
    value, effect = one.get("value") or "", one.get("effect") or ""
    if key:
        for fault in names.label_key(key):
            yield invalid(f"{field}.key", key, fault)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and '
        yield invalid(f"{field}.operator", operator, f'{detail}all keys"')
    if one.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", effect, detail)
    if operator == "Exists" and value:
        detail = "value must be empty when `operator` is 'Exists'"
        yield invalid(f"{field}.operator", value, detail)
    elif operator == "Equal":
        for fault in names.label_value(value):
            yield invalid(f"{field}.operator", value, fault)
    elif operator != "Exists":
        yield not_supported(f"{field}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in EFFECTS:
        yield not_supported(f"{field}.effect", effect, EFFECTS)


def _node_affinity_faults(affinity: Json, where: str) -> Iterator[Cause]:
    field = f"{where}.nodeAffinity"
    wanted = affinity.get(_REQUIRED)
    if wanted is not None:
        terms = wanted.get("nodeSelectorTerms") or []
        if not terms:
            detail = "must have at least one node selector term"
            yield required(f"{field}.{_REQUIRED}.nodeSelectorTerms", detail)
        for index, term in enumerate(terms):
            yield from _term_faults(term, f"{field}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, one in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{field}.{_PREFERRED}[{index}]"
        yield from _weight_faults(one, place)
        yield from _term_faults(one.get("preference") or {}, f"{place}.preference")


def _weight_faults(one: Json, place: str) -> Iterator[Cause]:
    weight = one.get("weight") or 0
    if not 1 <= weight <= _WEIGHT_MAX:
        yield invalid(f"{place}.weight", weight, "must be in the range 1-100")


def _term_faults(term: Json, place: str) -> Iterator[Cause]:
    for index, one in enumerate(term.get("matchExpressions") or ()):
        field, values = f"{place}.matchExpressions[{index}]", one.get("values") or []
        match one.get("operator"):
            case "In" | "NotIn":
                if not values:
                    detail = "must be specified when `operator` is 'In' or 'NotIn'"
                    yield required(f"{field}.values", detail)
            case "Exists" | "DoesNotExist":
                if values:
                    detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield Cause("FieldValueForbidden", f"Forbidden: {detail}", f"{field}.values")
            case "Gt" | "Lt":
                if len(values) != 1:
                    detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                    yield required(f"{field}.values", detail)
            case other:
                yield invalid(f"{field}.operator", other or "", "not a valid selector operator")
        for fault in names.label_key(one.get("key") or ""):
            yield invalid(f"{field}.key", one.get("key") or "", fault)


def _pod_affinity_faults(affinity: Json, field: str) -> Iterator[Cause]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_term_faults(term, f"{field}.{_REQUIRED}[{index}]")
    for index, one in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{field}.{_PREFERRED}[{index}]"
        yield from _weight_faults(one, place)
        yield from _pod_term_faults(one.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")


def _pod_term_faults(term: Json, place: str) -> Iterator[Cause]:
    yield from selector_faults(term.get("labelSelector"), f"{place}.labelSelector")
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{place}.topologyKey", "can not be empty")
    for fault in names.label_key(key):
        yield invalid(f"{place}.topologyKey", key, fault)


def _spread_faults(constraints: list[Json], where: str) -> Iterator[Cause]:
    pairs = [f"{{{one.get('topologyKey')}, {one.get('whenUnsatisfiable')}}}" for one in constraints]
    for index, one in enumerate(constraints):
        field, skew, key = f"{where}[{index}]", one.get("maxSkew") or 0, one.get("topologyKey")
        if skew <= 0:
            yield invalid(f"{field}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{field}.topologyKey", "can not be empty")
        if one.get("whenUnsatisfiable") not in _SPREADING:
            value = one.get("whenUnsatisfiable") or ""
            yield not_supported(f"{field}.whenUnsatisfiable", value, _SPREADING)
        if pairs[index] in pairs[index + 1 :]:
            yield duplicate(f"{field}.{{topologyKey, whenUnsatisfiable}}", pairs[index])
        yield from selector_faults(one.get("labelSelector"), f"{field}.labelSelector")
