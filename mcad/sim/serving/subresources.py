"""Requests to ``scale`` and ``log``, which have forms of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcad.kube.port import Request
from mcad.kube.types import Json
from mcad.sim import deletion, failures
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects import decoding
from mcad.sim.objects.builtin import type_of
from mcad.sim.registry import Registry, check_name
from mcad.sim.serving import bodies
from mcad.sim.serving.patches import change_of
from mcad.sim.serving.routing import Target
from mcad.sim.writes import Write

Answer = tuple[int, Json | bytes]

_SCALE = Kind("autoscaling", "v1", "scales", "Scale")
"""What every ``scale`` subresource speaks; it has no path of its own."""

_BUILTIN_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_SILENCE = b"(simulated pods run nothing, so there is nothing they could have written)\n"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a subresource."""

    registry: Registry
    request: Request
    target: Target
    how: Write

    @property
    def name(self) -> str:
        """The object whose subresource it is."""
        return self.target.name

    def present(self) -> Json:
        """That object; raises Failure 404."""
        return self.registry.get(self.target.kind, self.target.key)

    def body(self, kind: Kind) -> Json:
        """What was sent; raises Failure 400 or 415."""
        return bodies.read(self.request, kind)


def find(method: str, name: str, kind: Kind) -> Callable[[Call], Answer] | None:
    """The handler of the request, if it is one of these."""
    if name == "log" and kind.storage == deletion.PODS:
        return read_log if method == "GET" else None
    return _ANSWERS.get((method, name))


def read_log(call: Call) -> Answer:
    """GET of a container's log; raises Failure 400 or 404 as a real cluster does."""
    pod, chosen = call.present(), call.request.params.get("container", "")
    name, spec = pod["metadata"]["name"], pod["spec"]
    names = [one["name"] for one in spec["containers"]]
    if not chosen and len(names) > 1:
        listed = " ".join(names)
        raise failures.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{listed}]"
        )
    chosen = chosen or names[0]
    if chosen not in names + [one["name"] for one in spec.get("initContainers") or ()]:
        raise failures.bad_request(f"container {chosen} is not valid for pod {name}")
    if not spec.get("nodeName"):
        return 204, b""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    state: Json = next((one["state"] for one in statuses if one["name"] == chosen), {})
    if reason := (state.get("waiting") or {}).get("reason"):
        raise failures.bad_request(
            f'container "{chosen}" in pod "{name}" is waiting to start: {reason}'
        )
    return 200, b"" if call.request.params.get("tailLines") == "0" else _SILENCE


def read_scale(call: Call) -> Answer:
    """GET of a Scale; raises Failure 404."""
    return 200, _scale_of(call.target.kind, call.present())


def put_scale(call: Call) -> Answer:
    """PUT of a Scale; raises Failure."""
    return _write_scale(call, call.body(_SCALE))


def patch_scale(call: Call) -> Answer:
    """PATCH of a Scale; raises Failure."""
    present = _scale_of(call.target.kind, call.present())
    return _write_scale(call, change_of(_SCALE, call.request)(present))


def _write_scale(call: Call, wanted: Json) -> Answer:
    struct = type_of(_SCALE)
    if struct is not None:
        try:
            wanted, _ = decoding.decode(wanted, struct)
        except decoding.DecodeError as error:
            text = f'Scale in version "v1" cannot be handled as a Scale: {error}'
            raise failures.bad_request(text) from error
    wanted.setdefault("metadata", {})
    check_name(wanted, call.name)

    def change(obj: Json) -> Json:
        return _scaled(call.target.kind, obj, wanted)

    how = Write(dry_run=call.how.dry_run)
    written = call.registry.patch(call.target.kind, call.target.key, change, how)
    return 200, _scale_of(call.target.kind, written)


_ANSWERS: dict[tuple[str, str], Callable[[Call], Answer]] = {
    ("GET", "scale"): read_scale,
    ("PUT", "scale"): put_scale,
    ("PATCH", "scale"): patch_scale,
}


def _scale_of(kind: Kind, obj: Json) -> Json:
    """The ``autoscaling/v1`` Scale of an object."""
    paths = kind.scale or _BUILTIN_SCALE
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


def _scaled(kind: Kind, obj: Json, scale: Json) -> Json:
    """The object with the replicas of a Scale; its resourceVersion is a fence. Raises Failure."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", message, "spec.replicas")
        name = obj["metadata"]["name"]
        raise failures.invalid(_SCALE, name, [cause])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    metadata = obj["metadata"] | ({"resourceVersion": version} if version else {})
    path = (kind.scale or _BUILTIN_SCALE)["specReplicasPath"].strip(".").split(".")
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
