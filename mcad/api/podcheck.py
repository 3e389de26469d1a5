"""Checks pod templates of manifests: the strict counterpart of podspec.py."""

from collections.abc import Iterable, Iterator

from mcad.api.located_fields import Fault, describe, join
from mcad.api.podspec import quantity_fault
from mcad.api.wire import Json, Map, as_map

_MAPS = ("affinity", "nodeSelector", "overhead", "resources")
_LISTS = (
    "containers",
    "initContainers",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "resourceClaims",
)


def check_template(template: Json, path: str) -> Iterator[Fault]:
    """Faults of a template that would be misread, or that the API server would refuse."""
    if not isinstance(template, dict):
        yield Fault(path, f"must be a pod template, not {describe(template)}.")
        return
    where = join(path, "spec")
    spec = template.get("spec")
    if not isinstance(spec, dict):
        yield Fault(where, f"must be a pod spec, not {describe(spec)}.")
        return
    yield from _shapes(spec, where, _MAPS, dict, "a map")
    yield from _shapes(spec, where, _LISTS, list, "a list")
    yield from _selector(spec.get("nodeSelector"), join(where, "nodeSelector"))
    for key in ("containers", "initContainers"):
        yield from _containers(spec.get(key), join(where, key))
    yield from check_resources(spec.get("resources"), join(where, "resources"))
    yield from check_quantities(spec.get("overhead"), join(where, "overhead"))


def _shapes(spec: Map, where: str, keys: Iterable[str], wanted: type, word: str) -> Iterator[Fault]:
    for key in keys:
        value = spec.get(key)
        if value is not None and not isinstance(value, wanted):
            yield Fault(join(where, key), f"must be {word}, not {describe(value)}.")


def _selector(selector: Json, where: str) -> Iterator[Fault]:
    for key, value in as_map(selector).items():
        if not isinstance(value, str):
            yield Fault(join(where, key), f"must be a string, not {describe(value)}; quote it.")


def _containers(containers: Json, where: str) -> Iterator[Fault]:
    if not isinstance(containers, list):
        return
    for i, container in enumerate(containers):
        here = f"{where}[{i}]"
        if not isinstance(container, dict):
            yield Fault(here, f"must be a container, not {describe(container)}.")
            continue
        yield from check_resources(container.get("resources"), join(here, "resources"))


def check_resources(resources: Json, where: str) -> Iterator[Fault]:
    """Faults of the requests and limits of a container, a pod or a declaration."""
    if resources is None:
        return
    if not isinstance(resources, dict):
        yield Fault(where, f"must be a map, not {describe(resources)}.")
        return
    for key in ("requests", "limits"):
        yield from check_quantities(resources.get(key), join(where, key))


def check_quantities(quantities: Json, where: str) -> Iterator[Fault]:
    """Faults of a map of resource names to quantities, which must not be negative."""
    if quantities is None:
        return
    if not isinstance(quantities, dict):
        yield Fault(where, f"must be a map of quantities, not {describe(quantities)}.")
        return
    for name, value in quantities.items():
        if message := quantity_fault(name, value):
            yield Fault(join(where, name), message)
