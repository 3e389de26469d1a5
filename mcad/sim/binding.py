"""The binding of a pod to a node, as the scheduler asks for it."""

from __future__ import annotations

from typing import Any

from mcad.sim import failures
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Key
from mcad.sim.times import seconds
from mcad.sim.writes import Write

Json = dict[str, Any]

_REGISTRY = Kind("", "v1", "pods/binding", "Binding")  # what conflicts are worded with


def bind(registry: Registry, key: Key, node: str) -> Json:
    """The pod on its node; raises Failure 404, or 409 if it has a node or is being deleted."""
    pods = registry.kind("v1", "Pod")
    at = seconds(registry.clock.now_us())

    def change(pod: Json) -> Json:
        present = pod["spec"].get("nodeName")
        if present:
            message = f'pod {key[1]} is already assigned to node "{present}"'
            raise failures.conflict(_REGISTRY, key[1], message)
        if pod["metadata"].get("deletionTimestamp"):
            message = f"pod {key[1]} is being deleted, cannot be assigned to a host"
            raise failures.conflict(_REGISTRY, key[1], message)
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": at,
        }
        status = pod.get("status") or {}
        others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
        return pod | {
            "spec": pod["spec"] | {"nodeName": node},
            "status": status | {"conditions": [*others, scheduled]},
        }

    return registry.patch(pods, key, change, Write(subresource="binding", trusted=True))
