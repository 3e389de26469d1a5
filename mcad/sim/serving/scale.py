"""The scale subresource: one form for everything that has a number of replicas."""

from __future__ import annotations

from typing import Any

from mcad.sim import failures
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind

Json = dict[str, Any]

KIND = Kind("autoscaling", "v1", "scales", "Scale")
"""What every ``scale`` subresource speaks; it has no path of its own."""

_BUILTIN = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}


def read(kind: Kind, obj: Json) -> Json:
    """The ``autoscaling/v1`` Scale of an object."""
    paths = kind.scale or _BUILTIN
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = _at(obj, paths.get("labelSelectorPath", ""))
    replicas = _at(obj, paths["specReplicasPath"])
    status: Json = {"replicas": _at(obj, paths["statusReplicasPath"]) or 0}
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _text(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},  # Go leaves 0 out
        "status": status,
    }


def write(kind: Kind, obj: Json, scale: Json) -> Json:
    """The object with the replicas of a Scale; its resourceVersion is a fence. Raises Failure."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", message, "spec.replicas")
        name = obj["metadata"]["name"]
        raise failures.invalid(KIND, name, [cause])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    metadata = obj["metadata"] | ({"resourceVersion": version} if version else {})
    path = (kind.scale or _BUILTIN)["specReplicasPath"].strip(".").split(".")
    return _with(obj, path, replicas) | {"metadata": metadata}


def _at(obj: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


def _with(obj: Json, path: list[str], value: int) -> Json:
    head, *rest = path
    return obj | {head: _with(obj.get(head) or {}, rest, value) if rest else value}


def _text(selector: Json) -> str:
    """A LabelSelector as a query would say it."""
    labels = selector.get("matchLabels") or ({} if "matchExpressions" in selector else selector)
    terms = [f"{key}={value}" for key, value in sorted(labels.items())]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(sorted(term.get("values") or ()))
        match term["operator"]:
            case "In":
                terms.append(f"{term['key']} in ({values})")
            case "NotIn":
                terms.append(f"{term['key']} notin ({values})")
            case "Exists":
                terms.append(term["key"])
            case _:
                terms.append(f"!{term['key']}")
    return ",".join(terms)
