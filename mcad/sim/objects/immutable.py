"""What may not change: the fields that kube-apiserver calls immutable, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
FROZEN_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
FROZEN_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
_IN_STATEFUL_SETS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_SCHEDULING = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def change_faults(kind: Kind, new: Json, old: Json) -> list[Cause]:
    """What a change of an object changes that must stay."""
    check = _KINDS.get((kind.group, kind.kind))
    return list(check(new, old)) if check else []


def _same(new: Json, old: Json, key: str, field: str) -> Iterator[Cause]:
    if new.get(key) != old.get(key):
        yield invalid(field, new.get(key), IMMUTABLE)


def _spec(obj: Json) -> Json:
    spec: Json = obj.get("spec") or {}
    return spec


def _without(obj: Json, keys: tuple[str, ...]) -> Json:
    return {key: value for key, value in obj.items() if key not in keys}


def _selector(new: Json, old: Json) -> Iterator[Cause]:
    yield from _same(_spec(new), _spec(old), "selector", "spec.selector")


def _stateful_set(new: Json, old: Json) -> Iterator[Cause]:
    if _without(_spec(new), _IN_STATEFUL_SETS) != _without(_spec(old), _IN_STATEFUL_SETS):
        yield forbidden("spec", FROZEN_STATEFUL_SET)


def _pod(new: Json, old: Json) -> Iterator[Cause]:
    after, before = _spec(new), _spec(old)
    for key in ("containers", "initContainers"):
        if len(after.get(key) or ()) != len(before.get(key) or ()):
            detail = "pod updates may not add or remove containers"
            yield forbidden(f"spec.{key}", detail)
            return
    yield from _deadline(after, before)
    yield from _gates(after, before)
    if _frozen(after, before) != _frozen(before, before):
        yield forbidden("spec", FROZEN_POD)


def _deadline(after: Json, before: Json) -> Iterator[Cause]:
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if old is not None and new is None:
        yield invalid(field, new, "must not update from a positive integer to nil value")
    elif old is not None and new is not None and new > old:
        yield invalid(field, new, "must be less than or equal to previous value")


def _gates(after: Json, before: Json) -> Iterator[Cause]:
    known = [gate.get("name") for gate in before.get("schedulingGates") or ()]
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            name = gate.get("name")
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", detail)


def _frozen(spec: Json, before: Json) -> Json:
    """A pod spec without what may change."""
    mutable = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if before.get("schedulingGates"):
        mutable += ["nodeSelector", "affinity"]  # KEP-3838: as long as it is not scheduled
    if (before.get("terminationGracePeriodSeconds") or 0) < 0:
        mutable.append("terminationGracePeriodSeconds")
    if before.get("nodeName") in {None, ""} and "nodeName" not in spec:
        mutable.append("nodeName")
    kept = _without(spec, tuple(mutable))
    for key in ("containers", "initContainers"):
        if key in kept:
            kept[key] = [_without(one, ("image",)) for one in kept[key]]
    return kept


def _job(new: Json, old: Json) -> Iterator[Cause]:
    after, before = _spec(new), _spec(old)
    yield from _completions(after, before)
    yield from _same(after, before, "selector", "spec.selector")
    yield from _job_template(after, before)
    for key in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        yield from _same(after, before, key, f"spec.{key}")


def _completions(after: Json, before: Json) -> Iterator[Cause]:
    new, old = after.get("completions"), before.get("completions")
    if new == old:
        return
    if after.get("completionMode") != "Indexed" or new is None:
        yield invalid("spec.completions", new, IMMUTABLE)
    elif new != after.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", new, detail)


def _job_template(after: Json, before: Json) -> Iterator[Cause]:
    """A suspended Job that never started may still be told where to run (KEP-2926)."""
    new, old = after.get("template") or {}, before.get("template") or {}
    if new == old:
        return
    if not before.get("suspend"):
        yield invalid("spec.template", new, IMMUTABLE)
        return
    if _without(new.get("spec") or {}, _SCHEDULING) != _without(old.get("spec") or {}, _SCHEDULING):
        yield invalid("spec.template.spec", new.get("spec"), IMMUTABLE)


def _keeps_data(*keys: str) -> Callable[[Json, Json], Iterator[Cause]]:
    def check(new: Json, old: Json) -> Iterator[Cause]:
        detail = "field is immutable when `immutable` is set"
        if old.get("immutable"):
            if not new.get("immutable"):
                yield forbidden("immutable", detail)
            for key in keys:
                if (new.get(key) or {}) != (old.get(key) or {}):
                    yield forbidden(key, detail)

    return check


def _secret(new: Json, old: Json) -> Iterator[Cause]:
    yield from _same(new, old, "type", "type")
    yield from _keeps_data("data")(new, old)


def _service(new: Json, old: Json) -> Iterator[Cause]:
    after, before = _spec(new), _spec(old)
    addresses: Any = after.get("clusterIPs") or []
    kinds = {after.get("type"), before.get("type")}
    fixed = before.get("clusterIP") and "ExternalName" not in kinds
    if fixed and after.get("clusterIP") != before["clusterIP"]:
        yield invalid("spec.clusterIPs[0]", addresses, "may not change once set")


def _claim(new: Json, old: Json) -> Iterator[Cause]:
    bound = (old.get("status") or {}).get("phase") == "Bound"
    free = ("resources", "volumeAttributesClassName") if bound else ()
    filled = ("volumeName",) if not _spec(old).get("volumeName") else ()
    if _without(_spec(new), (*free, *filled)) != _without(_spec(old), (*free, *filled)):
        yield forbidden("spec", FROZEN_CLAIM)


def _priority_class(new: Json, old: Json) -> Iterator[Cause]:
    if new.get("value") != old.get("value"):
        yield forbidden("value", "may not be changed in an update.")
    yield from _same(new, old, "preemptionPolicy", "preemptionPolicy")


def _node(new: Json, old: Json) -> Iterator[Cause]:
    before = _spec(old).get("podCIDR")
    if before and _spec(new).get("podCIDR") != before:
        detail = 'node updates may not change podCIDR except from "" to valid'
        yield forbidden("spec.podCIDRs", detail)


def _role_ref(new: Json, old: Json) -> Iterator[Cause]:
    if new.get("roleRef") != old.get("roleRef"):
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


_KINDS: dict[tuple[str, str], Callable[[Json, Json], Iterator[Cause]]] = {
    ("", "ConfigMap"): _keeps_data("data", "binaryData"),
    ("", "Secret"): _secret,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Node"): _node,
    ("apps", "Deployment"): _selector,
    ("apps", "ReplicaSet"): _selector,
    ("apps", "DaemonSet"): _selector,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("rbac.authorization.k8s.io", "RoleBinding"): _role_ref,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _role_ref,
}
