"""Counts the pods of dispatched gangs that wait for a node for long, and says what each waited for.

What no dispatcher can know is counted apart, by evidence: a pod in the place of one whose node went
while it ran, and a pod whose node went between the dispatch and the binding. All others are faults.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mcad.kube.clock import Clock
from mcad.sim.objects.requests import amounts
from mcad.sim.store import Change, Store
from tests.autoscaler.dispatches import (
    NODES,
    PODS,
    Attempt,
    Dispatches,
    attempt_of,
    has_ended,
)
from tests.autoscaler.standin import DELETED

Json = dict[str, Any]
LATE_S = 5.0


class Cause(Enum):
    """Why a pod waits."""

    REPLACES = "takes the place of a pod whose node went"
    ROBBED = "its node went between the dispatch and the binding"
    OURS = "no node went"


@dataclass(frozen=True, slots=True)
class Late:
    """A pod that had no node for more than ``LATE_S``; ``nodes`` are those that went."""

    pod: str
    waited_s: float
    cause: Cause
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        nodes = f" ({', '.join(self.nodes)})" if self.nodes else ""
        return f"{self.pod} waited for {self.waited_s:.0f} s: {self.cause.value}{nodes}"


class Waits:
    """The pods of all attempts of a world, by uid."""

    def __init__(self, store: Store, clock: Clock, dispatches: Dispatches) -> None:
        self._clock, self._dispatches = clock, dispatches
        self._since_s: dict[str, float] = {}
        self._replaces: set[str] = set()
        self._nodes: dict[str, dict[str, Attempt]] = {}  # by node: the pods that run there
        self._bereft: dict[Attempt, list[str]] = {}  # the nodes of pods that were lost with them
        self._gone: dict[str, tuple[float, Json]] = {}  # nodes that take no more pods: since when
        self._excused: Counter[tuple[Attempt, Cause]] = Counter()
        self.pods: set[str] = set()
        self.used: set[str] = set()  # names of the nodes that had a pod
        self.late: list[Late] = []
        store.listen(PODS, self._heard)
        store.listen(NODES, self._said)

    def of(self, cause: Cause) -> list[Late]:
        """The late pods with this cause."""
        return [one for one in self.late if one.cause is cause]

    def _said(self, change: Change) -> None:
        """Note the nodes that go, and the pods that go with them."""
        node, name = change.obj, change.key[1]
        taints = (node.get("spec") or {}).get("taints") or ()
        if change.type == "DELETED":
            for attempt in self._nodes.pop(name, {}).values():
                self._bereft.setdefault(attempt, []).append(name)
        if change.type == "DELETED" or any(one["key"] == DELETED for one in taints):
            self._gone.setdefault(name, (self._clock.monotonic(), node))

    def _heard(self, change: Change) -> None:
        pod, uid = change.obj, change.obj["metadata"]["uid"]
        attempt = attempt_of(pod)
        if attempt is None:
            return
        self.pods.add(uid)
        node = pod["spec"].get("nodeName", "")
        if change.type == "ADDED":
            self._since_s[uid] = self._clock.monotonic()
            if self._dispatches.is_replacement(pod):
                self._replaces.add(uid)
        elif node or change.type == "DELETED":
            self._judge(change.key[1], uid, attempt)
        if node and change.type != "DELETED" and not has_ended(pod):
            self.used.add(node)
            self._nodes.setdefault(node, {})[uid] = attempt
        else:
            self._nodes.get(node, {}).pop(uid, None)

    def _judge(self, pod: str, uid: str, attempt: Attempt) -> None:
        now_s = self._clock.monotonic()
        since_s = self._since_s.pop(uid, now_s)
        if now_s - since_s > LATE_S:
            cause, nodes = self._cause(uid, attempt, since_s + LATE_S)
            self._excused[attempt, cause] += 1
            self.late.append(Late(pod, now_s - since_s, cause, tuple(nodes)))

    def _cause(self, uid: str, attempt: Attempt, late_s: float) -> tuple[Cause, list[str]]:
        """No more pods are excused than were lost, and than the nodes that went before the pod was
        late had room for."""
        if uid in self._replaces:
            bereft = self._bereft.get(attempt, [])
            if self._excused[attempt, Cause.REPLACES] < len(bereft):
                return Cause.REPLACES, sorted(set(bereft))
            return Cause.OURS, []
        there = [one["metadata"]["name"] for one in self._dispatches.nodes.get(attempt, ())]
        gone = [name for name in there if self._gone.get(name, (late_s, {}))[0] < late_s]
        if self._excused[attempt, Cause.ROBBED] < sum(_cpus(self._gone[one][1]) for one in gone):
            return Cause.ROBBED, gone
        return Cause.OURS, []


def _cpus(node: Json) -> int:
    """The whole CPUs of a node: a pod of the stories takes one."""
    return int(amounts(node["status"]["allocatable"])["cpu"] // 1000)
