"""What a pod is doing, in one word as kubectl has it, and why a container has not started."""

from __future__ import annotations

from typing import Any

from mcad.api.pods import POD_SCHEDULED, UNSCHEDULABLE
from mcad.api.wire import as_list, as_map, as_text

Json = dict[str, Any]

ENDED = ("Succeeded", "Failed")


def node_of(pod: Json) -> str:
    """The node, "" if there is none yet."""
    return as_text(as_map(pod.get("spec")).get("nodeName"))


def phase_of(pod: Json) -> str:
    """``status.phase``."""
    return as_text(as_map(pod.get("status")).get("phase"))


def pod_state(pod: Json) -> str:
    """``Running``, ``ContainerCreating``, ``Unschedulable``, ``CrashLoopBackOff``..."""
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    status = as_map(pod.get("status"))
    if reason := as_text(status.get("reason")):
        return reason
    for container in map(as_map, as_list(status.get("containerStatuses"))):
        if reason := waiting_reason(container):
            return reason
    for one in map(as_map, as_list(status.get("conditions"))):
        if one.get("type") == POD_SCHEDULED and one.get("reason") == UNSCHEDULABLE:
            return UNSCHEDULABLE
    return phase_of(pod) or "Pending"


def waiting_reason(status: Json) -> str:
    """Why a container waits, "" if it does not."""
    return as_text(as_map(as_map(status.get("state")).get("waiting")).get("reason"))


def container_status(pod: Json, name: str) -> Json:
    """The status of a container, {} if there is none yet."""
    status = as_map(pod.get("status"))
    listed = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    every = (as_map(one) for key in listed for one in as_list(status.get(key)))
    return next((one for one in every if one.get("name") == name), {})


def has_started(pod: Json, container: str) -> bool:
    """Whether a container has run, or runs: only then it has a log."""
    status = container_status(pod, container)
    begun = as_map(status.get("state")).keys() | as_map(status.get("lastState")).keys()
    return bool(begun & {"running", "terminated"})
