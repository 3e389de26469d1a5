"""Reads live pods and nodes for the core.

Both functions run for every object of the cluster at start and on every change: plain dictionary
reads, no models, and no exception whatever the object looks like.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from sys import intern

import msgspec

from mcad.api import labels
from mcad.api.autopilot import Evictions, evicted
from mcad.api.durations import clamp_seconds
from mcad.api.owner import controller_of
from mcad.api.podspec import (
    amounts,
    effective_request,
    host_ports,
    resizes,
    to_resources,
)
from mcad.api.projections import POD_CONDITIONS
from mcad.api.waiting_containers import stuck_container
from mcad.api.wire import (
    Json,
    Map,
    as_int,
    as_list,
    as_map,
    as_text,
    parse_instant,
    read_json,
    to_json,
)
from mcad.core.state.model import (
    TERMINAL_PHASES,
    HostPort,
    Node,
    Pod,
    PodPhase,
    Resources,
    Taint,
    Unscheduled,
)
from mcad.core.state.units import SECOND, Duration, Instant

POD_SCHEDULED, UNSCHEDULABLE = "PodScheduled", "Unschedulable"
"""Type and reason of the condition of a pod that kube-scheduler finds no node for."""

DISRUPTION_TARGET = "DisruptionTarget"
"""Type of the condition of a pod that is made to go: by preemption, eviction or a lost node."""

_Conditions = Mapping[str, Mapping[str, Json]]

_PHASES = {phase.value: phase for phase in PodPhase}

_OF_SPEC = ("containers", "initContainers", "resources", "overhead", "hostNetwork")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CLAIMED = "extendedResourceClaimStatus"
_OF_STATUS = (
    "containerStatuses",
    "initContainerStatuses",
    "resources",
    "allocatedResources",
    _CLAIMED,
)
_ALIKE = 4096  # entries of the cache
_WORDS_MAX = 256
_TEXT_MAX = 2048  # bytes of a cached text; longer ones hardly repeat


def read_pod(obj: Map, workload_uid: str = "") -> Pod:
    """Read a live pod. ``workload_uid`` is the AppWrapper at the end of its owner chain (C3).

    A malformed quantity counts as 0. The API server admits none, so a pod cannot hide its use. What
    only matters for pods of AppWrappers is not read of the others, which are the mass.
    """
    meta, spec = as_map(obj.get("metadata")), as_map(obj.get("spec"))
    status, tags = as_map(obj.get("status")), as_map(meta.get("labels"))
    item, index = labels.parse_podset(tags[labels.PODSET]) if labels.PODSET in tags else (-1, -1)
    attempt = labels.parse_number(tags[labels.ATTEMPT], 0) if labels.ATTEMPT in tags else 0
    request, ports = _needs(spec, status)
    phase = _phase(status)
    known = _conditions(status.get("conditions")) if attempt else {}
    return Pod(
        uid=as_text(meta.get("uid")),
        namespace=as_text(meta.get("namespace")),
        name=as_text(meta.get("name")),
        node=intern(as_text(spec.get("nodeName"))),
        phase=phase,
        request=request,
        terminating="deletionTimestamp" in meta,
        workload=workload_uid,
        item=item,
        index=index,
        attempt=attempt,
        ports=ports,
        created=parse_instant(meta.get("creationTimestamp")) if attempt else 0,
        exit_codes=_exit_codes(status) if attempt and phase is PodPhase.FAILED else (),
        unscheduled=_unscheduled(known) if phase is PodPhase.PENDING else None,
        grace=_grace(spec) if attempt else 0,
        bound=_since(known, POD_SCHEDULED),
        ready=_is_true(known, "Ready"),
        ready_since=_since(known, "Ready"),
        gated=attempt > 0 and bool(as_list(spec.get("schedulingGates"))),
        edited=attempt > 0 and _is_amended(meta),
        amended=attempt > 0 and "nodeName" not in spec and _is_amended(meta),
        stuck=stuck_container(status) if attempt and phase not in TERMINAL_PHASES else None,
        disruption=_disruption(known),
        nominated="" if "nodeName" in spec else _nominated(obj, spec, status),
    )


def _nominated(obj: Map, spec: Map, status: Map) -> str:
    """The node that a pod waits for, "" if it may get others: where kube-scheduler makes room for
    it, or the node that its DaemonSet has created it for."""
    named = as_text(status.get("nominatedNodeName"))
    if named or "affinity" not in spec:
        return intern(named)
    required = as_map(as_map(as_map(spec["affinity"]).get("nodeAffinity")).get(_REQUIRED))
    terms = as_list(required.get("nodeSelectorTerms"))
    fields = as_list(as_map(terms[0]).get("matchFields")) if len(terms) == 1 else []
    field = as_map(fields[0]) if len(fields) == 1 else {}
    values = as_list(field.get("values"))
    if (field.get("key"), field.get("operator"), len(values)) != ("metadata.name", "In", 1):
        return ""
    owner = controller_of(obj)
    is_daemon = owner is not None and (owner.group, owner.kind) == ("apps", "DaemonSet")
    return intern(as_text(values[0])) if is_daemon else ""


def _conditions(value: Json) -> _Conditions:
    """The conditions of a live pod by type. They may still be text (projections.py)."""
    if isinstance(value, msgspec.Raw):
        try:
            return {one.get("type", ""): one for one in POD_CONDITIONS.decode(value)}
        except (msgspec.MsgspecError, ValueError, RecursionError):
            value = read_json(bytes(value))
    return {as_text(one.get("type")): one for one in as_list(value) if isinstance(one, dict)}


def _is_amended(meta: Map) -> bool:
    """Whether its spec changed after its creation (a generation, since Kubernetes 1.33)."""
    generation = meta.get("generation")
    return isinstance(generation, int) and generation > 1


def _is_true(conditions: _Conditions, kind: str) -> bool:
    return kind in conditions and conditions[kind].get("status") == "True"


def _since(conditions: _Conditions, kind: str) -> Instant:
    """Since when a condition is True, 0 if it is not."""
    if not _is_true(conditions, kind):
        return 0
    return max(0, parse_instant(conditions[kind].get("lastTransitionTime")))


def _unscheduled(conditions: _Conditions) -> Unscheduled | None:
    """Why kube-scheduler could not place a pod. The text has the reasons of all nodes, so it is
    cut."""
    one = conditions.get(POD_SCHEDULED)
    if one is None or one.get("reason") != UNSCHEDULABLE:
        return None
    since = parse_instant(one.get("lastTransitionTime"))
    return Unscheduled(as_text(one.get("message"))[:_WORDS_MAX], since)


def _disruption(conditions: _Conditions) -> str:
    """Why a pod is made to go: the reason (``PreemptionByScheduler``, ``DeletionByTaintManager``,
    ``EvictionByEvictionAPI``, ``DeletionByPodGC``, ``TerminationByKubelet``); "" if it is not."""
    if not _is_true(conditions, DISRUPTION_TARGET):
        return ""
    return as_text(conditions[DISRUPTION_TARGET].get("reason")) or DISRUPTION_TARGET


def _exit_codes(status: Map) -> tuple[int, ...]:
    """Distinct exit codes of failed containers; init containers do not count (v1beta2)."""
    states = (as_map(as_map(one).get("state")) for one in as_list(status.get("containerStatuses")))
    codes = (as_int(as_map(state.get("terminated")).get("exitCode")) for state in states)
    return tuple(sorted({code for code in codes if code}))


def _needs(spec: Map, status: Map) -> tuple[Resources, tuple[HostPort, ...]]:
    """The request and host ports of a pod. Thousands of pods are equal, so the result is cached by
    the text of all fields that it depends on."""
    depends = [*map(spec.get, _OF_SPEC), *map(status.get, _OF_STATUS), resizes(status)]
    text = to_json(depends)
    return _known_needs(text) if len(text) <= _TEXT_MAX else _known_needs.__wrapped__(text)


@lru_cache(_ALIKE)
def _known_needs(text: bytes) -> tuple[Resources, tuple[HostPort, ...]]:
    depends = json.loads(text)
    spec = dict(zip(_OF_SPEC, depends, strict=False))
    status = dict(zip((*_OF_STATUS, "conditions"), depends[len(_OF_SPEC) :], strict=True))
    claimed = _claimed(status)
    request = effective_request(spec, status)
    if claimed:
        request = tuple((name, amount) for name, amount in request if name not in claimed)
    return request, host_ports(spec)


def _claimed(status: Map) -> set[str]:
    """The resources of a pod that are devices of a ResourceClaim (KEP-5004, Kubernetes 1.34:
    ``status.extendedResourceClaimStatus.requestMappings[].resourceName``). kube-scheduler takes
    them from no node's ``allocatable``."""
    mappings = as_list(as_map(status.get(_CLAIMED)).get("requestMappings"))
    return {as_text(as_map(one).get("resourceName")) for one in mappings}


