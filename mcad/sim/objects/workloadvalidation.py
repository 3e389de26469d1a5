"""What must hold of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs.

Source: ``k8s.io/kubernetes/pkg/apis/{apps,batch}/validation``; words from a real server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import forbidden, invalid, not_supported, required
from mcad.sim.objects.claimvalidation import claim_faults
from mcad.sim.objects.jobvalidation import job_faults
from mcad.sim.objects.metavalidation import selector_faults
from mcad.sim.objects.podvalidation import not_negative
from mcad.sim.objects.templatevalidation import match_faults, template_faults

_PERCENT_MAX = 100


def workload_faults(kind: str, obj: Json) -> list[Cause]:
    """Faults of the spec of a defaulted workload."""
    check = _KINDS.get(kind)
    return list(check(obj)) if check else []


def _deployment(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    yield from not_negative(spec, ("replicas",), "spec")
    yield from _selector(spec, "deployment")
    yield from _template(spec)
    yield from _deployment_strategy(spec.get("strategy") or {})
    yield from not_negative(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from not_negative(spec, ("progressDeadlineSeconds",), "spec")
        if deadline <= (spec.get("minReadySeconds") or 0):
            detail = "must be greater than minReadySeconds"
            yield invalid("spec.progressDeadlineSeconds", deadline, detail)


def _deployment_strategy(strategy: Json) -> Iterator[Cause]:
    field, rolling = "spec.strategy", strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden(f"{field}.rollingUpdate", detail)
        case "RollingUpdate":
            yield from _rolling(rolling or {}, f"{field}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling}
            text = _go_struct(shown)
            listed = '"Recreate", "RollingUpdate"'
            detail = f"Unsupported value: {text}: supported values: {listed}"
            yield Cause("FieldValueNotSupported", detail, field)


def _go_struct(pairs: Json) -> str:
    """A Go struct as messages show it: fields in their order, capitals included."""
    inside = ",".join(
        f'"{key}":{"null" if one is None else _json(one)}' for key, one in pairs.items()
    )
    return f"{{{inside}}}"


def _json(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _rolling(rolling: Json, field: str) -> Iterator[Cause]:
    for key in ("maxUnavailable", "maxSurge"):
        yield from int_or_percent_faults(rolling.get(key), f"{field}.{key}")
    if _is_zero(rolling.get("maxUnavailable")) and _is_zero(rolling.get("maxSurge")):
        yield invalid(f"{field}.maxUnavailable", 0, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(rolling.get("maxUnavailable"), f"{field}.maxUnavailable")


def _is_zero(value: Any) -> bool:
    return value in {0, "0%"}


def int_or_percent_faults(value: Any, field: str) -> Iterator[Cause]:
    """Faults of a number or a percentage."""
    if isinstance(value, str):
        for fault in names.percent(value):
            yield invalid(field, value, fault)
    elif value is not None and value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def at_most_all(value: Any, field: str) -> Iterator[Cause]:
    """A percentage may not be more than 100%."""
    if isinstance(value, str) and not names.percent(value) and int(value[:-1]) > _PERCENT_MAX:
        yield invalid(field, value, "must not be greater than 100%")


def _replica_set(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    yield from not_negative(spec, ("replicas", "minReadySeconds"), "spec")
    yield from _selector(spec, "deployment")
    yield from _template(spec)


def _stateful_set(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    policy = spec.get("podManagementPolicy")
    if policy not in {"OrderedReady", "Parallel"}:
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, detail)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        pairs = {"Type": strategy.get("type"), "RollingUpdate": strategy.get("rollingUpdate")}
        detail = f"Invalid value: {_go_struct(pairs)}: must be 'RollingUpdate' or 'OnDelete'"
        yield Cause("FieldValueInvalid", detail, "spec.updateStrategy")
    rolling = strategy.get("rollingUpdate") or {}
    yield from not_negative(rolling, ("partition",), "spec.updateStrategy.rollingUpdate")
    counts = ("replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from not_negative(spec, counts, "spec")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        field = f"spec.volumeClaimTemplates[{index}].spec"
        yield from claim_faults(claim.get("spec") or {}, field)
    yield from _selector(spec, "statefulset")
    yield from _template(spec)


def _daemon_set(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    if spec.get("selector") is not None:  # that it is missing shows in the labels only
        yield from _selector(spec, "daemonset")
    yield from _template(spec)
    yield from not_negative(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec")
    strategy = spec.get("updateStrategy") or {}
    field, rolling = "spec.updateStrategy", strategy.get("rollingUpdate") or {}
    match strategy.get("type"):
        case "RollingUpdate":
            field = f"{field}.rollingUpdate"
            for key in ("maxUnavailable", "maxSurge"):
                yield from int_or_percent_faults(rolling.get(key), f"{field}.{key}")
            if _is_zero(rolling.get("maxUnavailable")) and _is_zero(rolling.get("maxSurge")):
                yield required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")
            yield from at_most_all(rolling.get("maxUnavailable"), f"{field}.maxUnavailable")
        case "OnDelete":
            pass
        case other:
            text = _go_struct({"Type": other, "RollingUpdate": strategy.get("rollingUpdate")})
            detail = f'Unsupported value: {text}: supported values: "RollingUpdate", "OnDelete"'
            yield Cause("FieldValueNotSupported", detail, field)


def _selector(spec: Json, kind: str) -> Iterator[Cause]:
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from selector_faults(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")


def _template(spec: Json) -> Iterator[Cause]:
    """The template of what keeps pods running."""
    template = spec.get("template") or {}
    selector = spec.get("selector")
    bad = selector is not None and any(True for _ in selector_faults(selector, ""))
    if bad:
        yield invalid("spec.selector", selector, "invalid label selector")
    elif selector != {}:
        yield from match_faults(selector, template)
    yield from template_faults(template, "spec.template")
    pod = template.get("spec") or {}
    if pod.get("restartPolicy") != "Always":
        supported = not_supported(
            "spec.template.spec.restartPolicy", pod.get("restartPolicy"), ("Always",)
        )
        yield supported
    if pod.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", detail)


_KINDS: dict[str, Callable[[Json], Iterator[Cause]]] = {
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": job_faults,
}
