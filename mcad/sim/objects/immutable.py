"""The fields of pods and workloads that kube-apiserver calls immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects.causes import forbidden, invalid

IMMUTABLE = "field is immutable"
FROZEN_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_SCHEDULING = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def change_faults(kind: Kind, new: Json, old: Json) -> list[Cause]:
    """The faults of a change of immutable fields."""
    check = _KINDS.get((kind.group, kind.kind))
    return list(check(new.get("spec") or {}, old.get("spec") or {})) if check else []


def _same(new: Json, old: Json, key: str) -> Iterator[Cause]:
    if new.get(key) != old.get(key):
        yield invalid(f"spec.{key}", new.get(key), IMMUTABLE)


def _without(obj: Json, keys: tuple[str, ...]) -> Json:
    return {key: value for key, value in obj.items() if key not in keys}


def _selector(new: Json, old: Json) -> Iterator[Cause]:
    yield from _same(new, old, "selector")


def _pod(new: Json, old: Json) -> Iterator[Cause]:
    for key in ("containers", "initContainers"):
        if len(new.get(key) or ()) != len(old.get(key) or ()):
            yield forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
    if _frozen(new, old) != _frozen(old, old):
        yield forbidden("spec", FROZEN_POD)


def _frozen(spec: Json, before: Json) -> Json:
    """A pod spec without what may change."""
    mutable = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if before.get("schedulingGates"):
        mutable += ["nodeSelector", "affinity"]  # KEP-3838: as long as it is not scheduled
    if before.get("nodeName") in {None, ""} and "nodeName" not in spec:
        mutable.append("nodeName")
    kept = _without(spec, tuple(mutable))
    for key in ("containers", "initContainers"):
        if key in kept:
            kept[key] = [_without(one, ("image",)) for one in kept[key]]
    return kept


def _job(new: Json, old: Json) -> Iterator[Cause]:
    in_tandem = new.get("completionMode") == "Indexed" and new.get("completions") is not None
    if not in_tandem or new["completions"] != new.get("parallelism"):
        yield from _same(new, old, "completions")
    for key in ("selector", "completionMode", "managedBy"):
        yield from _same(new, old, key)
    # A suspended Job that never started may still be given other nodes (KEP-2926).
    free = _SCHEDULING if old.get("suspend") else ()
    template, before = new.get("template") or {}, old.get("template") or {}
    if _without(template.get("spec") or {}, free) != _without(before.get("spec") or {}, free) or (
        not free and template != before
    ):
        yield invalid("spec.template", template, IMMUTABLE)


_KINDS: dict[tuple[str, str], Callable[[Json, Json], Iterator[Cause]]] = {
    ("", "Pod"): _pod,
    ("apps", "Deployment"): _selector,
    ("apps", "ReplicaSet"): _selector,
    ("apps", "DaemonSet"): _selector,
    ("apps", "StatefulSet"): _selector,
    ("batch", "Job"): _job,
}
