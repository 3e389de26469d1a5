"""The arithmetic of a Deployment's rollout: a picture of it, and how many pods it may have.

After ``pkg/controller/deployment/util/deployment_util.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.kube.types import Json
from mcad.sim.controllers.numbers import scaled
from mcad.sim.controllers.pods import POD_TEMPLATE_HASH, annotations_of, labels_of

REVISION = "deployment.kubernetes.io/revision"


@dataclass(slots=True)
class Rollout:
    """A Deployment and its ReplicaSets; ``new`` is the one with the present template."""

    deployment: Json
    new: Json | None = None
    old: list[Json] = field(default_factory=list)  # the oldest first

    @property
    def sets(self) -> list[Json]:
        """All of them, the new one last."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def desired(self) -> int:
        return replicas_of(self.deployment)


def picture(deployment: Json, replicasets: list[Json]) -> Rollout:
    """Which of the ReplicaSets is the new one, the oldest if several are."""
    template = _without_hash(deployment["spec"].get("template") or {})
    sets = sorted(
        replicasets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"])
    )
    new = next(
        (one for one in sets if _without_hash(one["spec"].get("template") or {}) == template), None
    )
    return Rollout(deployment, new, [one for one in sets if one is not new])


def _without_hash(template: Json) -> Json:
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    labels = {key: value for key, value in labels_of(template).items() if key != POD_TEMPLATE_HASH}
    metadata.pop("labels", None)
    return template | {"metadata": metadata | ({"labels": labels} if labels else {})}


def replicas_of(obj: Json) -> int:
    """``spec.replicas`` of a Deployment or a ReplicaSet."""
    replicas: int = obj["spec"].get("replicas", 1)
    return replicas


def counted(replicasets: list[Json], name: str) -> int:
    """A number of ``status`` over all of them."""
    return sum((one.get("status") or {}).get(name, 0) for one in replicasets)


def revision_of(obj: Json) -> int:
    """Its annotated revision; 0 without, or if it is no number."""
    text = annotations_of(obj).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def is_rolling(deployment: Json) -> bool:
    """Whether its strategy is RollingUpdate, which is the default."""
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def fences(deployment: Json) -> tuple[int, int]:
    """How many pods more than desired there may be, and how many fewer available."""
    strategy = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    desired = replicas_of(deployment)
    if not is_rolling(deployment) or not desired:
        return 0, 0
    surge = scaled(strategy.get("maxSurge", "25%"), desired, up=True)
    unavailable = scaled(strategy.get("maxUnavailable", "25%"), desired, up=False)
    return surge, min(unavailable if surge or unavailable else 1, desired)


def next_sizes(rollout: Rollout) -> list[tuple[Json, int]]:
    """ReplicaSets that are to have another size now; what that causes leads to the next step."""
    new, desired = rollout.new, rollout.desired
    if rollout.deployment["spec"].get("paused"):
        only = [one for one in rollout.sets if replicas_of(one)] or rollout.sets[-1:]
        return [(only[0], desired)] if len(only) == 1 and replicas_of(only[0]) != desired else []
    if not is_rolling(rollout.deployment):
        running = [(one, 0) for one in rollout.old if replicas_of(one)]
        return running or ([(new, desired)] if new and replicas_of(new) != desired else [])
    size = size_of_new(rollout)
    if new is not None and replicas_of(new) != size:
        return [(new, size)]
    return _deletable_old(rollout)


def size_of_new(rollout: Rollout) -> int:
    """How large the new ReplicaSet may be now."""
    desired = rollout.desired
    if not is_rolling(rollout.deployment):
        return desired
    size = replicas_of(rollout.new) if rollout.new is not None else 0
    room = desired + fences(rollout.deployment)[0] - sum(map(replicas_of, rollout.sets))
    return min(size + max(room, 0), desired)


def _deletable_old(rollout: Rollout) -> list[tuple[Json, int]]:
    """Sizes to which the old ReplicaSets may shrink now; unhealthy pods go first."""
    new, minimum = rollout.new, rollout.desired - fences(rollout.deployment)[1]
    old = [one for one in rollout.old if replicas_of(one)]
    missing = replicas_of(new) - counted([new], "availableReplicas") if new else 0
    room = sum(map(replicas_of, rollout.sets)) - minimum - missing
    if room <= 0:
        return []
    sizes = [replicas_of(one) for one in old]
    for index, one in enumerate(old):
        gone = min(room, max(sizes[index] - counted([one], "availableReplicas"), 0))
        sizes[index] -= gone
        room -= gone
    surplus = counted(rollout.sets, "availableReplicas") - minimum
    for index, size in enumerate(sizes):
        gone = max(min(size, surplus), 0)
        sizes[index] -= gone
        surplus -= gone
    pairs = zip(old, sizes, strict=True)
    return [(one, size) for one, size in pairs if size != replicas_of(one)]
