"""What a DELETE does to an object: preconditions, grace, finalizers (KEP-free base of the API).

Modelled after ``k8s.io/apiserver/pkg/registry/rest/delete.go`` and ``generic/registry/store.go``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from mcad.sim import failures
from mcad.sim.admission import IMMORTAL
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]
Propagation = Literal["Foreground", "Background", "Orphan"]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
POD_GRACE_S = 30
PODS = ("", "pods")
NAMESPACES = ("", "namespaces")
ANSWERS_WITH_OBJECT = {PODS, ("", "services"), ("", "serviceaccounts"), ("", "podtemplates")}
"""Kinds whose deletion answers with the object even when it is gone (ReturnDeletedObject)."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """``DeleteOptions``."""

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = "Background"
    grace_s: int | None = None


def read_options(body: Json, params: dict[str, str]) -> Deletion:
    """Options out of a body and the query; raises Failure 400 or 422."""
    preconditions = body.get("preconditions") or {}
    policy = body.get("propagationPolicy") or params.get("propagationPolicy")
    if policy is None:
        orphan = body.get("orphanDependents", params.get("orphanDependents"))
        policy = "Orphan" if orphan in {True, "true"} else "Background"
    if policy not in get_args(Propagation):
        raise _invalid_option(
            "propagationPolicy",
            f'Unsupported value: "{policy}": supported values: "Background", "Foreground",'
            ' "Orphan"',
            "FieldValueNotSupported",
        )
    grace = body.get("gracePeriodSeconds", params.get("gracePeriodSeconds"))
    return Deletion(
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        cast("Propagation", policy),
        None if grace is None else max(int(grace), 0),
    )


def check(kind: Kind, obj: Json, options: Deletion) -> None:
    """Preconditions, and what must never go; raises Failure."""
    metadata = obj["metadata"]
    for label, given, live in (
        ("UID", options.uid, metadata["uid"]),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"]),
    ):
        if given and given != live:
            message = f"Precondition failed: {label} in precondition: {given}, {label} in object"
            raise failures.conflict(kind, metadata["name"], f"{message} meta: {live}")
    if kind.storage == NAMESPACES and metadata["name"] in IMMORTAL:
        raise failures.forbidden(kind, metadata["name"], "this namespace may not be deleted")


def mark(kind: Kind, obj: Json, options: Deletion, now_us: int) -> Json | None:
    """The object with its deletion begun, or None if nothing keeps it and it may go at once."""
    metadata = obj["metadata"]
    finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
    grace_s = _grace_s(kind, obj, options)
    begun = metadata.get("deletionTimestamp")
    if begun is None and not grace_s and not finalizers and not _is_kept_by_spec(kind, obj):
        return None
    if begun is not None:
        if not grace_s and not finalizers and not _is_kept_by_spec(kind, obj):
            return None
        if grace_s >= metadata.get("deletionGracePeriodSeconds", 0):
            return _with_metadata(obj, {"finalizers": finalizers})
        # A shorter grace counts from the first request on.
        started_us = parse_us(begun) - metadata.get("deletionGracePeriodSeconds", 0) * 1_000_000
        at = seconds(max(started_us + grace_s * 1_000_000, now_us))
        changes: Json = {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace_s}
        return _with_metadata(obj, changes | {"finalizers": finalizers})
    changes = {
        "deletionTimestamp": seconds(now_us + grace_s * 1_000_000),
        "deletionGracePeriodSeconds": grace_s,
        "finalizers": finalizers,
    }
    if metadata.get("generation"):
        changes["generation"] = metadata["generation"] + 1
    marked = _with_metadata(obj, changes)
    if kind.storage == NAMESPACES:
        marked["status"] = (marked.get("status") or {}) | {"phase": "Terminating"}
    return marked


def is_due(kind: Kind, obj: Json) -> bool:
    """Whether an object that is being deleted has lost the last thing that kept it."""
    metadata = obj["metadata"]
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not _is_kept_by_spec(kind, obj)
    )


def _is_kept_by_spec(kind: Kind, obj: Json) -> bool:
    return kind.storage == NAMESPACES and bool((obj.get("spec") or {}).get("finalizers"))


def _finalizers(present: list[str], propagation: Propagation) -> list[str]:
    kept = [name for name in present if name not in {ORPHAN, FOREGROUND}]
    match propagation:
        case "Orphan":
            return [*kept, ORPHAN]
        case "Foreground":
            return [*kept, FOREGROUND]
        case _:
            return kept


def _grace_s(kind: Kind, obj: Json, options: Deletion) -> int:
    """Only pods that a node may be running end gracefully (``podStrategy.CheckGracefulDelete``)."""
    if kind.storage != PODS:
        return 0
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        return 0
    if options.grace_s is not None:
        return options.grace_s
    grace_s: int = spec.get("terminationGracePeriodSeconds", POD_GRACE_S)
    return grace_s


def _with_metadata(obj: Json, changes: Json) -> Json:
    metadata = obj["metadata"] | changes
    if not metadata.get("finalizers"):
        metadata.pop("finalizers", None)
    return obj | {"metadata": metadata}


def _invalid_option(name: str, message: str, reason: str) -> failures.Failure:
    details = {
        "group": "meta.k8s.io",
        "kind": "DeleteOptions",
        "causes": [_listed(Cause(reason, message, name))],
    }
    text = f'DeleteOptions.meta.k8s.io "" is invalid: {name}: {message}'
    return failures.Failure(422, "Invalid", text, details)


def _listed(cause: Cause) -> Json:
    """A cause as it stands in a Status."""
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}
