"""One object in the versions under which it is served.

A kind of a CRD differs in ``apiVersion`` only (conversion strategy None). Events are one kind in
two groups with different fields; they are kept in the form of the core group.
"""

from mcad.kube.types import Json
from mcad.sim.kinds import EVENTS, Kind

_EVENTS_GROUP = "events.k8s.io"
# events.k8s.io/v1 -> v1 (k8s.io/kubernetes/pkg/apis/events/v1/conversion.go).
_EVENT_FIELDS = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)


_EVENT_ALWAYS: Json = {  # Go leaves these out in neither group, but for the two texts
    "eventTime": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
}
_OPTIONAL_TEXTS = ("reportingController", "reportingInstance")


def to_stored(kind: Kind, obj: Json) -> Json:
    """What is kept of an object that came in as ``kind``."""
    if kind.storage != EVENTS:
        return obj
    if kind.group == _EVENTS_GROUP:
        obj = _renamed(obj, dict(_EVENT_FIELDS), "v1")
    return _EVENT_ALWAYS | obj


def from_stored(kind: Kind, obj: Json) -> Json:
    """The object in the version of ``kind``; the same object if nothing differs."""
    if kind.storage == EVENTS and kind.group == _EVENTS_GROUP:
        names = {core: events for events, core in _EVENT_FIELDS}
        shown = _renamed(obj, names, kind.api_version)
        for name in _OPTIONAL_TEXTS:
            if shown.get(name) == "":
                del shown[name]
        return shown
    if obj.get("apiVersion") == kind.api_version:
        return obj
    return obj | {"apiVersion": kind.api_version}


def _renamed(obj: Json, names: dict[str, str], api_version: str) -> Json:
    return {names.get(key, key): value for key, value in obj.items()} | {"apiVersion": api_version}
