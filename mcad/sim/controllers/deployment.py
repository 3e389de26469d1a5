"""Deployments: rolling updates, Recreate, pausing, scaling in mid-rollout.

After ``pkg/controller/deployment``. ``kubectl rollout undo`` is the client's doing: it writes the
template of an old ReplicaSet into the Deployment, which finds that ReplicaSet again.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers import progress
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import annotations_of, controller_of, is_deleting, is_finished
from mcad.sim.controllers.replicasets import ReplicaSets, name_of_new, next_revision
from mcad.sim.controllers.rollout import (
    DESIRED_REPLICAS,
    REVISION,
    Rollout,
    counted,
    deletable_old,
    is_rolling,
    is_saturated,
    picture,
    proportional_sizes,
    replicas_of,
    size_of_new,
)
from mcad.sim.controllers.workload import Workload, is_namespace_going
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.writes import Write

Json = dict[str, Any]


class DeploymentController(Workload):
    """Moves pods from old ReplicaSets to the one of the present template."""

    def __init__(self, registry: Registry, pods: OwnedIndex, replicasets: OwnedIndex) -> None:
        """The indexes are those that all controllers share."""
        kind = registry.kind("apps/v1", "Deployment")
        super().__init__(registry, kind, replicasets, "deployment-controller")
        self._pods = pods
        self._sets = ReplicaSets(registry, self.recorder)

    def start(self) -> None:
        """Follow Deployments, their ReplicaSets, and pods that go."""
        super().start()
        self._pods.start()
        self._pods.listen("ReplicaSet", self._on_pod)

    def _on_pod(self, change: Change, replicaset: Key) -> None:
        """With Recreate, the last old pod that goes lets the new ones come."""
        if change.type != "DELETED":
            return
        found = self.registry.find(self.owned.kind, replicaset)
        owner = controller_of(found) if found is not None else None
        if owner is None:
            return
        key = (replicaset[0], owner["name"])
        deployment = self.registry.find(self.kind, key)
        if deployment is not None and not is_rolling(deployment):
            self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """One step of whatever is going on; what it causes leads to the next one."""
        deployment = self.registry.find(self.kind, key)
        if deployment is None:
            return
        if deployment["spec"].get("selector") == {}:
            self._refuse(deployment)
            return
        rollout = picture(deployment, self.claim(deployment))
        if not is_deleting(deployment):
            self._note_pause(rollout)
        self._sets.annotate_new(rollout)
        self._note_revision(rollout)
        if is_deleting(deployment):
            self._write(rollout, progress.counts(rollout, self._now_us()))
        elif deployment["spec"].get("paused") or self._is_scaled(rollout):
            self._scale(rollout)
        elif is_rolling(deployment):
            self._roll(rollout)
        else:
            self._recreate(rollout)

    def _now_us(self) -> int:
        return self.registry.clock.now_us()

    def _write(self, rollout: Rollout, status: Json) -> None:
        rollout.deployment = self.write_status(rollout.deployment, status)

    def _refuse(self, deployment: Json) -> None:
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self.recorder.warning(deployment, "SelectingAll", text)
        generation = deployment["metadata"].get("generation", 0)
        status = (deployment.get("status") or {}) | {"observedGeneration": generation}
        self.write_status(deployment, status)

    # -- bookkeeping ---------------------------------------------------------------------------

    def _note_pause(self, rollout: Rollout) -> None:
        """Pausing and resuming set the clock of the deadline back."""
        deployment = rollout.deployment
        status = deployment.get("status") or {}
        present = progress.condition_of(status, "Progressing")
        reason = present.get("reason") if present is not None else None
        if progress.deadline_s(deployment) is None or reason == progress.TIMED_OUT:
            return
        paused = bool(deployment["spec"].get("paused"))
        if paused == (reason == progress.PAUSED):
            return
        state = ("Unknown", progress.RESUMED, "Deployment is resumed")
        if paused:
            state = ("Unknown", progress.PAUSED, "Deployment is paused")
        news = progress.condition("Progressing", state, self._now_us())
        self._write(rollout, progress.with_condition(status, news))

    def _note_revision(self, rollout: Rollout) -> None:
        """The Deployment carries the revision of its present ReplicaSet."""
        deployment, new = rollout.deployment, rollout.new
        if new is None:
            return
        status = deployment.get("status") or {}
        is_told = progress.condition_of(status, "Progressing") is not None
        if progress.deadline_s(deployment) is not None and not is_told:
            text = f'Found new replica set "{new["metadata"]["name"]}"'
            news = progress.condition("Progressing", ("True", progress.FOUND, text), self._now_us())
            status = progress.with_condition(status, news)
        self._write_revision(rollout, annotations_of(new).get(REVISION, ""), status)

    def _write_revision(self, rollout: Rollout, revision: str, status: Json) -> None:
        deployment = rollout.deployment
        annotations = annotations_of(deployment) | {REVISION: revision}
        if annotations == annotations_of(deployment) and status == (deployment.get("status") or {}):
            return

        def noted(live: Json) -> Json:
            return live | {
                "metadata": live["metadata"] | {"annotations": annotations},
                "status": status,
            }

        how = Write(trusted=True, subresource="status")
        rollout.deployment = self.registry.patch(self.kind, key_of(deployment), noted, how)

    def _create_new(self, rollout: Rollout) -> bool:
        """Whether there is a ReplicaSet of the present template now; raises Failure."""
        deployment = rollout.deployment
        status = deployment.get("status") or {}
        try:
            created = self._sets.create_new(rollout)
        except Failure as failure:
            if not is_namespace_going(failure):
                self._tell_failure(rollout, failure)
            raise
        if not created or rollout.new is None:
            status = status | {"collisionCount": status.get("collisionCount", 0) + 1}
            self._write(rollout, status)
            return False
        if progress.deadline_s(deployment) is not None:
            text = f'Created new replica set "{rollout.new["metadata"]["name"]}"'
            news = progress.condition(
                "Progressing", ("True", progress.CREATED, text), self._now_us()
            )
            status = progress.with_condition(status, news)
        self._write_revision(rollout, str(next_revision(rollout)), status)
        return True

    def _tell_failure(self, rollout: Rollout, failure: Failure) -> None:
        deployment = rollout.deployment
        name = name_of_new(deployment)
        text = f'Failed to create new replica set "{name}": {failure.message}'
        if progress.deadline_s(deployment) is not None:
            state = ("False", progress.CREATE_ERROR, text)
            news = progress.condition("Progressing", state, self._now_us())
            self._write(rollout, progress.with_condition(deployment.get("status") or {}, news))
        self.recorder.warning(deployment, progress.CREATE_ERROR, text)

    # -- scaling -------------------------------------------------------------------------------

    def _is_scaled(self, rollout: Rollout) -> bool:
        """Whether ``spec.replicas`` is another than the ReplicaSets were made for."""
        noted = [annotations_of(one).get(DESIRED_REPLICAS, "") for one in rollout.active]
        return any(one.isdecimal() and int(one) != rollout.desired for one in noted)

    def _scale(self, rollout: Rollout) -> None:
        active = rollout.active
        if len(active) <= 1:
            newest = rollout.new or (rollout.old[-1] if rollout.old else None)
            only = active[0] if active else newest
            if only is not None:
                self._sets.scale(rollout, only, rollout.desired)
        elif is_saturated(rollout):
            for one in rollout.active_old:
                self._sets.scale(rollout, one, 0)
        elif is_rolling(rollout.deployment):
            for one, size in proportional_sizes(rollout):
                self._sets.scale(rollout, one, size, note=True)
        if rollout.deployment["spec"].get("paused"):
            self._sets.clean_up(rollout)
        self._write(rollout, progress.counts(rollout, self._now_us()))

    # -- strategies ----------------------------------------------------------------------------

    def _roll(self, rollout: Rollout) -> None:
        if rollout.new is None and not self._create_new(rollout):
            return
        if self._grow_new(rollout):
            self._finish(rollout)
            return
        shrunk = False
        for one, size in deletable_old(rollout) if rollout.active_old else ():
            shrunk = self._sets.scale(rollout, one, size) or shrunk
        self._finish(rollout, settled=not shrunk)

    def _grow_new(self, rollout: Rollout) -> bool:
        """Whether the new ReplicaSet was resized."""
        if rollout.new is None or replicas_of(rollout.new) == rollout.desired:
            return False
        size = min(size_of_new(rollout), rollout.desired)
        return self._sets.scale(rollout, rollout.new, size)

    def _recreate(self, rollout: Rollout) -> None:
        shrunk = False
        for one in rollout.active_old:
            shrunk = self._sets.scale(rollout, one, 0) or shrunk
        if shrunk or self._has_old_pods(rollout):
            self._finish(rollout)
            return
        if rollout.new is None and not self._create_new(rollout):
            return
        if rollout.new is not None:
            self._sets.scale(rollout, rollout.new, rollout.desired)
        self._finish(rollout, settled=True)

    def _has_old_pods(self, rollout: Rollout) -> bool:
        """Whether an old pod may still be running."""
        if counted(rollout.old, "replicas"):
            return True
        pods = (pod for one in rollout.old for pod in self._pods.owned(one["metadata"]["uid"]))
        return any(not is_finished(pod) for pod in pods)

    def _finish(self, rollout: Rollout, *, settled: bool = False) -> None:
        """Tell how far it is; look again when that should have changed."""
        deployment = rollout.deployment
        if rollout.new is not None and "observedGeneration" not in rollout.new["status"]:
            # The real controller's write fails here, because it has just written the new revision
            # and not read again; when it tries again, the ReplicaSet has told its size. So that
            # nothing is updated yet is never told, and the first updated pods are no progress.
            return
        if settled and progress.is_complete(deployment, deployment.get("status") or {}):
            self._sets.clean_up(rollout)
        status = progress.of_rollout(rollout, self._now_us())
        self._write(rollout, status)
        wait_s = progress.check_after_s(deployment, status, self._now_us())
        if wait_s is not None:
            self.enqueue_after(key_of(deployment), wait_s)
