"""Settings that former versions had, and what to do where one is still given."""

from collections.abc import Mapping

from msgspec import Struct

from mcad.api.wire import Json
from mcad.api.wrapped_kinds import WITHOUT_PODS

LATER = {"gateway.networking.k8s.io"}
"""API groups of ``WITHOUT_PODS`` that came when ``resourcesWithoutPods`` had gone."""


class Removed(Struct, frozen=True):
    """A setting that is gone: the value that holds now, and what to do."""

    value: Json
    advice: str


REMOVED: Mapping[str, Removed] = {
    "bindingWait": Removed(
        5, "remove it: a gang that fits waits for the bindings of others for 5 s at most"
    ),
    "podCountsInterval": Removed(30, "remove it: pod counts in status are 30 s old at most"),
    "potentialCapacity": Removed({}, "remove it: only room of nodes that exist is counted"),
    "resourcesWithoutPods": Removed(
        [
            {
                "apiGroup": group,
                "resources": sorted(one for key, one in WITHOUT_PODS if key == group),
            }
            for group in sorted({group for group, _ in WITHOUT_PODS} - LATER)
        ],
        "remove it: the kinds without pods are fixed",
    ),
    "warmStandby": Removed(
        True, "remove it: a standby always holds a copy, and needs as much memory as a leader"
    ),
    "faultTolerance.retryLimitCeiling": Removed(
        None, "remove it: a ValidatingAdmissionPolicy can bound the annotation retryLimit"
    ),
}
"""By name; that of a field begins with its setting."""


def refusal(setting: str, value: Json) -> str:
    """What to do if this is a removed setting, or has a removed field; "" if it is not."""
    fields = value if isinstance(value, dict) else ()
    for name in (setting, *(f"{setting}.{field}" for field in fields)):
        if name in REMOVED:
            return f"{name} is no longer a setting; {REMOVED[name].advice}."
    return ""
