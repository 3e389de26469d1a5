"""The arithmetic of a Deployment's rollout: a picture of it, and how many pods it may have.

After ``pkg/controller/deployment/util/deployment_util.go``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from mcad.sim.controllers.numbers import scaled
from mcad.sim.controllers.pods import POD_TEMPLATE_HASH, annotations_of, labels_of
from mcad.sim.times import parse_us

Json = dict[str, Any]

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"

FOREVER = (1 << 31) - 1  # the number that means "no limit" in a Deployment


@dataclass(slots=True)
class Rollout:
    """A Deployment and its ReplicaSets; ``new`` is the one with the present template."""

    deployment: Json
    new: Json | None = None
    old: list[Json] = field(default_factory=list)

    @property
    def sets(self) -> list[Json]:
        """All of them, the new one last."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def active(self) -> list[Json]:
        """Those that should have pods."""
        return [one for one in self.sets if replicas_of(one)]

    @property
    def active_old(self) -> list[Json]:
        """The old ones that should have pods, the oldest first."""
        return by_age([one for one in self.old if replicas_of(one)])

    @property
    def desired(self) -> int:
        """``spec.replicas`` of the Deployment."""
        return replicas_of(self.deployment)

    def replace(self, replicaset: Json) -> None:
        """Take in a newer state of one of the ReplicaSets."""
        uid = replicaset["metadata"]["uid"]
        if self.new is not None and self.new["metadata"]["uid"] == uid:
            self.new = replicaset
        self.old = [replicaset if one["metadata"]["uid"] == uid else one for one in self.old]


def picture(deployment: Json, replicasets: list[Json]) -> Rollout:
    """Which of the ReplicaSets is the new one, the oldest if several are."""
    template = _without_hash(deployment["spec"].get("template") or {})
    sets = by_age(replicasets)
    new = next(
        (one for one in sets if _without_hash(one["spec"].get("template") or {}) == template), None
    )
    return Rollout(deployment, new, [one for one in sets if one is not new])


def _without_hash(template: Json) -> Json:
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    labels = {key: value for key, value in labels_of(template).items() if key != POD_TEMPLATE_HASH}
    metadata.pop("labels", None)
    return template | {"metadata": metadata | ({"labels": labels} if labels else {})}


def by_age(replicasets: list[Json]) -> list[Json]:
    """The oldest first."""
    return sorted(replicasets, key=lambda one: (_created_us(one), one["metadata"]["name"]))


def by_size(replicasets: list[Json], *, newer_first: bool) -> list[Json]:
    """The largest first; among equals the newer or the older."""
    sign = -1 if newer_first else 1
    return sorted(
        replicasets,
        key=lambda one: (-replicas_of(one), sign * _created_us(one), one["metadata"]["name"]),
    )


def _created_us(obj: Json) -> int:
    return parse_us(obj["metadata"]["creationTimestamp"])


def replicas_of(obj: Json) -> int:
    """``spec.replicas`` of a Deployment or a ReplicaSet."""
    replicas: int = obj["spec"].get("replicas", 1)
    return replicas


def counted(replicasets: list[Json], name: str) -> int:
    """A number of ``status`` over all of them."""
    return sum((one.get("status") or {}).get(name, 0) for one in replicasets)


def revision_of(obj: Json) -> int:
    """Its annotated revision; 0 without, or if somebody has spoilt it."""
    text = annotations_of(obj).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def is_rolling(deployment: Json) -> bool:
    """Whether its strategy is RollingUpdate, which is the default."""
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def surge_of(deployment: Json) -> int:
    """How many pods more than desired there may be."""
    return _fences(deployment)[0] if is_rolling(deployment) else 0


def unavailable_of(deployment: Json) -> int:
    """How many pods fewer than desired may be available."""
    desired = replicas_of(deployment)
    if not is_rolling(deployment) or not desired:
        return 0
    return min(_fences(deployment)[1], desired)


def _fences(deployment: Json) -> tuple[int, int]:
    strategy = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    desired = replicas_of(deployment)
    surge = scaled(strategy.get("maxSurge", "25%"), desired, up=True)
    unavailable = scaled(strategy.get("maxUnavailable", "25%"), desired, up=False)
    return surge, unavailable if surge or unavailable else 1


def size_of_new(rollout: Rollout) -> int:
    """How large the new ReplicaSet may be now."""
    desired = rollout.desired
    if not is_rolling(rollout.deployment):
        return desired
    size = replicas_of(rollout.new) if rollout.new is not None else 0
    room = desired + surge_of(rollout.deployment) - sum(map(replicas_of, rollout.sets))
    return size + min(room, desired - size) if room > 0 else size


def proportional_sizes(rollout: Rollout) -> list[tuple[Json, int]]:
    """New sizes of all active ReplicaSets when the Deployment is scaled in mid-rollout."""
    deployment, desired = rollout.deployment, rollout.desired
    allowed = desired + surge_of(deployment) if desired else 0
    to_add = allowed - sum(map(replicas_of, rollout.active))
    sets = by_size(rollout.active, newer_first=to_add > 0) if to_add else rollout.active
    sizes, added = [], 0
    for one in sets:
        share = _share(one, deployment, to_add, added) if to_add else 0
        sizes.append(replicas_of(one) + share)
        added += share
    if to_add and sizes:
        sizes[0] = max(sizes[0] + to_add - added, 0)
    return list(zip(sets, sizes, strict=True))


def _share(replicaset: Json, deployment: Json, to_add: int, added: int) -> int:
    if to_add == added:
        return 0
    size, desired, left = replicas_of(replicaset), replicas_of(deployment), to_add - added
    if not desired:
        return -size
    noted = annotations_of(replicaset).get(MAX_REPLICAS, "")
    before = int(noted) if noted.isdecimal() else 0
    before = before or (deployment.get("status") or {}).get("replicas", 0)
    if not before:
        return 0
    exact = size * (desired + surge_of(deployment)) / before
    fraction = math.floor(exact + 0.5) - size
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def is_saturated(rollout: Rollout) -> bool:
    """Whether the new ReplicaSet has all the pods that are wanted, and they are available."""
    new, desired = rollout.new, rollout.desired
    return (
        new is not None
        and annotations_of(new).get(DESIRED_REPLICAS) == str(desired)
        and replicas_of(new) == desired
        and counted([new], "availableReplicas") == desired
    )


def deletable_old(rollout: Rollout) -> list[tuple[Json, int]]:
    """Sizes to which the old ReplicaSets may shrink now; unhealthy pods go first."""
    deployment, new = rollout.deployment, rollout.new
    minimum = rollout.desired - unavailable_of(deployment)
    new_unavailable = replicas_of(new) - counted([new], "availableReplicas") if new else 0
    room = sum(map(replicas_of, rollout.sets)) - minimum - new_unavailable
    if room <= 0:
        return []
    sizes = {one["metadata"]["uid"]: replicas_of(one) for one in rollout.active_old}
    for one in rollout.active_old:
        unhealthy = max(replicas_of(one) - counted([one], "availableReplicas"), 0)
        gone = min(room, unhealthy)
        sizes[one["metadata"]["uid"]] -= gone
        room -= gone
    surplus = counted(rollout.sets, "availableReplicas") - minimum
    for one in rollout.active_old:
        gone = max(min(sizes[one["metadata"]["uid"]], surplus), 0)
        sizes[one["metadata"]["uid"]] -= gone
        surplus -= gone
    return [
        (one, sizes[one["metadata"]["uid"]])
        for one in rollout.active_old
        if sizes[one["metadata"]["uid"]] != replicas_of(one)
    ]
