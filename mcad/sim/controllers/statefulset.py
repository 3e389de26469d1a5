"""StatefulSets: pods with names of their own, one after the other or all at once.

After ``pkg/controller/statefulset``, without revisions, rolling updates and claims: a pod stays as
it was made, whatever becomes of the template, until it is deleted.
"""

from __future__ import annotations

from mcad.kube.types import Json
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import (
    from_template,
    is_available,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
)
from mcad.sim.controllers.workload import Workload, compact, min_ready_s
from mcad.sim.registry import Registry
from mcad.sim.store import Key

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulSetController(Workload):
    """Keeps one pod per ordinal."""

    def __init__(self, registry: Registry, pods: OwnedIndex) -> None:
        kind = registry.kind("apps/v1", "StatefulSet")
        super().__init__(registry, kind, pods, "statefulset-controller")

    def reconcile(self, key: Key) -> None:
        """As many steps as can be taken now."""
        owner = self.registry.find(self.kind, key)
        if owner is None or is_deleting(owner):
            return
        pods = self.claim(owner, only=lambda pod: _ordinal(owner, pod) >= 0)
        by_ordinal = {_ordinal(owner, pod): pod for pod in pods}
        self.manage(owner, lambda: self._advance(owner, by_ordinal), lambda _: self._report(owner))

    def _advance(self, owner: Json, pods: dict[int, Json]) -> None:
        """Create, then remove what is too many; in order, each waits for the last."""
        start: int = (owner["spec"].get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + owner["spec"].get("replicas", 1))
        in_order = owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        for ordinal in wanted:
            if self._is_busy(owner, ordinal, pods.get(ordinal)) and in_order:
                return
        for ordinal in sorted((one for one in pods if one not in wanted), reverse=True):
            if not is_deleting(pods[ordinal]):
                self.delete_pod(owner, pods[ordinal])
            if in_order:
                return

    def _is_busy(self, owner: Json, ordinal: int, pod: Json | None) -> bool:
        """Whether the next replica has to wait for this one."""
        if pod is None:
            self.create_pod(owner, _new_pod(owner, ordinal))
            return True
        if is_finished(pod) and not is_deleting(pod):
            self.delete_pod(owner, pod)
        now_us = self.registry.clock.now_us()
        return is_deleting(pod) or not is_available(pod, min_ready_s(owner), now_us)

    def _report(self, owner: Json) -> None:
        pods = self.owned.owned(owner["metadata"]["uid"])
        now_us = self.registry.clock.now_us()
        status = {
            "observedGeneration": owner["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": sum(map(is_ready, pods)),
            "availableReplicas": sum(is_available(pod, min_ready_s(owner), now_us) for pod in pods),
        }
        self.write_status(owner, compact(status, "replicas", "availableReplicas"))


def _ordinal(owner: Json, pod: Json) -> int:
    """The number at the end of its name; -1 if it is no name that this StatefulSet gives."""
    parent, _, number = pod["metadata"]["name"].rpartition("-")
    return int(number) if parent == owner["metadata"]["name"] and number.isdecimal() else -1


def _new_pod(owner: Json, ordinal: int) -> Json:
    """A pod to be created."""
    pod = from_template(owner["spec"].get("template") or {}, owner)
    name = f"{owner['metadata']['name']}-{ordinal}"
    labels = labels_of(pod) | {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}
    spec = pod["spec"] | {"hostname": name}
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    return {"metadata": pod["metadata"] | {"name": name, "labels": labels}, "spec": spec}
