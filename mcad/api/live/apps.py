"""Pods, and the controllers of pods that have no end (core/v1 and apps/v1).

Facts from k8s.io/api 0.36.3: PodStatus.phase; ReplicaSetStatus, ReplicationControllerStatus and
DeploymentStatus.conditions (type ReplicaFailure); StatefulSetSpec.podManagementPolicy and
StatefulSetStatus.replicas, availableReplicas, readyReplicas. Acts of the controllers from
k8s.io/kubernetes 1.36.3: pkg/controller/replicaset, deployment (sync.go, progress.go), statefulset
(stateful_set_control.go).
"""

from mcad.api.live.reading import LiveObject, Reading, brief, message_of, wanted
from mcad.api.wire import Map, as_list, as_map, as_text, dig, parse_instant
from mcad.core.state.model import ItemState
from mcad.core.state.units import Instant

_PHASES = {"Succeeded": ItemState.SUCCEEDED, "Failed": ItemState.FAILED}

REVISION = "deployment.kubernetes.io/revision"
"""The annotation of a Deployment that has made its first ReplicaSet."""


def read_pod(obj: LiveObject) -> Reading:
    """A Pod is one until it has ended."""
    status = obj.status.value
    phase = as_text(status.get("phase"))
    state = _PHASES.get(phase, ItemState.PROGRESSING)
    if state is ItemState.PROGRESSING:
        return Reading(obj.now(), states=(phase,))
    reason, message = as_text(status.get("reason")), as_text(status.get("message"))
    words = brief(": ".join(filter(None, (reason, message)))) if state is ItemState.FAILED else ""
    return Reading(obj.none(), state, words, _last_end(status), (phase,))


def _last_end(status: Map) -> Instant:
    """When the last of its containers ended."""
    ends = (
        parse_instant(dig(one, "state", "terminated", "finishedAt"))
        for one in as_list(status.get("containerStatuses"))
    )
    return max(ends, default=0)


def read_scaled(obj: LiveObject) -> Reading:
    """``replicas`` at once. Pods beyond that, of a rolling update, are nothing that it asks for."""
    return Reading(obj.now(), words=message_of(obj.condition("ReplicaFailure")))


def read_stateful_set(obj: LiveObject) -> Reading:
    """In order (OrderedReady, the default) the next pod is made when all before it are available;
    pods that are lost are replaced in the same order."""
    if obj.spec.value.get("podManagementPolicy") == "Parallel":
        return Reading(obj.now())
    status = obj.status
    exist = status.count("replicas", 0)
    available = status.count("availableReplicas", status.count("readyReplicas", 0))
    due = exist + 1 if available >= exist else exist
    return Reading({one.path: wanted(min(one.pods, due), one.pods - due) for one in obj.sets})


def read_declared(obj: LiveObject) -> Reading:
    """An object without an end that makes all of its pods at once. Those of a DaemonSet are one per
    node, which it does not tell."""
    return Reading(obj.now())


def is_rolled_out(deployment: Map) -> bool:
    """Whether a Deployment has a ReplicaSet. A paused one scales those that it has, but makes no
    first one."""
    meta = as_map(deployment.get("metadata"))
    return REVISION in as_map(meta.get("annotations"))
