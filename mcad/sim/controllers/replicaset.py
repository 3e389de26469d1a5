"""ReplicaSets, and ReplicationControllers, which are the same thing with another selector.

After ``pkg/controller/replicaset/replica_set.go``.
"""

from __future__ import annotations

from mcad.kube.types import Json
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import (
    from_template,
    is_active,
    is_available,
    is_deleting,
    is_ready,
    is_terminating,
    labels_of,
)
from mcad.sim.controllers.ranking import surplus
from mcad.sim.controllers.workload import Workload, compact, min_ready_s
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds

BURST = 500  # pods created or deleted in one go


class ReplicaSetController(Workload):
    """Keeps as many pods as ``spec.replicas`` says."""

    counts_terminating = True  # KEP-3973, on since 1.35; not for ReplicationControllers

    def __init__(
        self,
        registry: Registry,
        pods: OwnedIndex,
        *,
        kind: tuple[str, str] = ("apps/v1", "ReplicaSet"),
        component: str = "replicaset-controller",
    ) -> None:
        super().__init__(registry, registry.kind(*kind), pods, component)

    def on_owner(self, change: Change) -> None:
        """Its own status is no news to it."""
        before = change.previous
        if change.type != "MODIFIED" or before is None or _is_news(before, change.obj):
            super().on_owner(change)

    def reconcile(self, key: Key) -> None:
        owner = self.registry.find(self.kind, key)
        if owner is None:
            return
        pods = self.claim(owner, only=is_active)
        self.manage(
            owner, lambda: self._change(owner, pods), lambda trouble: self._report(owner, trouble)
        )

    def _change(self, owner: Json, pods: list[Json]) -> None:
        if is_deleting(owner):
            return
        missing = owner["spec"].get("replicas", 1) - len(pods)
        if missing > 0:
            pod = from_template(owner["spec"].get("template") or {}, owner)
            for _ in range(min(missing, BURST)):
                self.create_pod(owner, pod)
        elif missing < 0:
            for pod in surplus(pods, min(-missing, BURST)):
                self.delete_pod(owner, pod)
        if abs(missing) > BURST:
            self.enqueue((owner["metadata"]["namespace"], owner["metadata"]["name"]))

    def _report(self, owner: Json, trouble: Failure | None) -> None:
        everything = self.owned.owned(owner["metadata"]["uid"])
        pods = [pod for pod in everything if is_active(pod)]
        ready_s, now_us = min_ready_s(owner), self.registry.clock.now_us()
        of_template = labels_of(owner["spec"].get("template") or {}).items()
        status = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(of_template <= labels_of(pod).items() for pod in pods),
            "readyReplicas": sum(is_ready(pod) for pod in pods),
            "availableReplicas": sum(is_available(pod, ready_s, now_us) for pod in pods),
            "observedGeneration": owner["metadata"].get("generation", 0),
            "conditions": self._conditions(owner, len(pods), trouble),
        }
        if self.counts_terminating:
            status["terminatingReplicas"] = sum(map(is_terminating, everything))
        self.write_status(owner, compact(status, "replicas", "terminatingReplicas"))

    def _conditions(self, owner: Json, count: int, trouble: Failure | None) -> list[Json]:
        present = (owner.get("status") or {}).get("conditions") or []
        others = [one for one in present if one["type"] != "ReplicaFailure"]
        if trouble is None:
            return others
        if len(others) < len(present):
            return present
        too_few = count < owner["spec"].get("replicas", 1)
        condition = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": seconds(self.registry.clock.now_us()),
            "reason": "FailedCreate" if too_few else "FailedDelete",
            "message": trouble.message,
        }
        return [*others, condition]


class ReplicationController(ReplicaSetController):
    """The kind that came before ReplicaSets."""

    counts_terminating = False

    def __init__(self, registry: Registry, pods: OwnedIndex) -> None:
        kind = ("v1", "ReplicationController")
        super().__init__(registry, pods, kind=kind, component="replication-controller")

    def selector_of(self, owner: Json) -> Json | None:
        """A plain map of labels, by default those of the template."""
        spec = owner.get("spec") or {}
        pairs = spec.get("selector") or labels_of(spec.get("template") or {})
        return {"matchLabels": pairs} if pairs else None


def _is_news(before: Json, now: Json) -> bool:
    return before["metadata"].get("generation") != now["metadata"].get("generation") or (
        before.get("spec") != now.get("spec")
    )
