"""Reads pod templates, with a cache of equal templates.

Thousands of AppWrappers have the same generator: their pods differ in names, environments and
labels only, which are not read here.
"""

from typing import Any

from msgspec import Struct

from mcad.api.durations import clamp_seconds
from mcad.api.located_fields import Fault, join
from mcad.api.podcheck import check_template
from mcad.api.podspec import Placement, effective_request, placement
from mcad.api.wire import Json, Map, as_map
from mcad.core.state.model import POD_GRACE, Resources
from mcad.core.state.units import SECOND

_OF_SPEC = (
    "affinity",
    "containers",
    "hostNetwork",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "overhead",
    "resourceClaims",
    "resources",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
_OF_CONTAINER = ("ports", "resources", "restartPolicy")
_LISTS = ("containers", "initContainers")
_KNOWN_MAX = 2048
_TEXT_MAX = 4096  # characters of a cached text; longer ones hardly repeat


class Reading(Struct, frozen=True):
    """The request of one pod, its placement, its termination grace period in seconds, and its
    faults; their paths begin at the template."""

    request: Resources
    place: Placement
    grace: int
    faults: tuple[Fault, ...]

    def faults_at(self, path: str) -> list[Fault]:
        """The faults of a template at this path."""
        return [Fault(join(path, fault.path), fault.message) for fault in self.faults]


_known: dict[str, Reading] = {}


def read_template(template: Map) -> Reading:
    """Read a pod template, or return the cached reading of an equal one."""
    depends = _depends(template)
    try:
        text = repr(depends)  # unlike JSON it distinguishes all values, those of a YAML file too
    except ValueError:  # a number with thousands of digits, which only a YAML file can have
        return _read(depends)
    reading = _known.get(text)
    if reading is None:
        reading = _read(depends)
        if len(text) <= _TEXT_MAX:
            if len(_known) >= _KNOWN_MAX:
                _known.clear()
            _known[text] = reading
    return reading


def _read(template: Map) -> Reading:
    spec = as_map(template.get("spec"))
    return Reading(
        effective_request(spec),
        placement(template),
        _grace(spec),
        tuple(check_template(template, "")),
    )


def _grace(spec: Map) -> int:
    """``terminationGracePeriodSeconds`` with the API server's default; 1 if it is negative."""
    value = spec.get("terminationGracePeriodSeconds")
    if type(value) is not int:
        return POD_GRACE // SECOND
    return clamp_seconds(value) if value >= 0 else 1


def _depends(template: Map) -> Map:
    """The template without the fields that are never read; malformed values stay as they are."""
    spec = template.get("spec")
    if not isinstance(spec, dict):
        return {"spec": spec}
    kept: dict[str, Any] = {key: spec[key] for key in _OF_SPEC if key in spec}
    for key in _LISTS:
        if isinstance(kept.get(key), list):
            kept[key] = [_container(one) for one in kept[key]]
    if "affinity" not in kept:  # which may select by labels
        return {"spec": kept}
    return {"spec": kept, "metadata": template.get("metadata")}


def _container(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: value[key] for key in _OF_CONTAINER if key in value}
