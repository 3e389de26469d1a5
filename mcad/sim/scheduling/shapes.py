"""The parts of a pod that kube-scheduler reads, parsed once for all equal pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcad.kube import selectors
from mcad.kube.selectors import LabelMatch
from mcad.kube.types import Json
from mcad.sim.objects.requests import Amounts, is_sidecar, requested, whole

Labels = Mapping[str, str]
Port = tuple[str, str, int]  # host IP, protocol, number

HOSTNAME = "kubernetes.io/hostname"
ANY_IP = "0.0.0.0"  # noqa: S104 - the API's word for every address

# A container without requests is scored as if it had these (pkg/scheduler/util/pod_resources.go).
_UNSAID = {"cpu": 100, "memory": (200 << 20) * 1000}  # in thousandths
_CACHED = 8192


@dataclass(frozen=True, eq=False)
class Shape:
    """Everything of a pod that decides where it may go; equal pods share one."""

    request: tuple[tuple[str, int], ...]  # without the slot in ``pods``; milli-CPU, bytes, counts
    cpu: int
    memory: int
    scored_cpu: int  # with defaults where nothing is requested
    scored_memory: int
    static: str  # equal for pods that the same nodes admit, whatever is free there
    selector: Json
    affinity_terms: list[Json] | None  # of required node affinity
    preferred_nodes: tuple[tuple[int, Json], ...]
    tolerations: tuple[Json, ...]
    ports: tuple[Port, ...]
    apart: tuple[LabelMatch, ...]  # of labels that no pod of its namespace may have on the node
    namespace: str  # of those that say something about other pods; "" of all others
    unknown: tuple[str, ...]  # what it requires and this scheduler does not know
    priority: int


class Shapes:
    """The shapes of pods seen lately."""

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}

    def of(self, pod: Json) -> Shape:
        """The shape of a pod, the same object for equal pods."""
        spec = pod["spec"]
        key = _key(pod, spec)
        shape = self._known.get(key)
        if shape is None:
            if len(self._known) >= _CACHED:
                self._known.clear()
            shape = self._known[key] = _parse(pod, spec)
        return shape


def _key(pod: Json, spec: Json) -> str:
    containers = [
        [
            (one.get("resources"), one.get("ports"), one.get("restartPolicy"))
            for one in spec.get(name) or ()
        ]
        for name in ("containers", "initContainers")
    ]
    parts: list[Any] = [containers, *(spec.get(name) for name in _PARTS)]
    if apart := (spec.get("affinity") or {}).get("podAntiAffinity"):
        parts.append(pod["metadata"]["namespace"])
        if any(map(_has_keys, apart.get(_REQUIRED) or ())):
            parts.append(pod["metadata"].get("labels"))
    return json.dumps(parts)


_PARTS = (
    "affinity",
    "topologySpreadConstraints",
    "overhead",
    "resources",
    "nodeSelector",
    "tolerations",
    "hostNetwork",
    "priority",
)


def _parse(pod: Json, spec: Json) -> Shape:
    affinity = spec.get("affinity") or {}
    nodes, together, apart = (
        affinity.get(name) or {} for name in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    )
    away = apart.get(_REQUIRED) or ()
    labels = pod["metadata"].get("labels") or {}
    spreads = spec.get("topologySpreadConstraints") or ()
    unknown = {
        "podAffinity": together.get(_REQUIRED),
        "podAntiAffinity of zones or namespaces": not all(map(_is_of_node, away)),
        "topologySpreadConstraints": any(map(_is_hard, spreads)),
    }
    exact = requested(spec)
    request = {name: size for name, size in sorted(whole(exact).items()) if size}
    scored = whole(requested(spec, unsaid=_unsaid(spec, exact)))
    required = nodes.get(_REQUIRED)
    terms = None if required is None else list(required.get("nodeSelectorTerms") or ())
    tolerations = tuple(spec.get("tolerations") or ())
    return Shape(
        request=tuple(request.items()),
        cpu=request.get("cpu", 0),
        memory=request.get("memory", 0),
        scored_cpu=scored.get("cpu", 0),
        scored_memory=scored.get("memory", 0),
        static=json.dumps([spec.get("nodeSelector"), terms, tolerations], sort_keys=True),
        selector=spec.get("nodeSelector") or {},
        affinity_terms=terms,
        preferred_nodes=tuple(
            (one["weight"], one.get("preference") or {}) for one in nodes.get(_PREFERRED) or ()
        ),
        tolerations=tolerations,
        ports=tuple(_ports(spec)),
        apart=tuple(_label_selector(_selector(one, labels)) for one in away),
        namespace=pod["metadata"]["namespace"] if away else "",
        unknown=tuple(name for name, required in unknown.items() if required),
        priority=spec.get("priority") or 0,
    )


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _unsaid(spec: Json, exact: Amounts) -> Amounts:
    """What a container is scored with; where the pod requests as a whole, that is enough."""
    if not (spec.get("resources") or {}).get("requests"):
        return _UNSAID
    return {name: size for name, size in _UNSAID.items() if name not in exact}


def _ports(spec: Json) -> list[Port]:
    on_host = bool(spec.get("hostNetwork"))
    sidecars = [one for one in spec.get("initContainers") or () if is_sidecar(one)]
    return [
        (port.get("hostIP") or ANY_IP, port.get("protocol") or "TCP", number)
        for container in [*(spec.get("containers") or ()), *sidecars]
        for port in container.get("ports") or ()
        if (number := port.get("hostPort") or (port.get("containerPort") if on_host else 0))
    ]


def _is_of_node(term: Json) -> bool:
    """Whether it is about pods of the same namespace on the same node, so that one node tells."""
    elsewhere = ("namespaces", "namespaceSelector")
    return term.get("topologyKey") == HOSTNAME and not any(name in term for name in elsewhere)


_KEYS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def _has_keys(term: Json) -> bool:
    return not _KEYS.keys().isdisjoint(term)


def _selector(term: Json, labels: Labels) -> Json | None:
    """With what kube-apiserver merges into it: the values that the pod has of the keys."""
    selector = term.get("labelSelector")
    more = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in _KEYS.items()
        for key in term.get(name) or ()
        if key in labels
    ]
    if selector is None or not more:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *more]}


def _is_hard(spread: Json) -> bool:
    return bool(spread.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule")


def _label_selector(selector: Json | None) -> LabelMatch:
    """One that is malformed selects nothing."""
    try:
        return selectors.label_selector(selector)
    except ValueError:
        return selectors.nothing
