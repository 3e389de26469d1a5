"""Reckons up PodDisruptionBudgets: how many of their pods may be evicted now.

Modelled after ``pkg/controller/disruption``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcad.sim import eviction
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.numbers import scaled
from mcad.sim.controllers.pods import controller_of, is_deleting, is_ready, labels_of
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]

BELIEVED_S = 120  # an eviction that was allowed counts for so long even if the pod is still there


class Disruption(Controller):
    """Keys are those of budgets."""

    def __init__(self, registry: Registry) -> None:
        """Nothing happens before ``start``."""
        super().__init__(registry)
        self._kind = registry.kind("policy/v1", "PodDisruptionBudget")
        self._pods = registry.kind("v1", "Pod")

    def start(self) -> None:
        """Look at budgets and pods."""
        self.watch(self._kind, self._on_budget)
        self.watch(self._pods, self._on_pod)

    def _on_budget(self, change: Change) -> None:
        if change.type != "DELETED":
            self.enqueue(change.key)

    def _on_pod(self, change: Change) -> None:
        if not self.registry.store.count(self._kind.storage):
            return
        for pod in (change.obj, change.previous):
            if pod is not None:
                for budget in eviction.budgets_of(self.registry, pod):
                    metadata = budget["metadata"]
                    self.enqueue((metadata["namespace"], metadata["name"]))

    def reconcile(self, key: Key) -> None:
        """Write the figures of one budget."""
        budget = self.registry.find(self._kind, key)
        if budget is None:
            return
        pods = [
            pod
            for pod in self.registry.list_all(self._pods, key[0])
            if eviction.selects(budget, labels_of(pod))
        ]
        now_us = self.registry.clock.now_us()
        before = budget.get("status") or {}
        disrupted = self._disrupted(key, pods, before.get("disruptedPods") or {}, now_us)
        healthy = sum(
            is_ready(pod) and not is_deleting(pod) and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        expected, desired = self._wanted(budget["spec"], pods)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status: Json = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": budget["metadata"].get("generation", 0),
            "conditions": before.get("conditions") or [],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        status["conditions"] = eviction.conditions(status, seconds(now_us))
        self.registry.update_status(self._kind, budget | {"status": status})

    def _disrupted(
        self, key: Key, pods: Sequence[Json], known: dict[str, str], now_us: int
    ) -> dict[str, str]:
        """Evictions that were allowed and have not been carried out yet."""
        left: dict[str, str] = {}
        for pod in pods:
            name = pod["metadata"]["name"]
            if name not in known or is_deleting(pod):
                continue
            until_us = parse_us(known[name]) + BELIEVED_S * 1_000_000
            if until_us >= now_us:
                left[name] = known[name]
                self.enqueue_after(key, (until_us - now_us) / 1e6 + 1)
        return left

    def _wanted(self, spec: Json, pods: Sequence[Json]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most is not None:
            expected = self._scale(pods)
            return expected, max(expected - scaled(most, expected, up=True), 0)
        if isinstance(least, int):
            return len(pods), least
        expected = self._scale(pods)
        return expected, scaled(least, expected, up=True)

    def _scale(self, pods: Sequence[Json]) -> int:
        """The sum of ``spec.replicas`` of the controllers of these pods, each counted once."""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            while owner is not None:
                found = self._owner(pod["metadata"]["namespace"], owner)
                if found is None:
                    break
                above = controller_of(found)
                if above is None or above["kind"] != "Deployment":
                    replicas = (found.get("spec") or {}).get("replicas")
                    scales[owner["uid"]] = 0 if replicas is None else int(replicas)
                    break
                owner = above
        return sum(scales.values())

    def _owner(self, namespace: str, reference: Json) -> Json | None:
        kind = self.registry.kinds.by_kind(reference["apiVersion"], reference["kind"])
        if kind is None or "scale" not in kind.subresources:
            return None
        found = self.registry.find(kind, (namespace, reference["name"]))
        same = found is not None and found["metadata"]["uid"] == reference["uid"]
        return found if same else None
