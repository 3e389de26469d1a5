"""Questions of controllers about pods, and the pods that they make.

Pure functions. The rules are those of ``k8s.io/kubernetes/pkg/api/v1/pod`` and
``pkg/controller/controller_utils.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcad.kube.names import dns_subdomain
from mcad.kube.types import Json
from mcad.sim.times import parse_us

POD_TEMPLATE_HASH = "pod-template-hash"
FINISHED = ("Succeeded", "Failed")


def controller_of(obj: Json) -> Json | None:
    """The owner reference with ``controller: true``, of which there is at most one."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Json = reference
            return found
    return None


def reference_to(owner: Json) -> Json:
    """The owner reference of what a controller makes for ``owner``."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def labels_of(obj: Json) -> dict[str, str]:
    """Labels; may be the object's own, so not to be changed."""
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    """Annotations; may be the object's own, so not to be changed."""
    return (obj.get("metadata") or {}).get("annotations") or {}


def phase_of(pod: Json) -> str:
    """``status.phase``, "" if there is none."""
    return (pod.get("status") or {}).get("phase") or ""


def is_deleting(obj: Json) -> bool:
    """Whether its deletion has begun."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_finished(pod: Json) -> bool:
    """Whether it has succeeded or failed."""
    return phase_of(pod) in FINISHED


def is_active(pod: Json) -> bool:
    """Neither finished nor being deleted."""
    return not is_finished(pod) and not is_deleting(pod)


def is_terminating(pod: Json) -> bool:
    """Being deleted, and not finished yet."""
    return is_deleting(pod) and not is_finished(pod)


def ready_condition(pod: Json) -> Json | None:
    """The condition Ready, whatever its status."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            found: Json = condition
            return found
    return None


def is_ready(pod: Json) -> bool:
    """Whether its condition Ready is true."""
    condition = ready_condition(pod)
    return condition is not None and condition.get("status") == "True"


def available_after_us(pod: Json, min_ready_s: int, now_us: int) -> int | None:
    """In how many microseconds it counts as available: 0 if it does now; None if not ready."""
    condition = ready_condition(pod)
    if condition is None or condition.get("status") != "True":
        return None
    if not min_ready_s:
        return 0
    since = condition.get("lastTransitionTime")
    if not since:
        return None
    return max(parse_us(since) + min_ready_s * 1_000_000 - now_us, 0)


def is_available(pod: Json, min_ready_s: int, now_us: int) -> bool:
    """Whether it has been ready for ``minReadySeconds``."""
    return available_after_us(pod, min_ready_s, now_us) == 0


def next_available_s(pods: Iterable[Json], min_ready_s: int, now_us: int) -> float | None:
    """In how many seconds the next of these pods becomes available."""
    if not min_ready_s:
        return None
    waits = (available_after_us(pod, min_ready_s, now_us) for pod in pods)
    return min((wait / 1e6 for wait in waits if wait), default=None)


def from_template(template: Json, owner: Json) -> Json:
    """A pod to be created; it shares its parts with the template."""
    metadata: Json = {
        "generateName": _prefix(owner["metadata"]["name"]),
        "ownerReferences": [reference_to(owner)],
    }
    of_template = template.get("metadata") or {}
    for name in ("labels", "annotations", "finalizers"):
        if of_template.get(name):
            metadata[name] = of_template[name]
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def _prefix(name: str) -> str:
    with_dash = f"{name}-"
    # A prefix is checked without its last dash, to which something is going to be appended.
    return name if dns_subdomain(with_dash[:-1] + "a") else with_dash
