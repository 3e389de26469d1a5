"""What the API server stored, revision by revision, and the lives of pods and attempts in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcad.api import labels
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.histories.objects import SET

Json = dict[str, Any]
APPWRAPPERS, PODS, NODES = (labels.GROUP, "appwrappers"), ("", "pods"), ("", "nodes")
NEVER = float("inf")
RUNNING = ("dispatched",)
ENDING = ("undeploying", "keeping")


@dataclass(slots=True)
class PodLife:
    """One pod of an attempt; times are seconds of the history, ``NEVER`` if it did not happen."""

    name: str
    uid: str
    set: str
    kind: str  # of its controller
    appwrapper: str  # uid
    attempt: int
    created_s: float
    bound_s: float = NEVER
    ungated_s: float = NEVER
    started_s: float = NEVER
    ready_s: list[float] = field(default_factory=list)  # when it became ready, unready, ready...
    ended_s: float = NEVER
    deleted_s: float = NEVER  # its deletion began
    gone_s: float = NEVER
    phase: str = "Pending"
    disruption: str = ""
    codes: tuple[int, ...] = ()
    refused_s: list[float] = field(default_factory=list)  # kube-scheduler found no node
    index: str = ""

    def lives(self, at_s: float) -> bool:
        """Whether it is there and has not ended."""
        return self.created_s <= at_s < min(self.gone_s, self.ended_s)

    def holds(self, at_s: float) -> bool:
        """Whether it has a node, or has succeeded."""
        has_succeeded = self.phase == "Succeeded" and self.ended_s <= at_s
        return self.bound_s <= at_s and (self.lives(at_s) or has_succeeded)

    def runs(self, at_s: float) -> bool:
        """Whether it is started, or has succeeded."""
        return self.holds(at_s) and self.started_s <= at_s


class Revision(NamedTuple):
    """A write, and when."""

    at_s: float
    change: Change


class End(NamedTuple):
    """The end of an attempt: its AppWrapper, its time, and what is recorded of it."""

    at_s: float
    uid: str
    attempt: int
    was: str  # its phase before
    obj: Json

    @property
    def record(self) -> Json:
        """``status.dispatch``."""
        found: Json = self.obj["status"]["dispatch"]
        return found

    @property
    def reason(self) -> str:
        """Why it ended."""
        return str(self.record.get("reason") or "")

    @property
    def message(self) -> str:
        """The same as a sentence."""
        return str(self.record.get("message") or "")


class Chronicle:
    """Records all writes from now on."""

    def __init__(self, registry: Registry) -> None:
        self._clock = registry.clock
        self.wrappers: list[Revision] = []
        self.objects: dict[tuple[str, str], list[Revision]] = {}  # by kind and name
        self.pods: dict[str, PodLife] = {}
        for kind in registry.kinds.all():
            storage = kind.storage
            if storage == APPWRAPPERS:
                if kind.version == "v1beta2":
                    registry.store.listen(storage, self._wrapper)
            elif storage == PODS:
                registry.store.listen(storage, self._pod)
            elif storage not in (("", "events"), ("coordination.k8s.io", "leases")):
                registry.store.listen(storage, self._object)

    @property
    def now_s(self) -> float:
        """Seconds of the history."""
        return self._clock.monotonic()

    def _wrapper(self, change: Change) -> None:
        self.wrappers.append(Revision(self.now_s, change))

    def _object(self, change: Change) -> None:
        key = change.obj["kind"], change.key[1]
        self.objects.setdefault(key, []).append(Revision(self.now_s, change))

    def _pod(self, change: Change) -> None:
        self._object(change)
        obj, uid = change.obj, change.obj["metadata"]["uid"]
        tags = obj["metadata"].get("labels") or {}
        if labels.APPWRAPPER_UID not in tags or SET not in tags:
            return
        life = self.pods.get(uid)
        if life is None:
            life = self.pods[uid] = _born(obj, tags, self.now_s)
        _follow(life, obj, self.now_s)
        if change.type == "DELETED":
            life.gone_s = self.now_s

    # -- questions -----------------------------------------------------------------------------

    def of_attempt(self, uid: str, attempt: int) -> list[PodLife]:
        """The pods of an attempt, the oldest first."""
        return [
            one for one in self.pods.values() if one.appwrapper == uid and one.attempt == attempt
        ]

    def ends(self) -> Iterator[End]:
        """Every attempt that ended, in order."""
        for at_s, change in self.wrappers:
            before, after = _record(change.previous), _record(change.obj)
            was, now = before.get("phase", ""), after.get("phase", "")
            if change.type == "MODIFIED" and now in ENDING and was not in ENDING:
                uid = change.obj["metadata"]["uid"]
                yield End(at_s, uid, after["attempt"], was, change.obj)

    def confirmed_s(self, uid: str, attempt: int) -> float:
        """When an attempt was confirmed."""
        for at_s, change in self.wrappers:
            record = _record(change.obj)
            is_it = change.obj["metadata"]["uid"] == uid and record.get("attempt") == attempt
            if is_it and record.get("phase") == "dispatched":
                return at_s
        return NEVER

    def at(self, kind: str, name: str, at_s: float) -> Json | None:
        """An object as it was last, also if it is gone since; None if it never was."""
        found = None
        for when_s, change in self.objects.get((kind, name), ()):
            if when_s <= at_s:
                found = change.obj
        return found


def _record(obj: Json | None) -> Json:
    return ((obj or {}).get("status") or {}).get("dispatch") or {}


def _born(obj: Json, tags: Json, now_s: float) -> PodLife:
    meta = obj["metadata"]
    owners = [one for one in meta.get("ownerReferences") or () if one.get("controller")]
    attempt = int(tags.get(labels.ATTEMPT) or 0)
    life = PodLife(
        meta["name"],
        meta["uid"],
        tags[SET],
        owners[0]["kind"] if owners else "",
        tags[labels.APPWRAPPER_UID],
        attempt,
        now_s,
    )
    life.index = (meta.get("annotations") or {}).get("batch.kubernetes.io/job-completion-index", "")
    return life


def _follow(life: PodLife, obj: Json, now_s: float) -> None:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    if not spec.get("schedulingGates"):
        life.ungated_s = min(life.ungated_s, now_s)
    if spec.get("nodeName"):
        life.bound_s = min(life.bound_s, now_s)
    phase = status.get("phase", "Pending")
    if phase in ("Running", "Succeeded", "Failed"):
        life.started_s = min(life.started_s, now_s)
    if phase in ("Succeeded", "Failed"):
        life.ended_s = min(life.ended_s, now_s)
    if life.phase not in ("Succeeded", "Failed"):
        life.phase = phase
    is_ready = conditions.get("Ready", {}).get("status") == "True"
    if is_ready != bool(len(life.ready_s) % 2):
        life.ready_s.append(now_s)
    if "deletionTimestamp" in obj["metadata"]:
        life.deleted_s = min(life.deleted_s, now_s)
    if conditions.get("DisruptionTarget", {}).get("status") == "True":
        life.disruption = conditions["DisruptionTarget"]["reason"]
    if conditions.get("PodScheduled", {}).get("reason") == "Unschedulable":
        life.refused_s.append(now_s)
    states = (one.get("state") or {} for one in status.get("containerStatuses") or ())
    codes = {(state.get("terminated") or {}).get("exitCode", 0) for state in states}
    life.codes = tuple(sorted(codes - {0}))