def _grace(spec: Map) -> Duration:
    return clamp_seconds(as_int(spec.get("terminationGracePeriodSeconds"))) * SECOND


def _phase(status: Map) -> PodPhase:
    """The phase of a pod; one without a phase is pending, as no kubelet has seen it yet."""
    return _PHASES.get(as_text(status.get("phase") or "Pending"), PodPhase.UNKNOWN)


def read_node(obj: Map, evictions: Evictions = ()) -> Node:
    """Read a live node; ``evictions`` are Autopilot's labels that evict pods."""
    meta, spec, status = (as_map(obj.get(key)) for key in ("metadata", "spec", "status"))
    tags = as_map(meta.get("labels"))
    return Node(
        name=as_text(meta.get("name")),
        allocatable=to_resources(amounts(status.get("allocatable"))),
        ready=_is_ready(status),
        unschedulable=spec.get("unschedulable") is True,
        taints=tuple(
            Taint(as_text(one.get("key")), as_text(one.get("value")), as_text(one.get("effect")))
            for one in as_list(spec.get("taints"))
            if isinstance(one, dict)
        ),
        labels=tuple(
            sorted(
                (intern(key), intern(value))  # the same few on thousands of nodes
                for key, value in tags.items()
                if type(value) is str
            )
        ),
        evicts=evicted(tags, evictions),
    )


def _is_ready(status: Map) -> bool:
    return any(
        one.get("type") == "Ready" and one.get("status") == "True"
        for one in as_list(status.get("conditions"))
        if isinstance(one, dict)
    )
