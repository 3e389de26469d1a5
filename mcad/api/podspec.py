"""Reads a pod spec as kube-scheduler does: its effective request and where it may go (C5).

A malformed part counts as absent, because these functions also run for every live pod. Faults that
a user must know of are found by podcheck.py.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

from msgspec import Raw, Struct
from msgspec.structs import astuple

from mcad.api.anti_affinity import NAME as POD_ANTI_AFFINITY
from mcad.api.anti_affinity import Term, may_select_others, read_terms
from mcad.api.located_fields import describe
from mcad.api.wire import Json, Map, as_int, as_list, as_map, as_text, read_json
from mcad.core.state.model import (
    EVERY_ADDRESS,
    Constraint,
    HostPort,
    Requirement,
    Resources,
    Toleration,
)
from mcad.core.state.not_checked import OTHERS_PODS
from mcad.core.state.quantity import (
    CPU,
    HUGE_PAGES,
    MEMORY,
    MILLIS,
    QuantityError,
    amount,
    capped,
    parse_quantity,
)

Amounts = dict[str, int]
"""Thousandths of each resource, as the API server keeps them; only sums are rounded to wholes."""

ANYWHERE = Constraint()
CLAIMS = "resourceClaims"
"""The name of devices of dynamic resource allocation in ``unmodelled``."""

ONE_POD: Amounts = {"pods": MILLIS}

_QUANTITIES = 8192
_SHAPES = 8192


def quantity(resource: str, value: Json) -> int | None:
    """An amount as the core counts it, None if the value is not a quantity.

    The API server takes JSON numbers too: ``cpu: 0.5`` needs no quotes.
    """
    return _quantity(resource, _quantity_text(value))


def quantity_fault(resource: str, value: Json) -> str:
    """Why a value is not a quantity, "" if it is one."""
    text = _quantity_text(value)
    if not text:
        return f'{describe(value)} is not a quantity: write it like "500m", "2" or "4Gi".'
    try:
        amount(resource, text)
    except QuantityError as error:
        return f"{error}."
    return ""


def _quantity_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return repr(value) if number and abs(value) < 2**64 else ""


@lru_cache(_QUANTITIES)
def _quantity(resource: str, text: str) -> int | None:
    try:
        return amount(resource, text)
    except QuantityError:
        return None


@lru_cache(_QUANTITIES)
def _thousandths(text: str) -> int | None:
    try:
        return parse_quantity(text, MILLIS)
    except QuantityError:
        return None


def amounts(quantities: Json) -> Amounts:
    """The amounts in a map of quantities, without malformed ones."""
    read: Amounts = {}
    for name, value in as_map(quantities).items():
        number = _thousandths(_quantity_text(value))
        if number is not None:
            read[name] = number
    return read


def container_requests(container: Json) -> Amounts:
    """The requests of one container; a limit replaces a missing request."""
    resources = as_map(as_map(container).get("resources"))
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def effective_request(spec: Map, status: Map | None = None) -> Resources:
    """The request of a pod by kube-scheduler's formula, plus one ``pods`` slot.

    With ``status``, the resources that a live pod was given count as well.
    """
    read = _actual_reader(status) if status else container_requests
    total = of_containers(spec, read)
    if spec.get("resources"):
        total.update(_given_level(pod_level(spec), status or {}))
    if overhead := spec.get("overhead"):
        _add(total, amounts(overhead))
    return to_resources(total | ONE_POD)


def of_containers(spec: Map, read: Callable[[Json], Amounts] = container_requests) -> Amounts:
    """The request of all containers. An init container runs beside the sidecars before it; after
    that, all regular containers run beside all sidecars."""
    total: Amounts = {}
    for container in as_list(spec.get("containers")):
        _add(total, read(container))
    if inits := as_list(spec.get("initContainers")):
        _raise(total, _while_initialising(inits, total, read))
    return total


def pod_level(spec: Map) -> Amounts:
    """The request of the pod as a whole, which replaces the sum of its containers.

    If there is any limit, the server completes the request: by that sum, else by the limit. It does
    so before a LimitRange adds to the containers, and before any resize.
    """
    level = as_map(spec.get("resources"))
    requests = amounts(level.get("requests"))
    if limits := amounts(level.get("limits")):
        containers = of_containers(spec)
        sums = {name: containers[name] for name in (CPU, MEMORY) if name in containers}
        requests = limits | sums | requests
    return {
        name: size
        for name, size in requests.items()
        if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)
    }


def _given_level(requests: Amounts, status: Map) -> Amounts:
    if not isinstance(status.get("resources"), dict):
        return requests
    given = _granted(requests, status, infeasible=_resize_infeasible(status))
    return {name: given.get(name, 0) for name in requests}


def to_resources(total: Amounts) -> Resources:
    """Amounts in the core's form; equal ones are one object, as thousands of pods are equal."""
    wholes = (
        (name, capped(size if name == CPU else -(-size // MILLIS)))
        for name, size in total.items()
        if size > 0
    )
    return _shared(tuple(sorted(wholes)))


@lru_cache(_SHAPES)
def _shared(resources: Resources) -> Resources:
    return resources


def _while_initialising(
    inits: list[Json], total: Amounts, read: Callable[[Json], Amounts]
) -> Amounts:
    """The peak while init containers run; adds the sidecars to ``total``: they keep running."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in inits:
        if as_map(container).get("restartPolicy") == "Always":
            use = read(container)
            _add(total, use)
            _add(sidecars, use)
            _raise(peak, sidecars)
        else:
            use = container_requests(container)
            _add(use, sidecars)
            _raise(peak, use)
    return peak


def _actual_reader(status: Map) -> Callable[[Json], Amounts]:
    """Reads requests of live containers: the largest of wanted, allocated and actual.

    The wanted request does not count once the node has reported that the resize is infeasible.
    """
    infeasible = _resize_infeasible(status)
    reported = {
        one["name"]: one
        for key in ("containerStatuses", "initContainerStatuses")
        for one in as_list(status.get(key))
        if isinstance(one, dict)
        and isinstance(one.get("resources"), dict)
        and isinstance(one.get("name"), str)
    }

    def read(container: Json) -> Amounts:
        wanted = container_requests(container)
        report = reported.get(as_text(as_map(container).get("name")))
        return wanted if report is None else _granted(wanted, report, infeasible=infeasible)

    return read


def _granted(wanted: Amounts, report: Map, *, infeasible: bool) -> Amounts:
    given = amounts(as_map(report.get("resources")).get("requests"))
    _raise(given, amounts(report.get("allocatedResources")))
    if not infeasible:
        _raise(given, wanted)
    return given


def conditions_of(status: Map, kind: str) -> list[Map]:
    """The conditions of this type that a live pod has. They may still be text (projections.py),
    which is decoded only if it names the type."""
    value = status.get("conditions")
    if isinstance(value, Raw):
        text = bytes(value)
        value = read_json(text) if kind.encode() in text else None
    return [one for one in as_list(value) if isinstance(one, dict) and one.get("type") == kind]


def resizes(status: Map) -> list[Map]:
    """The conditions of a live pod that affect its request: pending resizes."""
    return conditions_of(status, "PodResizePending")


def _resize_infeasible(status: Map) -> bool:
    return next((one.get("reason") == "Infeasible" for one in resizes(status)), False)


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise(total: Amounts, floor: Amounts) -> None:
    for name, value in floor.items():
        if value > total.get(name, -1):  # a request of 0 is a request, too
            total[name] = value


class Placement(Struct, frozen=True):
    """Where pods of one template may go; ``unmodelled``: parts that the fit test ignores. ``terms``
    say which other pods they share no node with (anti_affinity.py)."""

    constraint: Constraint = ANYWHERE
    cap: int = 0
    unmodelled: tuple[str, ...] = ()
    ports: tuple[HostPort, ...] = ()
    terms: tuple[Term, ...] = ()


def placement(template: Map) -> Placement:
    """Read the placement of a pod template, or of a pod."""
    spec = as_map(template.get("spec"))
    affinity = as_map(spec.get("affinity"))
    labels = as_map(as_map(template.get("metadata")).get("labels"))
    terms, has_others = read_terms(as_map(affinity.get("podAntiAffinity")), labels)
    unmodelled = [
        name
        for name, present in (
            ("podAffinity", _required(affinity.get("podAffinity"))),
            (POD_ANTI_AFFINITY, has_others),
            (OTHERS_PODS, may_select_others(terms)),
            ("topologySpread", _spreads(spec)),
            ("volumes", _claims_volumes(spec)),
            (CLAIMS, spec.get("resourceClaims")),
        )
        if present
    ]
    return Placement(
        constraint=Constraint(
            selector=_pairs(spec.get("nodeSelector")),
            affinity=_node_affinity(as_map(affinity.get("nodeAffinity"))),
            tolerations=tolerations_of(spec.get("tolerations")),
            node_name=as_text(spec.get("nodeName")),
        ),
        cap=1 if any(term.selects(labels) for term in terms) else 0,
        unmodelled=tuple(unmodelled),
        ports=host_ports(spec),
        terms=terms,
    )


def _maps(value: Json) -> Iterable[Map]:
    return (one for one in as_list(value) if isinstance(one, dict))


def _pairs(value: Json) -> tuple[tuple[str, str], ...]:
    """The items of a map of strings, sorted."""
    return tuple(sorted((key, one) for key, one in as_map(value).items() if isinstance(one, str)))


def _required(affinity: Json) -> list[Json]:
    return as_list(as_map(affinity).get("requiredDuringSchedulingIgnoredDuringExecution"))


def tolerations_of(value: Json) -> tuple[Toleration, ...]:
    """The tolerations in a list, without malformed ones."""
    return tuple(map(_toleration, _maps(value)))


def _toleration(value: Map) -> Toleration:
    return Toleration(
        key=as_text(value.get("key")),
        operator=as_text(value.get("operator")) or "Equal",
        value=as_text(value.get("value")),
        effect=as_text(value.get("effect")),
    )


def _node_affinity(affinity: Map) -> tuple[tuple[Requirement, ...], ...] | None:
    """The required terms. A term without requirements matches no node, so it is left out."""
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, dict):
        return None
    terms = map(_term, _maps(required.get("nodeSelectorTerms")))
    return tuple(term for term in terms if term)


def _term(value: Map) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(
            key=as_text(one.get("key")),
            operator=as_text(one.get("operator")),
            values=tuple(v for v in as_list(one.get("values")) if isinstance(v, str)),
            field=field == "matchFields",
        )
        for field in ("matchExpressions", "matchFields")
        for one in _maps(value.get(field))
    )


def host_ports(spec: Map) -> tuple[HostPort, ...]:
    """The ports that a pod binds on its node, as in kube-scheduler's NodePorts: those of regular
    containers and sidecars; with host networking, every container port is a host port."""
    sidecars = (
        one for one in _maps(spec.get("initContainers")) if one.get("restartPolicy") == "Always"
    )
    on_host = spec.get("hostNetwork") is True
    found: set[HostPort] = set()
    for container in (*_maps(spec.get("containers")), *sidecars):
        for port in _maps(container.get("ports")):
            number = port.get("hostPort") or (on_host and port.get("containerPort"))
            if number and (number := as_int(number)) > 0:
                protocol, address = as_text(port.get("protocol")), as_text(port.get("hostIP"))
                found.add(HostPort(protocol or "TCP", number, address or EVERY_ADDRESS))
    return tuple(sorted(found, key=astuple))


def _spreads(spec: Map) -> bool:
    return any(
        one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        for one in _maps(spec.get("topologySpreadConstraints"))
    )


def _claims_volumes(spec: Map) -> bool:
    return any(
        "persistentVolumeClaim" in one or "ephemeral" in one for one in _maps(spec.get("volumes"))
    )
