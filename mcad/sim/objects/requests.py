"""What a pod requests, as kube-scheduler counts it, written from its rules and nothing of ours.

The dispatcher has an arithmetic of its own (``mcad.api.podspec``). This one is there to judge it,
so it shares no code with it, and goes another way: by the moments of a pod's life.

Source: ``PodRequests`` of ``k8s.io/component-helpers/resource``, and the resources of ``NodeInfo``
in kube-scheduler 1.36. Pods are as they are stored: limits have replaced missing requests, and
every name is one that the scheduler counts, as no other is admitted.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from mcad.kube.types import Json
from mcad.sim.objects.quantities import canonical, quantity

Amounts = dict[str, int]
"""Thousandths of each resource: the server keeps nothing finer. Sums are rounded, not parts."""

_THOUSAND = 1000
_CACHED = 8192
_OF_PODS = ("cpu", "memory")  # what a pod can request as a whole, besides huge pages


def requested(spec: Json, status: Json | None = None, unsaid: Amounts | None = None) -> Amounts:
    """What has to be free on a node for a pod, or what one on a node takes, in thousandths.

    ``status`` is that of a pod on a node: while it is resized, the larger size counts. (Nothing is
    resized in the embedded cluster; the dispatcher is judged by it.) ``unsaid`` replaces what
    a container says nothing about.
    """
    reports = _reports(status or {})
    is_hopeless = _is_hopeless(status or {})

    def use(container: Json, *, stays: bool) -> Amounts:
        wanted = amounts((container.get("resources") or {}).get("requests"))
        report = reports.get(container.get("name")) if stays else None
        if report is not None and report.get("resources") is not None:
            given = [report["resources"].get("requests"), report.get("allocatedResources")]
            wanted = _largest([*map(amounts, given), *([] if is_hopeless else [wanted])])
        return {**(unsaid or {}), **wanted}

    total = _largest(
        _sum([use(one, stays=stays) for one, stays in moment]) for moment in _moments(spec)
    )
    total |= _as_a_whole(spec, status or {}, is_hopeless=is_hopeless)
    return _sum([total, amounts(spec.get("overhead"))])


def complete(spec: Json) -> None:
    """Fill in requests of which only the limit is said, in place (``SetDefaults_Pod``)."""
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            resources = container.get("resources") or {}
            if limits := resources.get("limits"):
                resources["requests"] = limits | (resources.get("requests") or {})
    level = spec.get("resources") or {}
    if limits := level.get("limits"):
        of_containers = requested({**spec, "resources": None, "overhead": None})
        summed = {name: _text(of_containers[name]) for name in _OF_PODS if name in of_containers}
        limits = {name: limit for name, limit in limits.items() if _is_of_pods(name)}
        level["requests"] = limits | summed | (level.get("requests") or {})


def whole(thousandths: Amounts) -> Amounts:
    """In the units of a scheduler, rounded up: milli-CPU, bytes, counts."""
    return {
        name: size if name == "cpu" else -(-size // _THOUSAND) for name, size in thousandths.items()
    }


def amounts(quantities: Mapping[str, str] | None) -> Amounts:
    """A list of resources, in thousandths."""
    return {name: _thousandths(str(text)) for name, text in (quantities or {}).items()}


def _text(size: int) -> str:
    kibi = _THOUSAND * 1024
    return canonical(f"{size}m" if size % kibi else f"{size // kibi}Ki")


def _is_of_pods(name: str) -> bool:
    """Whether pods can request it as a whole."""
    return name in _OF_PODS or name.startswith("hugepages-")


def is_sidecar(container: Json) -> bool:
    """An init container that goes on running."""
    return container.get("restartPolicy") == "Always"


def _moments(spec: Json) -> Iterator[list[tuple[Json, bool]]]:
    """The containers that run at the same time, at each moment from the first start until all run.

    An init container runs beside the sidecars that were started before it.
    """
    sidecars: list[tuple[Json, bool]] = []
    for one in spec.get("initContainers") or ():
        yield [*sidecars, (one, is_sidecar(one))]
        if is_sidecar(one):
            sidecars.append((one, True))
    yield [*sidecars, *((one, True) for one in spec.get("containers") or ())]


def _as_a_whole(spec: Json, status: Json, *, is_hopeless: bool) -> Amounts:
    """What the pod requests as a whole; what its containers request of it does not count then."""
    wanted = amounts((spec.get("resources") or {}).get("requests"))
    counted = wanted
    if status.get("resources") is not None:
        given = [status["resources"].get("requests"), status.get("allocatedResources")]
        counted = _largest([*map(amounts, given), *([] if is_hopeless else [wanted])])
    return {name: counted.get(name, 0) for name in wanted if _is_of_pods(name)}


def _reports(status: Json) -> dict[str | None, Json]:
    both = (status.get(key) or () for key in ("containerStatuses", "initContainerStatuses"))
    return {one.get("name"): one for reports in both for one in reports}


def _is_hopeless(status: Json) -> bool:
    """Whether the node has said that it can never give what is wanted."""
    conditions = status.get("conditions") or ()
    pending = (one for one in conditions if one.get("type") == "PodResizePending")
    return next((one.get("reason") == "Infeasible" for one in pending), False)


def _sum(parts: list[Amounts]) -> Amounts:
    return {name: sum(part.get(name, 0) for part in parts) for name in _names(parts)}


def _largest(parts: Iterator[Amounts] | list[Amounts]) -> Amounts:
    parts = list(parts)
    return {name: max(part.get(name, 0) for part in parts) for name in _names(parts)}


def _names(parts: list[Amounts]) -> dict[str, None]:
    return dict.fromkeys(name for part in parts for name in part)


@lru_cache(_CACHED)
def _thousandths(text: str) -> int:
    size = quantity(text) * _THOUSAND
    return -(-size.numerator // size.denominator)
