"""Deployments: a ReplicaSet for each template, rolling updates, Recreate.

After ``pkg/controller/deployment``, without scaling in proportion in mid-rollout, and without the
conditions of pauses and deadlines. ``kubectl rollout undo`` is the client's doing: it writes the
template of an old ReplicaSet into the Deployment, which finds that ReplicaSet again.
"""

from __future__ import annotations

from mcad.kube.types import Json
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.numbers import hash_of
from mcad.sim.controllers.pods import (
    POD_TEMPLATE_HASH,
    annotations_of,
    controller_of,
    is_deleting,
    is_finished,
    labels_of,
    reference_to,
)
from mcad.sim.controllers.rollout import (
    REVISION,
    Rollout,
    counted,
    fences,
    is_rolling,
    next_sizes,
    picture,
    replicas_of,
    revision_of,
    size_of_new,
)
from mcad.sim.controllers.workload import Workload, compact
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds
from mcad.sim.writes import Write

COMPLETE = "NewReplicaSetAvailable"
_NOT_COPIED = {"kubectl.kubernetes.io/last-applied-configuration", REVISION}


class DeploymentController(Workload):
    """Moves pods from old ReplicaSets to the one of the present template."""

    def __init__(self, registry: Registry, pods: OwnedIndex, replicasets: OwnedIndex) -> None:
        kind = registry.kind("apps/v1", "Deployment")
        super().__init__(registry, kind, replicasets, "deployment-controller")
        self._pods = pods

    def start(self) -> None:
        super().start()
        self._pods.start()
        self._pods.listen("ReplicaSet", self._on_pod)

    def _on_pod(self, change: Change, replicaset: Key) -> None:
        """With Recreate, the last old pod that goes lets the new ones come."""
        found = self.registry.find(self.owned.kind, replicaset)
        owner = controller_of(found) if found is not None else None
        if change.type != "DELETED" or owner is None:
            return
        key = (replicaset[0], owner["name"])
        deployment = self.registry.find(self.kind, key)
        if deployment is not None and not is_rolling(deployment):
            self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """One step of whatever is going on; what it causes leads to the next one."""
        deployment = self.registry.find(self.kind, key)
        if deployment is None or is_deleting(deployment):
            return
        rollout = picture(deployment, self.claim(deployment))
        if rollout.new is not None:
            self._note_revision(rollout, rollout.new)
        elif not deployment["spec"].get("paused") and not self._waits_for_old(rollout):
            self._create_new(rollout)
        for one, size in next_sizes(rollout):
            self._resize(rollout, one, size)
        self._tell(rollout)

    def _waits_for_old(self, rollout: Rollout) -> bool:
        """Whether, with Recreate, an old pod may still be running."""
        if is_rolling(rollout.deployment):
            return False
        pods = (pod for one in rollout.old for pod in self._pods.owned(one["metadata"]["uid"]))
        return any(map(replicas_of, rollout.old)) or any(not is_finished(pod) for pod in pods)

    # -- ReplicaSets ---------------------------------------------------------------------------

    def _create_new(self, rollout: Rollout) -> None:
        """Make the ReplicaSet of the present template; raises Failure."""
        deployment = rollout.deployment
        body = _new_replicaset(rollout)
        rollout.new = self.registry.create(
            self.owned.kind, deployment["metadata"]["namespace"], body
        )
        size, name = replicas_of(rollout.new), rollout.new["metadata"]["name"]
        if size:
            text = f"Scaled up replica set {name} from 0 to {size}"
            self.recorder.normal(deployment, "ScalingReplicaSet", text)
        state = ("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        status = deployment.get("status") or {}
        self._write(rollout, self._with_condition(status, "Progressing", state))
        self._annotate(rollout, annotations_of(rollout.new)[REVISION])

    def _note_revision(self, rollout: Rollout, new: Json) -> None:
        """An old template that comes back gets a number of its own."""
        revision = _next_revision(rollout)
        if revision_of(new) < revision:
            rollout.new = self.registry.patch(
                self.owned.kind, key_of(new), lambda live: _annotated(live, str(revision))
            )
        self._annotate(rollout, annotations_of(rollout.new or new)[REVISION])

    def _annotate(self, rollout: Rollout, revision: str) -> None:
        """The Deployment carries the revision of its present ReplicaSet."""
        if annotations_of(rollout.deployment).get(REVISION) != revision:
            rollout.deployment = self.registry.patch(
                self.kind,
                key_of(rollout.deployment),
                lambda live: _annotated(live, revision),
                Write(trusted=True, subresource="status"),  # it is no new generation
            )

    def _resize(self, rollout: Rollout, replicaset: Json, size: int) -> None:
        before, name = replicas_of(replicaset), replicaset["metadata"]["name"]
        resized = self.registry.patch(
            self.owned.kind,
            key_of(replicaset),
            lambda live: live | {"spec": live["spec"] | {"replicas": size}},
        )
        if replicaset is rollout.new:
            rollout.new = resized
        rollout.old = [resized if one is replicaset else one for one in rollout.old]
        way = "up" if before < size else "down"
        text = f"Scaled {way} replica set {name} from {before} to {size}"
        self.recorder.normal(rollout.deployment, "ScalingReplicaSet", text)

    def _clean_up(self, rollout: Rollout) -> None:
        """Delete old ReplicaSets beyond ``revisionHistoryLimit``, the oldest revisions first."""
        limit = rollout.deployment["spec"].get("revisionHistoryLimit", 10)
        empty = [one for one in rollout.old if not replicas_of(one) and not is_deleting(one)]
        for one in sorted(empty, key=revision_of)[: max(len(empty) - limit, 0)]:
            self.registry.delete(self.owned.kind, key_of(one))

    # -- status --------------------------------------------------------------------------------

    def _write(self, rollout: Rollout, status: Json) -> None:
        rollout.deployment = self.write_status(rollout.deployment, status)

    def _tell(self, rollout: Rollout) -> None:
        deployment, sets = rollout.deployment, rollout.sets
        before = deployment.get("status") or {}
        available = counted(sets, "availableReplicas")
        status = {
            "observedGeneration": deployment["metadata"].get("generation", 0),
            "replicas": counted(sets, "replicas"),
            "updatedReplicas": counted([rollout.new] if rollout.new else [], "replicas"),
            "readyReplicas": counted(sets, "readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(sum(map(replicas_of, sets)) - available, 0),
            "terminatingReplicas": counted(sets, "terminatingReplicas"),
            "conditions": list(before.get("conditions") or ()),
        }
        status = compact(status, "terminatingReplicas")
        text = "Deployment does not have minimum availability."
        state = ("False", "MinimumReplicasUnavailable", text)
        if available >= rollout.desired - fences(deployment)[1]:
            text = "Deployment has minimum availability."
            state = ("True", "MinimumReplicasAvailable", text)
        status = self._with_condition(status, "Available", state)
        status = self._with_progress(rollout, before, status)
        self._write(rollout, self._with_failure(rollout, status))

    def _with_progress(self, rollout: Rollout, before: Json, status: Json) -> Json:
        if rollout.new is None:
            return status
        name, desired = f'ReplicaSet "{rollout.new["metadata"]["name"]}"', rollout.desired
        present = (_condition(before, "Progressing") or {}).get("reason")
        counts = ("updatedReplicas", "replicas", "availableReplicas")
        if all(status.get(one, 0) == desired for one in counts):
            self._clean_up(rollout)
            state = ("True", COMPLETE, f"{name} has successfully progressed.")
        elif present == COMPLETE and status.get("replicas") == status.get("updatedReplicas"):
            return status
        elif any(status.get(one, 0) > before.get(one, 0) for one in counts):
            state = ("True", "ReplicaSetUpdated", f"{name} is progressing.")
        else:
            return status
        return self._with_condition(status, "Progressing", state)

    def _with_failure(self, rollout: Rollout, status: Json) -> Json:
        """Refused pods are reported as their ReplicaSet reports them."""
        sets = (rollout.new, *rollout.old)
        found = [_condition((one or {}).get("status") or {}, "ReplicaFailure") for one in sets]
        failure = next((one for one in found if one), None)
        others = [one for one in status.get("conditions", ()) if one["type"] != "ReplicaFailure"]
        told = [failure | {"lastUpdateTime": failure["lastTransitionTime"]}] if failure else []
        return status | {"conditions": [*others, *told]}

    def _with_condition(self, status: Json, name: str, state: tuple[str, str, str]) -> Json:
        """The status with that condition, unless its status and reason are there already."""
        value, reason, message = state
        present = _condition(status, name)
        if present is not None and (present["status"], present["reason"]) == (value, reason):
            return status
        at = seconds(self.registry.clock.now_us())
        same = present is not None and present["status"] == value
        news = {
            "type": name,
            "status": value,
            "lastUpdateTime": at,
            "lastTransitionTime": present["lastTransitionTime"] if present and same else at,
            "reason": reason,
            "message": message,
        }
        others = [one for one in status.get("conditions") or () if one["type"] != name]
        return status | {"conditions": [*others, news]}


def _condition(status: Json, name: str) -> Json | None:
    return next((one for one in status.get("conditions") or () if one["type"] == name), None)


def _annotated(obj: Json, revision: str) -> Json:
    annotations = annotations_of(obj) | {REVISION: revision}
    return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}


def _next_revision(rollout: Rollout) -> int:
    return max(map(revision_of, rollout.old), default=0) + 1


def _new_replicaset(rollout: Rollout) -> Json:
    """The ReplicaSet of the present template, to be created."""
    deployment, spec = rollout.deployment, rollout.deployment["spec"]
    template, selector = spec.get("template") or {}, spec.get("selector") or {}
    hashed = {POD_TEMPLATE_HASH: hash_of(template)}
    labels = labels_of(template) | hashed
    copied = {k: text for k, text in annotations_of(deployment).items() if k not in _NOT_COPIED}
    body: Json = {
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{hashed[POD_TEMPLATE_HASH]}",
            "labels": labels,
            "annotations": copied | {REVISION: str(_next_revision(rollout))},
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": {
            "replicas": size_of_new(rollout),
            "selector": selector | {"matchLabels": (selector.get("matchLabels") or {}) | hashed},
            "template": template
            | {"metadata": (template.get("metadata") or {}) | {"labels": labels}},
        },
    }
    if spec.get("minReadySeconds"):
        body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return body
