"""StatefulSets: pods with names of their own, one after the other or all at once.

After ``pkg/controller/statefulset/stateful_set_control.go``, without the feature gate
MaxUnavailableStatefulSet, which is off in 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcad.sim.controllers import identity
from mcad.sim.controllers.identity import exists, ordinal_of, ordinals, revision_of
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import (
    is_available,
    is_deleting,
    is_finished,
    is_ready,
    next_available_s,
    phase_of,
)
from mcad.sim.controllers.revisions import Revisions, template_of
from mcad.sim.controllers.workload import Workload, compact, is_namespace_going
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Key

Json = dict[str, Any]

HASH_LABEL = "controller.kubernetes.io/hash"


@dataclass(slots=True)
class _Sync:
    """One look at a StatefulSet."""

    owner: Json
    current: Json  # the revision that its pods are to have had so far
    update: Json  # the revision of its present template
    replicas: list[Json]  # one per ordinal; those that do not exist yet have no phase
    condemned: list[Json]  # the highest ordinal first
    now_us: int

    @property
    def min_ready_s(self) -> int:
        """``spec.minReadySeconds``."""
        seconds: int = self.owner["spec"].get("minReadySeconds", 0)
        return seconds

    def is_unavailable(self, pod: Json) -> bool:
        """Not ready for long enough, or about to go."""
        return is_deleting(pod) or not is_available(pod, self.min_ready_s, self.now_us)


class StatefulSetController(Workload):
    """Keeps one pod per ordinal."""

    def __init__(self, registry: Registry, pods: OwnedIndex, revisions: OwnedIndex) -> None:
        """The indexes are those that all controllers share."""
        kind = registry.kind("apps/v1", "StatefulSet")
        super().__init__(registry, kind, pods, "statefulset-controller")
        self._revisions = Revisions(revisions, HASH_LABEL)
        self._claims = registry.kind("v1", "PersistentVolumeClaim")

    def start(self) -> None:
        """Follow StatefulSets and their pods."""
        self._revisions.index.start()
        super().start()

    def reconcile(self, key: Key) -> None:
        """As many steps as can be taken now."""
        owner = self.registry.find(self.kind, key)
        if owner is None:
            return
        pods = self.claim(owner, only=lambda pod: identity.is_member(owner, pod))
        known = self._revisions.of(owner)
        update, collisions = self._revisions.current(owner, known)
        name = (owner.get("status") or {}).get("currentRevision")
        current = next((one for one in known if one["metadata"]["name"] == name), update)
        sync = self._look(owner, pods, (current, update))
        trouble: Failure | None = None
        if not is_deleting(owner):
            try:
                self._advance(sync)
            except Failure as failure:
                trouble = None if is_namespace_going(failure) else failure
        self._tell(sync, collisions)
        live = {current["metadata"]["name"], update["metadata"]["name"]}
        self._revisions.truncate(owner, known, live | {revision_of(pod) for pod in pods})
        if trouble is not None:
            raise trouble
        wait_s = next_available_s(self._members(owner), sync.min_ready_s, sync.now_us)
        if wait_s is not None:
            self.enqueue_after(key, wait_s)

    def _members(self, owner: Json) -> list[Json]:
        owned = self.owned.owned(owner["metadata"]["uid"])
        return [pod for pod in owned if identity.is_member(owner, pod)]

    def _look(self, owner: Json, pods: list[Json], revisions: tuple[Json, Json]) -> _Sync:
        wanted, (current, update) = ordinals(owner), revisions
        by_ordinal = {ordinal_of(pod): pod for pod in pods}
        replicas = [
            by_ordinal.get(ordinal) or self._new_pod(owner, current, update, ordinal)
            for ordinal in wanted
        ]
        condemned = [pod for pod in pods if ordinal_of(pod) not in wanted]
        condemned.sort(key=ordinal_of, reverse=True)
        now_us = self.registry.clock.now_us()
        return _Sync(owner, current, update, replicas, condemned, now_us)

    def _new_pod(self, owner: Json, current: Json, update: Json, ordinal: int) -> Json:
        """Below the partition (or the number of old pods) pods are still made as before."""
        strategy, first = owner["spec"].get("updateStrategy") or {}, ordinals(owner).start
        rolling = strategy.get("rollingUpdate")
        old = (rolling or {}).get("partition") or 0
        if rolling is None:
            old = (owner.get("status") or {}).get("currentReplicas", 0)
        is_rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        revision = current if is_rolling and ordinal < first + old else update
        name = revision["metadata"]["name"]
        return identity.new_pod(owner, template_of(revision), name, ordinal)

    # -- steps ---------------------------------------------------------------------------------

    def _advance(self, sync: _Sync) -> None:
        """Create, then remove what is too many, then update; in order, each waits for the last."""
        ordered = sync.owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        unavailable = [pod for pod in sync.replicas if sync.is_unavailable(pod)]
        unavailable += [pod for pod in reversed(sync.condemned) if sync.is_unavailable(pod)]
        first = unavailable[0] if unavailable else None
        for number, pod in enumerate(sync.replicas):
            if self._is_busy(sync, number, pod) and ordered:
                return
        for pod in sync.condemned:
            self._retain_claims(sync.owner, pod)
        for pod in sync.condemned:
            if not is_deleting(pod):
                if ordered and pod is not first and sync.is_unavailable(pod):
                    return
                self._delete(sync.owner, pod)
            if ordered:
                return
        if (sync.owner["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            self._update(sync)

    def _is_busy(self, sync: _Sync, number: int, pod: Json) -> bool:
        """Whether this replica has to get somewhere before the next one is looked at."""
        owner = sync.owner
        if exists(pod) and is_finished(pod):
            if not is_deleting(pod):
                self._delete(owner, pod)
            return True
        if not exists(pod):
            self._create_claims(owner, pod)
            sync.replicas[number] = self._create(owner, pod)
            return True
        if phase_of(pod) == "Pending":
            self._create_claims(owner, pod)
        if is_deleting(pod) or phase_of(pod) != "Running" or sync.is_unavailable(pod):
            return True
        self._retain_claims(owner, pod)
        return False

    def _update(self, sync: _Sync) -> None:
        """Delete the highest pod of an old revision, if all above it are well."""
        strategy = (sync.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        partition = strategy.get("partition") or 0
        for pod in reversed(sync.replicas[partition:]):
            if revision_of(pod) != sync.update["metadata"]["name"] and not is_deleting(pod):
                self._delete(sync.owner, pod)
                return
            if sync.is_unavailable(pod):
                return

    def _create(self, owner: Json, pod: Json) -> Json:
        name = pod["metadata"]["name"]
        try:
            created = self.registry.create(self.owned.kind, owner["metadata"]["namespace"], pod)
        except Failure as failure:
            if failure.reason != "AlreadyExists" and not is_namespace_going(failure):
                self._say(owner, "Create", f"Pod {name}", failure)
            raise
        self._retain_claims(owner, created)
        self._say(owner, "Create", f"Pod {name}")
        return created

    def _delete(self, owner: Json, pod: Json) -> None:
        self.registry.delete(self.owned.kind, key_of(pod))
        self._say(owner, "Delete", f"Pod {pod['metadata']['name']}")

    def _say(self, owner: Json, verb: str, what: str, failure: Failure | None = None) -> None:
        text = f"{verb} {what} in StatefulSet {owner['metadata']['name']}"
        if failure is not None:
            text = f"{text} failed error: {failure.message}"
            self.recorder.warning(owner, f"Failed{verb}", text)
            return
        ending = "success" if what.startswith("Claim") else "successful"
        self.recorder.normal(owner, f"Successful{verb}", f"{text} {ending}")

    # -- claims --------------------------------------------------------------------------------

    def _create_claims(self, owner: Json, pod: Json) -> None:
        namespace = owner["metadata"]["namespace"]
        for claim in identity.new_claims(owner, ordinal_of(pod)):
            name = claim["metadata"]["name"]
            if self.registry.find(self._claims, (namespace, name)) is None:
                self.registry.create(self._claims, namespace, claim)
                self._say(owner, "Create", f"Claim {name} Pod {pod['metadata']['name']}")

    def _retain_claims(self, owner: Json, pod: Json) -> None:
        """Keep the owner references of its claims as the retention policy wants them."""
        for template in identity.new_claims(owner, ordinal_of(pod)):
            key = (owner["metadata"]["namespace"], template["metadata"]["name"])
            claim = self.registry.find(self._claims, key)
            if claim is None:
                continue
            owners = identity.claim_owners(owner, pod, claim)
            if owners != (claim["metadata"].get("ownerReferences") or []):
                metadata = claim["metadata"] | {"ownerReferences": owners}
                self.registry.update(self._claims, key, claim | {"metadata": metadata})

    # -- status --------------------------------------------------------------------------------

    def _tell(self, sync: _Sync, collisions: int) -> None:
        owner, pods = sync.owner, self._members(sync.owner)
        alive = [pod for pod in pods if not is_deleting(pod)]
        names = [one["metadata"]["name"] for one in (sync.current, sync.update)]
        of_revision = [sum(revision_of(pod) == name for pod in alive) for name in names]
        ready = [pod for pod in pods if phase_of(pod) == "Running" and is_ready(pod)]
        status = {
            "observedGeneration": owner["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "availableReplicas": sum(
                is_available(pod, sync.min_ready_s, sync.now_us) for pod in ready
            ),
            "currentReplicas": of_revision[0],
            "updatedReplicas": of_revision[1],
            "currentRevision": names[0],
            "updateRevision": names[1],
            "collisionCount": collisions,
        }
        strategy = (owner["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate")
        wanted = owner["spec"].get("replicas", 1)
        if strategy == "RollingUpdate" and wanted == of_revision[1] == len(ready) == len(pods):
            status |= {"currentReplicas": of_revision[1], "currentRevision": names[1]}
        always = ("replicas", "availableReplicas", "collisionCount")
        self.write_status(owner, compact(status, *always))
