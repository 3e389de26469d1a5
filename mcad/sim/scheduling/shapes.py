"""What kube-scheduler reads from a pod, parsed once for all pods that are alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcad.kube import selectors
from mcad.sim.objects.requests import Amounts, is_sidecar, requested, whole

Json = dict[str, Any]
Labels = Mapping[str, str]
Port = tuple[str, str, int]  # host IP, protocol, number

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ANY_IP = "0.0.0.0"  # noqa: S104 - the API's word for every address

# A container without requests is scored as if it had these (pkg/scheduler/util/pod_resources.go).
_UNSAID = {"cpu": 100, "memory": (200 << 20) * 1000}  # in thousandths
_CACHED = 8192


@dataclass(frozen=True, eq=False)
class Select:
    """A LabelSelector: its test, and the pairs that everything it matches has."""

    matches: Callable[[Labels], bool]
    pairs: tuple[tuple[str, str], ...]
    is_empty: bool = False


@dataclass(frozen=True, eq=False)
class Term:
    """One term of pod (anti-)affinity."""

    topology_key: str
    select: Select
    namespaces: tuple[str, ...]
    namespace_select: Select | None

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Whether a pod is meant."""
        named = namespace in self.namespaces or (
            self.namespace_select is not None and self.namespace_select.matches(namespace_labels)
        )
        return named and self.select.matches(labels)


@dataclass(frozen=True, eq=False)
class Spread:
    """One topology spread constraint."""

    topology_key: str
    max_skew: int
    select: Select
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False


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
    together: tuple[Term, ...]
    apart: tuple[Term, ...]
    rather_together: tuple[tuple[int, Term], ...]
    rather_apart: tuple[tuple[int, Term], ...]
    hard_spread: tuple[Spread, ...]
    soft_spread: tuple[Spread, ...]
    spreads_by_default: bool
    priority: int
    preempts: bool

    @property
    def has_affinity(self) -> bool:
        """Whether it says anything about other pods."""
        return bool(self.together or self.apart or self.rather_together or self.rather_apart)

    @property
    def looks_at_others(self) -> bool:
        """Whether other pods than those of a node decide if it may go there."""
        return bool(self.together or self.apart or self.hard_spread)


class Shapes:
    """The shapes of pods seen lately."""

    def __init__(self) -> None:
        """Empty."""
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
    affinity, spread = spec.get("affinity"), spec.get("topologySpreadConstraints")
    parts: list[Any] = [
        containers,
        affinity,
        spread,
        *(spec.get(name) for name in _PARTS),
    ]
    if affinity or spread:
        parts += [pod["metadata"]["namespace"], pod["metadata"].get("labels")]
    return json.dumps(parts)


_PARTS = (
    "overhead",
    "resources",
    "nodeSelector",
    "tolerations",
    "hostNetwork",
    "priority",
    "preemptionPolicy",
)


def _parse(pod: Json, spec: Json) -> Shape:
    namespace = pod["metadata"]["namespace"]
    labels = pod["metadata"].get("labels") or {}
    affinity = spec.get("affinity") or {}
    nodes, together, apart = (
        affinity.get(name) or {} for name in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    )
    exact = requested(spec)
    request = {name: size for name, size in sorted(whole(exact).items()) if size}
    scored = whole(requested(spec, unsaid=_unsaid(spec, exact)))
    required = nodes.get(_REQUIRED)
    terms = None if required is None else list(required.get("nodeSelectorTerms") or ())
    spreads = spec.get("topologySpreadConstraints") or ()
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
        together=tuple(_term(one, namespace, labels) for one in together.get(_REQUIRED) or ()),
        apart=tuple(_term(one, namespace, labels) for one in apart.get(_REQUIRED) or ()),
        rather_together=_weighted(together, namespace, labels),
        rather_apart=_weighted(apart, namespace, labels),
        hard_spread=tuple(_spread(one, labels) for one in spreads if _is_hard(one)),
        soft_spread=tuple(_spread(one, labels) for one in spreads if not _is_hard(one)),
        spreads_by_default=not spreads,
        priority=spec.get("priority") or 0,
        preempts=spec.get("preemptionPolicy") != "Never",
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


def select(selector: Json | None, extra: Labels | None = None) -> Select:
    """A LabelSelector and more labels that must be there; one that is malformed selects nothing."""
    if selector is not None and extra:
        wanted = dict(selector.get("matchLabels") or {}) | dict(extra)
        selector = selector | {"matchLabels": wanted}
    try:
        test = selectors.label_selector(selector)
    except ValueError:
        test = selectors.nothing
    pairs = [*((selector or {}).get("matchLabels") or {}).items()]
    pairs += [
        (one["key"], one["values"][0])
        for one in (selector or {}).get("matchExpressions") or ()
        if one.get("operator") == "In" and len(one.get("values") or ()) == 1
    ]
    return Select(test, tuple(pairs), test is selectors.everything)


def _term(term: Json, namespace: str, labels: Labels) -> Term:
    extra = {key: labels[key] for key in term.get("matchLabelKeys") or () if key in labels}
    selector = term.get("labelSelector")
    differing = [key for key in term.get("mismatchLabelKeys") or () if key in labels]
    if selector is not None and differing:
        more = [{"key": key, "operator": "NotIn", "values": [labels[key]]} for key in differing]
        selector = selector | {
            "matchExpressions": [*(selector.get("matchExpressions") or ()), *more]
        }
    namespaces, by_label = term.get("namespaces") or (), term.get("namespaceSelector")
    if not namespaces and by_label is None:
        namespaces = (namespace,)
    return Term(
        term.get("topologyKey", ""),
        select(selector, extra),
        tuple(namespaces),
        None if by_label is None else select(by_label),
    )


def _weighted(affinity: Json, namespace: str, labels: Labels) -> tuple[tuple[int, Term], ...]:
    return tuple(
        (one["weight"], _term(one["podAffinityTerm"], namespace, labels))
        for one in affinity.get(_PREFERRED) or ()
    )


def _is_hard(spread: Json) -> bool:
    return bool(spread.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule")


def _spread(spread: Json, labels: Labels) -> Spread:
    extra = {key: labels[key] for key in spread.get("matchLabelKeys") or () if key in labels}
    return Spread(
        spread["topologyKey"],
        spread["maxSkew"],
        select(spread.get("labelSelector"), extra),
        spread.get("minDomains") or 1,
        spread.get("nodeAffinityPolicy", "Honor") == "Honor",
        spread.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )
