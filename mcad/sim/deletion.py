"""What a DELETE does to an object: preconditions, grace periods, finalizers.

Modelled after ``k8s.io/apiserver/pkg/registry/rest/delete.go`` and ``generic/registry/store.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.admission import IMMORTAL
from mcad.sim.kinds import CRDS, EVENTS, Kind
from mcad.sim.objects import causes
from mcad.sim.strategies import CRD_CLEANUP
from mcad.sim.times import parse_us, seconds

Propagation = Literal["Foreground", "Background", "Orphan"]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
POD_GRACE_S = 30
_PENDING = -1
PODS = ("", "pods")
NAMESPACES = ("", "namespaces")
ANSWERS_WITH_OBJECT = {PODS, ("", "services"), ("", "serviceaccounts"), ("", "podtemplates")}
"""Kinds whose deletion answers with the object even when it is gone (ReturnDeletedObject)."""
_ORPHANS_BY_DEFAULT = {("batch", "jobs"), ("", "replicationcontrollers")}
"""For the sake of old clients (``DefaultGarbageCollectionPolicy`` of their strategies)."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """``DeleteOptions``; without a policy, what the object or its kind says counts."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: Propagation | None = None
    grace_s: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the object: ``obj`` is written if it is another one, then removed or not."""

    obj: Json
    removes: bool


def read_options(body: Json, params: Mapping[str, str]) -> Deletion:
    """Options out of a body or, without one, out of the query; raises Failure 400 or 422."""
    given = body or {**params, "dryRun": [params["dryRun"]] if params.get("dryRun") else []}
    _check_options(body, given)
    policy = given.get("propagationPolicy")
    if policy is None and given.get("orphanDependents") is not None:
        policy = "Orphan" if given["orphanDependents"] in {True, "true"} else "Background"
    preconditions = given.get("preconditions") or {}
    return Deletion(
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        cast("Propagation | None", policy or None),
        _seconds(given.get("gracePeriodSeconds")),
        bool(given.get("dryRun")),
    )


def _check_options(body: Json, given: Json) -> None:
    kind = body.get("kind", "DeleteOptions")
    if kind != "DeleteOptions":
        raise failures.bad_request(
            f'no kind "{kind}" is registered for version "{body.get("apiVersion", "")}" in scheme'
            ' "pkg/runtime/scheme.go:111"'
        )
    faults = []
    policy = given.get("propagationPolicy")
    if policy and given.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(causes.invalid("propagationPolicy", policy, detail))
    if policy and policy not in get_args(Propagation):
        supported = (*get_args(Propagation), "nil")
        faults.append(causes.not_supported("propagationPolicy", policy, supported))
    dry_run = given.get("dryRun") or []
    if set(dry_run) - {"All"}:
        faults.append(causes.not_supported("dryRun", dry_run, ("All",)))
    if faults:
        raise failures.invalid_options("DeleteOptions", faults)


def _seconds(value: Any) -> int | None:
    if value is None or isinstance(value, int):
        return value
    try:
        return int(value)
    except ValueError:
        text = f'strconv.ParseInt: parsing "{value}": invalid syntax'
        raise failures.bad_request(text) from None


def check(kind: Kind, obj: Json, options: Deletion) -> None:
    """Preconditions, and what must never go; raises Failure."""
    metadata = obj["metadata"]
    name = metadata["name"]
    if options.uid is not None and options.uid != metadata["uid"]:
        raise failures.precondition_failed(
            kind,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record"
            f" ({metadata['uid']}). The object might have been deleted and then recreated",
        )
    version = metadata["resourceVersion"]
    if options.resource_version is not None and options.resource_version != version:
        raise failures.precondition_failed(
            kind,
            name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match"
            f" the ResourceVersion in record ({version}). The object might have been modified",
        )
    if kind.storage == NAMESPACES and name in IMMORTAL:
        raise failures.forbidden(kind, name, "this namespace may not be deleted")


def judge(kind: Kind, obj: Json, options: Deletion, now_us: int) -> Verdict:
    """What a DELETE does (``Store.Delete`` with ``rest.BeforeDelete``)."""
    if kind.storage == NAMESPACES:
        return _judge_namespace(kind, obj, options, now_us)
    if kind.storage == CRDS and "deletionTimestamp" not in obj["metadata"]:
        return Verdict(_marked_crd(obj, now_us), removes=False)
    metadata = obj["metadata"]
    grace = _grace(kind, obj, options)
    if grace == _PENDING:
        return Verdict(obj, removes=False)
    finalizers = _finalizers(kind, metadata.get("finalizers") or [], options.propagation)
    if grace is None:
        if not finalizers:
            return Verdict(obj, removes=True)
        return Verdict(_marked(obj, 0, finalizers, now_us), removes=False)
    marked = _marked(obj, grace, finalizers, now_us)
    return Verdict(marked, removes=not grace and not finalizers)


def _judge_namespace(kind: Kind, obj: Json, options: Deletion, now_us: int) -> Verdict:
    """Its content goes first: the first request marks it, later ones wait for its finalizer."""
    if obj["metadata"].get("deletionTimestamp"):
        removes = not (_is_kept_by_spec(kind, obj) or obj["metadata"].get("finalizers"))
        return Verdict(obj, removes)
    finalizers = _finalizers(kind, obj["metadata"].get("finalizers") or [], options.propagation)
    marked = _marked(obj, 0, finalizers, now_us)
    del marked["metadata"]["deletionGracePeriodSeconds"]
    marked["status"] = (marked.get("status") or {}) | {"phase": "Terminating"}
    return Verdict(marked, removes=False)


def _marked_crd(obj: Json, now_us: int) -> Json:
    """Its objects go first, whatever the options say; a controller sees to it."""
    at, metadata = seconds(now_us), obj["metadata"]
    others = [one for one in metadata.get("finalizers") or () if one != CRD_CLEANUP]
    status = obj.get("status") or {}
    terminating = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": at,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will"
        " begin soon",
    }
    return obj | {
        "metadata": metadata | {"deletionTimestamp": at, "finalizers": [*others, CRD_CLEANUP]},
        "status": status | {"conditions": [*(status.get("conditions") or ()), terminating]},
    }


def _marked(obj: Json, grace_s: int, finalizers: list[str], now_us: int) -> Json:
    """The object with its deletion begun, or its end brought forward."""
    metadata = dict(obj["metadata"])
    begun, at_us = metadata.get("deletionTimestamp"), now_us + grace_s * 1_000_000
    if begun is None:
        metadata["deletionTimestamp"] = seconds(at_us)
        if metadata.get("generation"):
            metadata["generation"] += 1
    elif grace_s:
        # A shorter grace counts from the first request on.
        started_us = parse_us(begun) - metadata["deletionGracePeriodSeconds"] * 1_000_000
        metadata["deletionTimestamp"] = seconds(started_us + grace_s * 1_000_000)
    elif parse_us(begun) > now_us:
        metadata["deletionTimestamp"] = seconds(now_us)
    metadata["deletionGracePeriodSeconds"] = grace_s
    metadata["finalizers"] = finalizers
    if not finalizers:
        del metadata["finalizers"]
    return obj | {"metadata": metadata}


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


def _finalizers(kind: Kind, present: list[str], propagation: Propagation | None) -> list[str]:
    """Those that the garbage collector needs, behind the others."""
    if kind.storage == EVENTS:
        return present  # nothing depends on an Event
    if propagation is None:
        if ORPHAN in present or FOREGROUND in present:
            return present
        propagation = "Orphan" if kind.storage in _ORPHANS_BY_DEFAULT else "Background"
    wanted = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND], "Background": []}[propagation]
    found = [name for name in present if name in {ORPHAN, FOREGROUND}]
    if found == wanted:
        return present
    return [name for name in present if name not in {ORPHAN, FOREGROUND}] + wanted


def _grace(kind: Kind, obj: Json, options: Deletion) -> int | None:
    """Seconds for a pod to end in; None: no grace; _PENDING: a grace runs and is not shortened."""
    if kind.storage != PODS:
        return None
    wanted = options.grace_s
    if wanted is not None and wanted < 0:
        wanted = 1
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    if metadata.get("deletionTimestamp"):
        running: int = metadata.get("deletionGracePeriodSeconds") or 0
        if not running:
            return None
        return _PENDING if wanted is None or wanted >= running else wanted
    phase = (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        return 0  # only what a node may be running ends gracefully
    if wanted is None:
        wanted = spec.get("terminationGracePeriodSeconds", POD_GRACE_S)
    return wanted if wanted >= 0 else 1
