"""What is wrong in the cluster for a while, or all the time: lags, old lists, refusals.

Each is one part that is drawn by itself, and that a shrunk run can do without. Times are
seconds of the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from mcad.kube.kinds import APPWRAPPERS, CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.resource import Resource
from mcad.sim import failures
from mcad.sim.cluster import Cluster
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.moods import Moody

Json = dict[str, Any]
JOBS = Resource("batch", "v1", "jobs", "Job")
STREAMS = (APPWRAPPERS, NODES, PODS, CONFIG_MAPS, DEPLOYMENTS, JOBS, QUOTA_SUBTREES)
"""The kinds whose watches may lag; their changes date the versions of the store."""


MAKING_PODS = ("pods", "replicasets")
RETRIED_S = 120.0  # controllers of the cluster try again at least that often (base.py), and more


@dataclass(frozen=True, slots=True)
class SlowController:
    """A controller of the cluster looks at everything so much later."""

    name: str
    lag_s: float


@dataclass(frozen=True, slots=True)
class SlowStream:
    """The watches of a kind tell everything so much later: all the time, or in a span of time."""

    plural: str
    lag_s: float
    from_s: float = 0.0
    until_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class StaleList:
    """After a fail-over the first list of a kind is that of so many seconds before."""

    plural: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Undiscovered:
    """In this span of time discovery has no answer for a group."""

    group: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class Denied:
    """In this span of time no more than so many objects of a kind may be made in a namespace:
    beyond that a ResourceQuota refuses them, or, with no limit, a webhook refuses all."""

    plural: str
    from_s: float
    until_s: float
    limit: int | None = None

    def check(self, registry: Registry, kind: Kind, obj: Json) -> None:
        """Raise Failure where it refuses this object."""
        now_s, meta = registry.clock.monotonic(), obj["metadata"]
        if kind.plural != self.plural or not self.from_s <= now_s < self.until_s:
            return
        if self.limit is None:
            words = 'admission webhook "policy.example.com" denied the request: not now'
            raise Failure(403, "Forbidden", words)
        used = len(registry.list_all(kind, meta["namespace"]))
        if used >= self.limit:
            name = f"count/{self.plural}"
            words = f"{name}=1, used: {name}={used}, limited: {name}={self.limit}"
            raise failures.forbidden(
                kind, meta["name"], f"exceeded quota: mine, requested: {words}"
            )


@dataclass(frozen=True, slots=True)
class Terminated:
    """The namespace of guests is deleted just before this write, of those about guests."""

    at_write: int


Part = SlowController | SlowStream | StaleList | Undiscovered | Denied | Terminated | Moody
_P = TypeVar("_P", bound=Part)


@dataclass(slots=True)
class Weather:
    """What is wrong in one run; ``occurred`` counts what came to bear."""

    parts: tuple[Part, ...] = ()
    occurred: Counter[str] = field(default_factory=Counter)
    _times: list[float] = field(default_factory=list)
    _versions: list[int] = field(default_factory=list)  # of the store, at these times

    @property
    def behind_s(self) -> float:
        """By so much what is known may be older than it is in fair weather."""
        return max((one.lag_s for one in self._of(SlowStream)), default=0.0)

    @property
    def was_stale(self) -> bool:
        """Whether a first list was of the past. The API promises that none is, so what is decided
        until the watch tells the truth may be wrong; what holds is that it is put right."""
        return bool(self.occurred["stale first list"])

    @property
    def hides_pods_s(self) -> float:
        """For so long a pod that is due may be missing, or be there unseen."""
        denied = (one for one in self._of(Denied) if one.plural in MAKING_PODS)
        missing = (one.until_s - one.from_s + RETRIED_S for one in denied)
        unseen = (one.lag_s for one in self._of(SlowStream) if one.plural in MAKING_PODS)
        return max((*missing, *unseen), default=0.0)

    def begin(self, cluster: Cluster) -> None:
        """It breaks over this cluster."""
        store, clock = cluster.registry.store, cluster.registry.clock

        def date(change: Change) -> None:
            self._times.append(clock.monotonic())
            self._versions.append(change.version)

        for kind in STREAMS:
            store.listen((kind.group, kind.plural), date)
        for slow in self._of(SlowController):
            cluster.controllers[slow.name].lag_s = slow.lag_s
            self.occurred["slow controller"] += 1
        for moody in self._of(Moody):
            moody.begin(cluster)
            self.occurred["pods start late"] += 1
        cluster.registry.webhooks.append(partial(self._admit, cluster.registry))

    def _admit(self, registry: Registry, kind: Kind, obj: Json) -> None:
        for one in self._of(Denied):
            try:
                one.check(registry, kind, obj)
            except Failure:
                by = "a webhook" if one.limit is None else "a ResourceQuota"
                what = "a pod" if kind.plural == PODS.plural else "an item"
                self.occurred[f"{by} denies {what}"] += 1
                raise

    def denies(self, then_s: float, now_s: float) -> bool:
        """Whether something was refused in this time, or is only just tried again."""
        return any(
            one.from_s <= now_s and then_s <= one.until_s + RETRIED_S for one in self._of(Denied)
        )

    def version_at(self, at_s: float) -> int:
        """The version of the store at that time."""
        found = bisect_right(self._times, at_s)
        return self._versions[found - 1] if found else 1

    def ends_namespace(self, number: int) -> bool:
        """Whether the namespace of guests is deleted at this write about guests."""
        return any(one.at_write == number for one in self._of(Terminated))

    def lag_of(self, plural: str, now_s: float) -> float:
        """How much later its watches tell what happens now."""
        return max(
            (
                one.lag_s
                for one in self._of(SlowStream)
                if one.plural == plural and one.from_s <= now_s < one.until_s
            ),
            default=0.0,
        )

    def old_version(self, plural: str, now_s: float) -> int | None:
        """That of a first list after a fail-over; None if it is the present one."""
        ages = [one.age_s for one in self._of(StaleList) if one.plural == plural]
        return self.version_at(now_s - max(ages)) if ages else None

    def undiscovered(self, now_s: float) -> set[str]:
        """The groups for which discovery has no answer now."""
        found = self._of(Undiscovered)
        return {one.group for one in found if one.from_s <= now_s < one.until_s}

    def _of(self, kind: type[_P]) -> Iterable[_P]:
        return (one for one in self.parts if isinstance(one, kind))
