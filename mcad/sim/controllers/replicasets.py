"""What a Deployment does to its ReplicaSets: make, annotate, scale, clean up.

After ``pkg/controller/deployment/sync.go``.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.events import Recorder
from mcad.sim.controllers.numbers import hash_of
from mcad.sim.controllers.pods import (
    POD_TEMPLATE_HASH,
    annotations_of,
    controller_of,
    is_deleting,
    labels_of,
    reference_to,
)
from mcad.sim.controllers.rollout import (
    DESIRED_REPLICAS,
    FOREVER,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    Rollout,
    picture,
    replicas_of,
    revision_of,
    size_of_new,
    surge_of,
)
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of

Json = dict[str, Any]

_NAME_MAX = 253
_HISTORY_MAX = 2000  # characters of the annotation with earlier revisions
_OWN = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
}


class ReplicaSets:
    """Writes of the deployment controller to ReplicaSets."""

    def __init__(self, registry: Registry, recorder: Recorder) -> None:
        """``recorder`` speaks for the deployment controller."""
        self._registry = registry
        self._recorder = recorder
        self._kind = registry.kind("apps/v1", "ReplicaSet")

    def annotate_new(self, rollout: Rollout) -> None:
        """Give the present ReplicaSet the Deployment's annotations and the next revision."""
        new, deployment = rollout.new, rollout.deployment
        if new is None:
            return
        annotations = _annotations(deployment, annotations_of(new), next_revision(rollout))
        min_ready_s = deployment["spec"].get("minReadySeconds", 0)
        is_same = min_ready_s == new["spec"].get("minReadySeconds", 0)
        if is_same and annotations == annotations_of(new):
            return

        def annotated(live: Json) -> Json:
            metadata = live["metadata"] | {"annotations": annotations}
            spec = {key: value for key, value in live["spec"].items() if key != "minReadySeconds"}
            spec |= {"minReadySeconds": min_ready_s} if min_ready_s else {}
            return live | {"metadata": metadata, "spec": spec}

        rollout.new = self._registry.patch(self._kind, key_of(new), annotated)

    def create_new(self, rollout: Rollout) -> bool:
        """Make the ReplicaSet of the present template; False if its name is another's.

        Raises Failure.
        """
        deployment = rollout.deployment
        body = self._body(rollout)
        try:
            rollout.new = self._registry.create(
                self._kind, deployment["metadata"]["namespace"], body
            )
        except Failure as failure:
            if failure.reason != "AlreadyExists":
                raise
            key = (deployment["metadata"]["namespace"], body["metadata"]["name"])
            there = self._registry.get(self._kind, key)
            owner = controller_of(there) or {}
            if owner.get("uid") != deployment["metadata"]["uid"]:
                return False
            if picture(deployment, [there]).new is None:
                return False
            rollout.new = there
            return True
        size = replicas_of(rollout.new)
        if size:
            name = rollout.new["metadata"]["name"]
            text = f"Scaled up replica set {name} from 0 to {size}"
            self._recorder.normal(deployment, "ScalingReplicaSet", text)
        return True

    def scale(self, rollout: Rollout, replicaset: Json, size: int, *, note: bool = False) -> bool:
        """Whether it was resized; with ``note`` the annotations are renewed in any case."""
        before, sizes = replicas_of(replicaset), _sizes(rollout.deployment)
        up_to_date = sizes.items() <= annotations_of(replicaset).items()
        if before == size and (up_to_date or not note):
            return False

        def resized(live: Json) -> Json:
            annotations = annotations_of(live) | sizes
            metadata = live["metadata"] | {"annotations": annotations}
            return live | {"metadata": metadata, "spec": live["spec"] | {"replicas": size}}

        rollout.replace(self._registry.patch(self._kind, key_of(replicaset), resized))
        if before == size:
            return False
        way, name = "up" if before < size else "down", replicaset["metadata"]["name"]
        text = f"Scaled {way} replica set {name} from {before} to {size}"
        self._recorder.normal(rollout.deployment, "ScalingReplicaSet", text)
        return True

    def clean_up(self, rollout: Rollout) -> None:
        """Delete old ReplicaSets beyond ``revisionHistoryLimit``, the oldest revisions first."""
        limit = rollout.deployment["spec"].get("revisionHistoryLimit", 10)
        alive = [one for one in rollout.old if not is_deleting(one)]
        if limit == FOREVER or len(alive) <= limit:
            return
        for one in sorted(alive, key=revision_of)[: len(alive) - limit]:
            status = one.get("status") or {}
            seen = status.get("observedGeneration", 0) >= one["metadata"].get("generation", 0)
            if not status.get("replicas") and not replicas_of(one) and seen:
                self._registry.delete(self._kind, key_of(one))

    def _body(self, rollout: Rollout) -> Json:
        deployment = rollout.deployment
        spec, template = deployment["spec"], deployment["spec"].get("template") or {}
        hashed = {POD_TEMPLATE_HASH: _hash(deployment)}
        labels = labels_of(template) | hashed
        selector = spec.get("selector") or {}
        pairs = (selector.get("matchLabels") or {}) | hashed
        metadata = (template.get("metadata") or {}) | {"labels": labels}
        annotations = _annotations(deployment, {}, next_revision(rollout)) | _sizes(deployment)
        body: Json = {
            "metadata": {
                "name": name_of_new(deployment),
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [reference_to(deployment)],
            },
            "spec": {
                "replicas": size_of_new(rollout),
                "selector": selector | {"matchLabels": pairs},
                "template": template | {"metadata": metadata},
            },
        }
        if spec.get("minReadySeconds"):
            body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        return body


def _hash(deployment: Json) -> str:
    collisions = (deployment.get("status") or {}).get("collisionCount")
    return hash_of(deployment["spec"].get("template") or {}, collisions)


def name_of_new(deployment: Json) -> str:
    """The name of the ReplicaSet of its present template."""
    ending = f"-{_hash(deployment)}"
    name: str = deployment["metadata"]["name"]
    return name[: _NAME_MAX - len(ending)] + ending


def next_revision(rollout: Rollout) -> int:
    """One more than the highest of the old ReplicaSets."""
    return max(map(revision_of, rollout.old), default=0) + 1


def _sizes(deployment: Json) -> dict[str, str]:
    desired = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + surge_of(deployment))}


def _annotations(deployment: Json, present: dict[str, str], revision: int) -> dict[str, str]:
    """What the present ReplicaSet is to be annotated with."""
    copied = {key: text for key, text in annotations_of(deployment).items() if key not in _OWN}
    annotations = present | copied
    before = present.get(REVISION, "")
    if before and not before.isdecimal():
        return annotations
    if int(before or 0) < revision:
        annotations[REVISION] = str(revision)
        if before:
            history = _with_earlier(present.get(REVISION_HISTORY, ""), before)
            if history is not None:
                annotations[REVISION_HISTORY] = history
    return annotations


def _with_earlier(history: str, revision: str) -> str | None:
    """The list with one more revision, without the oldest if it gets too long."""
    earlier = [one for one in history.split(",") if one]
    while earlier and len(",".join([*earlier, revision])) > _HISTORY_MAX:
        del earlier[0]
    return ",".join([*earlier, revision])
