"""What else lives in a namespace: configuration, accounts, services, events."""

from __future__ import annotations

from typing import Any

from mcad.kube.types import Json
from mcad.sim.serving.tables.printer import NONE, age, labels, name, printer, since, status


def _config_map(obj: Json, now_us: int) -> list[Any]:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [name(obj), count, age(obj, now_us)]


def _secret(obj: Json, now_us: int) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now_us)]


def _service_account(obj: Json, now_us: int) -> list[Any]:
    return [name(obj), age(obj, now_us)]


def _service(obj: Json, now_us: int) -> list[Any]:
    spec = obj["spec"]
    addresses = spec.get("clusterIPs") or [NONE]
    return [
        name(obj),
        spec.get("type", ""),
        addresses[0],
        _external_address(obj),
        ",".join(_port(one) for one in spec.get("ports") or ()) or NONE,
        age(obj, now_us),
        labels(spec.get("selector")),
    ]


def _external_address(obj: Json) -> str:
    spec = obj["spec"]
    given = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            points = (status(obj).get("loadBalancer") or {}).get("ingress") or ()
            balanced = {one.get("ip") or one.get("hostname") or "" for one in points} - {""}
            return ",".join([*sorted(balanced), *given]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return "<unknown>"


def _port(port: Json) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}"


def _event(obj: Json, now_us: int) -> list[Any]:
    """An Event in the form of the core group, or in that of events.k8s.io."""
    series = obj.get("series")
    began = _first(obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    first = since(began, now_us)
    last = since(_first(obj, "lastTimestamp", "deprecatedLastTimestamp") or began, now_us)
    count = _first(obj, "count", "deprecatedCount") or 1
    if series is not None:
        last, count = since(series.get("lastObservedTime"), now_us), series.get("count", 0)
    about = _first(obj, "involvedObject", "regarding") or {}
    kind = about.get("kind", "").lower()
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _event_source(obj),
        (_first(obj, "message", "note") or "").strip(),
        first,
        count,
        name(obj),
    ]


def _event_source(obj: Json) -> str:
    source = _first(obj, "source", "deprecatedSource") or {}
    component = source.get("component") or _first(obj, "reportingComponent", "reportingController")
    instance = source.get("host") or obj.get("reportingInstance")
    return (
        ", ".join(one for one in (component or "", instance) if one)
        if instance
        else (component or "")
    )


def _first(obj: Json, *fields: str) -> Any:
    return next((obj[field] for field in fields if obj.get(field)), None)


CONFIG_MAPS = printer("Name, Data, Age", _config_map)
SECRETS = printer("Name, Type, Data, Age", _secret)
SERVICE_ACCOUNTS = printer("Name, Age", _service_account)
SERVICES = printer("Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector+", _service)
EVENTS = printer(
    "Last Seen, Type, Reason, Object, Subobject+, Source+, Message, First Seen+, Count+, Name+",
    _event,
)
