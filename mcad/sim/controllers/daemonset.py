"""DaemonSets: one pod per node that fits. After ``pkg/controller/daemon/daemon_controller.go``."""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers import daemonpods, daemonrollout
from mcad.sim.controllers.daemonrollout import Fleet, Steps
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import (
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    next_available_s,
    phase_of,
)
from mcad.sim.controllers.revisions import Revisions
from mcad.sim.controllers.workload import Workload, compact
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key

Json = dict[str, Any]

BACKOFF_S, BACKOFF_MAX_S = 1.0, 900.0  # between replacements of failing pods on one node


class DaemonSetController(Workload):
    """Keeps a pod on every node that a DaemonSet is for."""

    def __init__(self, registry: Registry, pods: OwnedIndex, revisions: OwnedIndex) -> None:
        """The indexes are those that all controllers share."""
        kind = registry.kind("apps/v1", "DaemonSet")
        super().__init__(registry, kind, pods, "daemonset-controller")
        self._revisions = Revisions(revisions, daemonpods.HASH_LABEL)
        self._nodes = registry.kind("v1", "Node")
        self._backoffs: dict[tuple[str, str], tuple[float, int]] = {}  # uid and node: delay, since

    def start(self) -> None:
        """Follow DaemonSets, their pods, and nodes."""
        self._revisions.index.start()
        super().start()
        self.watch(self._nodes, self._on_node)

    def on_owner(self, change: Change) -> None:
        """A DaemonSet was written."""
        if change.type == "DELETED":
            uid = change.obj["metadata"]["uid"]
            self._backoffs = {key: one for key, one in self._backoffs.items() if key[0] != uid}
        super().on_owner(change)

    def _on_node(self, change: Change) -> None:
        """What a node reports of itself does not matter, but what it is and bears does."""
        before, node = change.previous, change.obj
        if change.type == "MODIFIED" and before is not None:
            same_spec = before.get("spec") == node.get("spec")
            if same_spec and labels_of(before) == labels_of(node):
                return
        for key, _ in list(self.registry.store.items(self.kind.storage)):
            self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Create and delete pods, then count them."""
        owner = self.registry.find(self.kind, key)
        if owner is None or is_deleting(owner):
            return
        if owner["spec"].get("selector") == {}:
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.warning(owner, "SelectingAll", text)
            return
        known = self._revisions.of(owner)
        current, collisions = self._revisions.current(owner, known)
        hashed, trouble = self._revisions.hash(current), None
        try:
            self._apply(owner, hashed, self._needed(self._look(owner, hashed)))
            if (owner["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
                self._apply(owner, hashed, daemonrollout.plan(self._look(owner, hashed)))
        except Failure as failure:
            trouble = failure
        self._tell(self._look(owner, hashed), collisions)
        pods = self.owned.owned(owner["metadata"]["uid"])
        hashes = {labels_of(pod).get(daemonpods.HASH_LABEL) for pod in pods}
        live = {one["metadata"]["name"] for one in known if self._revisions.hash(one) in hashes}
        self._revisions.truncate(owner, known, live | {current["metadata"]["name"]})
        if trouble is not None:
            raise trouble
        min_ready_s = owner["spec"].get("minReadySeconds", 0)
        wait_s = next_available_s(pods, min_ready_s, self.registry.clock.now_us())
        if wait_s is not None:
            self.enqueue_after(key, wait_s)

    def _look(self, owner: Json, hashed: str) -> Fleet:
        nodes = {key[1]: node for key, node in self.registry.store.items(self._nodes.storage)}
        pods: dict[str, list[Json]] = {}
        for pod in self.claim(owner):
            name = daemonpods.node_of(pod)
            if name and not (is_finished(pod) and is_deleting(pod)):
                pods.setdefault(name, []).append(pod)
        return Fleet(owner, hashed, nodes, pods, self.registry.clock.now_us())

    # -- where pods should be ------------------------------------------------------------------

    def _needed(self, fleet: Fleet) -> Steps:
        steps = Steps()
        for name, node in fleet.nodes.items():
            pods = fleet.pods.get(name, [])
            wanted, may_stay = daemonpods.should_run(fleet.owner, node)
            if wanted and not pods:
                steps.create.append(name)
            elif may_stay:
                self._look_after(fleet, name, steps)
            else:
                steps.delete += [pod for pod in pods if not is_deleting(pod)]
        for name, pods in fleet.pods.items():
            if name not in fleet.nodes:
                steps.delete += [pod for pod in pods if not pod["spec"].get("nodeName")]
        return steps

    def _look_after(self, fleet: Fleet, name: str, steps: Steps) -> None:
        """Pods that have ended go, and so do those that are too many."""
        running = []
        for pod in fleet.pods.get(name, []):
            if is_deleting(pod):
                continue
            if not is_finished(pod):
                running.append(pod)
            elif phase_of(pod) == "Succeeded" or self._may_replace(fleet, name):
                self._tell_ended(fleet.owner, pod, name)
                steps.delete.append(pod)
        running = daemonpods.by_age(running)
        if not daemonrollout.allows_surge(fleet.owner):
            steps.delete += running[1:]
        elif not running:
            if daemonpods.should_run(fleet.owner, fleet.nodes[name])[0]:
                steps.create.append(name)
        else:
            steps.delete += _surplus(fleet, running)

    def _may_replace(self, fleet: Fleet, name: str) -> bool:
        """Whether a failed pod may be replaced now; if not, look again in time."""
        key = (fleet.owner["metadata"]["uid"], name)
        delay_s, since_us = self._backoffs.get(key, (0.0, 0))
        waited_s = (fleet.now_us - since_us) / 1e6
        if delay_s and waited_s < delay_s:
            self.enqueue_after(key_of(fleet.owner), delay_s - waited_s)
            return False
        is_long_ago = waited_s > 2 * BACKOFF_MAX_S
        doubled = BACKOFF_S if is_long_ago else max(delay_s * 2, BACKOFF_S)
        self._backoffs[key] = (min(doubled, BACKOFF_MAX_S), fleet.now_us)
        return True

    def _tell_ended(self, owner: Json, pod: Json, node: str) -> None:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
        if phase_of(pod) == "Succeeded":
            text = f"Found succeeded daemon pod {name}, will try to delete it"
            self.recorder.normal(owner, "SucceededDaemonPod", text)
        else:
            text = f"Found failed daemon pod {name}, will try to kill it"
            self.recorder.warning(owner, "FailedDaemonPod", text)

    def _apply(self, owner: Json, hashed: str, steps: Steps) -> None:
        for name in steps.create:
            self.create_pod(owner, daemonpods.pod_for(owner, hashed, name))
        for pod in steps.delete:
            self.delete_pod(owner, pod)

    # -- status --------------------------------------------------------------------------------

    def _tell(self, fleet: Fleet, collisions: int) -> None:
        owner, wanted = fleet.owner, set(fleet.wanted())
        first = {
            name: daemonpods.by_age(pods)[0]
            for name, pods in fleet.pods.items()
            if name in fleet.nodes
        }
        there = [pod for name, pod in first.items() if name in wanted]
        available = sum(is_ready(pod) and fleet.is_available(pod) for pod in there)
        status = {
            "observedGeneration": owner["metadata"].get("generation", 0),
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(there),
            "numberMisscheduled": len(first) - len(there),
            "numberReady": sum(map(is_ready, there)),
            "updatedNumberScheduled": sum(
                daemonpods.is_updated(owner, pod, fleet.hashed) for pod in there
            ),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
            "collisionCount": collisions,
        }
        always = (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        )
        self.write_status(owner, compact(status, *always))


def _surplus(fleet: Fleet, running: list[Json]) -> list[Json]:
    """With surge one new and one old pod may be on a node until the new one is available."""
    gone, kept = [], {}
    for pod in running:
        updated = daemonpods.is_updated(fleet.owner, pod, fleet.hashed)
        if updated in kept:
            gone.append(pod)
        else:
            kept[updated] = pod
    new, old = kept.get(True), kept.get(False)
    if new is not None and old is not None and (not is_ready(old) or fleet.is_available(new)):
        gone.append(old)
    return gone
