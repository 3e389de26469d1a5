"""The scheduler: one pod at a time, the highest priority first, as kube-scheduler's defaults do.

It has the constraints that the dispatcher counts: those of one node. Differences from the real one:

- Equal pods (same request, placement and priority) are one *line*: if its first cannot be placed,
  the rest gets the same verdict without a try. A retry that fails updates the first only.
- A pod is retried at once when something changed that could help it, without the back-off of 1 to
  10 s and without the flush every five minutes; its place in the queue stays that of its arrival.
- All nodes are scored, where the real one stops at half of them in clusters of more than 100.
- Pods of lower priority are preempted (preemption.py); the room that they leave is not kept for the
  preemptor, which only comes first where it is tried again by its priority.
- A pod that requires something about pods elsewhere (pod affinity, domains wider than a node,
  topology spread) waits, and its message says so; preferences about other pods, volumes, images,
  resource claims, pod groups and extenders are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.events import Recorder
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.scheduling import preemption
from mcad.sim.scheduling.deciding import Decider
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.lines import Line, Lines
from mcad.sim.scheduling.shapes import Labels, Shape, Shapes
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds
from mcad.sim.writes import Write

NAME = "default-scheduler"
_BINDING = Kind("", "v1", "pods/binding", "Binding")  # what conflicts are worded with
_TURN = ("", "")
_FINISHED = ("Succeeded", "Failed")
_NO_LABELS: Labels = {}


class Scheduler(Controller):
    """Binds pods to nodes."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._pod_kind = registry.kind("v1", "Pod")
        self._recorder = Recorder(registry, NAME)
        self._shapes = Shapes()
        self._arrivals = 0
        self._reset()

    def _reset(self) -> None:
        self.fleet = Fleet()
        self.lines = Lines()
        self.decider = Decider(self.fleet, self.registry.rng)
        self._freed: dict[str, None] = {}  # nodes on which something changed for the better

    def start(self) -> None:
        """Look at nodes and pods; nothing is remembered from before."""
        self._reset()
        self.watch(self.registry.kind("v1", "Node"), self._on_node)
        self.watch(self._pod_kind, self._on_pod)

    # -- what happens --------------------------------------------------------------------------

    def _on_node(self, change: Change) -> None:
        name = change.key[1]
        if change.type == "DELETED":
            self.fleet.remove_node(name)
        elif self.fleet.set_node(change.obj) is not None:
            self._free(name)

    def _on_pod(self, change: Change) -> None:
        pod = change.obj
        uid = pod["metadata"]["uid"]
        spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
        gone = change.type == "DELETED" or phase in _FINISHED
        bound = self.fleet.bound.get(uid)
        if bound is not None:
            self._on_bound(bound, pod, is_gone=gone)
        elif gone or spec.get("nodeName"):
            self.lines.remove(uid)
            if not gone:  # another client bound it, or it came with a node
                self.fleet.bind(self._info(pod), spec["nodeName"])
        elif _is_ours(pod):
            self._arrive(uid, pod)
        else:
            self.lines.remove(uid)

    def _on_bound(self, bound: PodInfo, pod: Json, *, is_gone: bool) -> None:
        labels = pod["metadata"].get("labels") or _NO_LABELS
        bound.is_leaving = "deletionTimestamp" in pod["metadata"]
        if is_gone:
            self.fleet.release(bound.uid)
            self._free(bound.node)
        elif labels != bound.labels:
            self.fleet.relabel(bound, labels)
            self._free(bound.node)

    def _free(self, node: str) -> None:
        """Waiting pods may fit there now."""
        self._freed[node] = None
        self.enqueue(_TURN)

    def _arrive(self, uid: str, pod: Json) -> None:
        shape = self._shapes.of(pod)
        known = self.lines.pods.get(uid)
        if known is not None:
            known.labels = pod["metadata"].get("labels") or _NO_LABELS
            if known.shape is shape:
                return  # a status, most often our own
            self.lines.remove(uid)
        self.lines.add(self._info(pod, shape))
        self.enqueue(_TURN)

    def _info(self, pod: Json, shape: Shape | None = None) -> PodInfo:
        metadata = pod["metadata"]
        self._arrivals += 1
        return PodInfo(
            (metadata["namespace"], metadata["name"]),
            metadata["uid"],
            metadata.get("labels") or _NO_LABELS,
            shape or self._shapes.of(pod),
            self._arrivals,
        )

    # -- the queue -----------------------------------------------------------------------------

    def reconcile(self, _key: Key) -> None:
        """Requeue the lines that may fit now, then schedule one pod."""
        if self._freed:
            self._wake()
        found = self.lines.pop()
        if found is not None:
            line, pod = found
            if line.message is None:
                self._try(line, pod)
            else:
                self._tell(pod, line.message)
            self.lines.push(line)
        if self.lines.is_due or self._freed:
            self.enqueue(_TURN)

    def _wake(self) -> None:
        nodes = [self.fleet.nodes[name] for name in self._freed if name in self.fleet.nodes]
        self._freed = {}
        self.lines.wake(lambda shape: self.decider.might_fit(shape, nodes))

    def _try(self, line: Line, pod: PodInfo) -> None:
        node = self.decider.choose(pod)
        if node is not None:
            self._bind(pod, node)
            return
        line.message = self.decider.why_none(pod.shape)
        self._tell(pod, line.message)
        if pod.shape.priority > min(self.fleet.priorities, default=0):
            self._preempt(pod)

    def _preempt(self, pod: PodInfo) -> None:
        """Let pods of lower priority go, if that makes room for this one."""
        live = self.registry.find(self._pod_kind, pod.key)
        if live is None or live["spec"].get("preemptionPolicy") == "Never":
            return
        nominated = (live.get("status") or {}).get("nominatedNodeName") or ""
        found = preemption.find(self.decider, pod, nominated)
        if found is None:
            return
        for victim in found.victims:
            self._evict(victim, pod, found.node.name)
        chosen = {"nominatedNodeName": found.node.name}
        self._write_status(pod.key, lambda one: (one.get("status") or {}) | chosen)

    def _evict(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None:
        """Say why a pod has to go, and delete it."""
        why = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{NAME}: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "lastTransitionTime": seconds(self.registry.clock.now_us()),
        }

        def change(pod: Json) -> Json:
            status = pod.get("status") or {}
            others = [c for c in status.get("conditions") or () if c["type"] != why["type"]]
            return status | {"conditions": [*others, why]}

        if (found := self._write_status(victim.key, change)) is not None:
            self.registry.delete(self._pod_kind, victim.key, Deletion(uid=victim.uid))
            text = f"Preempted by pod {preemptor.uid} on node {node}"
            self._recorder.normal(found, "Preempted", text)

    def _write_status(self, key: Key, change: Callable[[Json], Json]) -> Json | None:
        """The pod with the status that ``change`` makes of it; None if it is gone."""
        write = Write(trusted=True, subresource="status")
        try:
            return self.registry.patch(
                self._pod_kind, key, lambda pod: pod | {"status": change(pod)}, write
            )
        except Failure:
            return None

    def _bind(self, pod: PodInfo, node: NodeInfo) -> None:
        self.lines.remove(pod.uid)
        self.fleet.bind(pod, node.name)  # before the write, whose echo must find it there
        try:
            bound = _bound(self.registry, pod.key, node.name)
        except Failure:  # deleted, or bound by hand, in this very moment
            self.fleet.release(pod.uid)
            found = self.registry.find(self._pod_kind, pod.key)
            if found is not None and _is_ours(found):
                raise
            return
        text = f"Successfully assigned {pod.key[0]}/{pod.key[1]} to {node.name}"
        self._recorder.normal(bound, "Scheduled", text)

    # -- what is said --------------------------------------------------------------------------

    def _tell(self, pod: PodInfo, message: str) -> None:
        if pod.told == message:
            return
        pod.told = message
        at = seconds(self.registry.clock.now_us())

        def change(pod: Json) -> Json:
            status = pod.get("status") or {}
            before = {one["type"]: one for one in status.get("conditions") or ()}
            since = before.pop("PodScheduled", {}).get("lastTransitionTime", at)
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
                "lastProbeTime": None,
                "lastTransitionTime": since,
                "observedGeneration": pod["metadata"].get("generation", 0),
            }
            return status | {"conditions": [*before.values(), condition]}

        found = self._write_status(pod.key, change)
        if found is not None:
            self._recorder.warning(found, "FailedScheduling", message)


def _is_ours(pod: Json) -> bool:
    spec = pod.get("spec") or {}
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", NAME) == NAME
        and "deletionTimestamp" not in pod["metadata"]
    )


def _bound(registry: Registry, key: Key, node: str) -> Json:
    """The pod on its node; raises Failure 404, or 409 if it has a node or is being deleted."""
    pods = registry.kind("v1", "Pod")
    at = seconds(registry.clock.now_us())

    def change(pod: Json) -> Json:
        present = pod["spec"].get("nodeName")
        if present:
            message = f'pod {key[1]} is already assigned to node "{present}"'
            raise failures.conflict(_BINDING, key[1], message)
        if pod["metadata"].get("deletionTimestamp"):
            message = f"pod {key[1]} is being deleted, cannot be assigned to a host"
            raise failures.conflict(_BINDING, key[1], message)
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": at,
        }
        status = pod.get("status") or {}
        others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
        return pod | {
            "spec": pod["spec"] | {"nodeName": node},
            "status": status | {"conditions": [*others, scheduled]},
        }

    return registry.patch(pods, key, change, Write(subresource="binding", trusted=True))
