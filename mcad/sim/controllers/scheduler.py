"""The scheduler: one pod at a time, the most important first, as kube-scheduler's defaults do.

What differs from the real one:

- Pods that are alike (same request, placement and priority) are one *line*: if its first cannot be
  placed, the rest is not tried but told the same. A retry that fails speaks to the first only.
- A pod is retried at once when something changed that could help it, without the back-off of 1 to
  10 s and without the flush every five minutes; its place in the queue stays that of its arrival.
- All nodes are scored, where the real one stops at half of them in clusters of more than 100.
- Volumes, images, resource claims, pod groups and extenders are not looked at.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.binding import bind
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.events import Recorder
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry
from mcad.sim.scheduling import preemption
from mcad.sim.scheduling.affinity import UNWELCOME
from mcad.sim.scheduling.around import Around
from mcad.sim.scheduling.deciding import Decider, Diagnosis
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.lines import Line, Lines
from mcad.sim.scheduling.shapes import Labels, Shape, Shapes
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds
from mcad.sim.writes import Write

Json = dict[str, Any]

NAME = "default-scheduler"
_TURN = ("", "")
_FINISHED = ("Succeeded", "Failed")
_NO_LABELS: Labels = {}


class Scheduler(Controller):
    """Binds pods to nodes."""

    def __init__(self, registry: Registry) -> None:
        """Nothing is bound before ``start``."""
        super().__init__(registry)
        self._pod_kind = registry.kind("v1", "Pod")
        self._recorder = Recorder(registry, NAME)
        self._shapes = Shapes()
        self._arrivals = 0
        self._reset()

    def _reset(self) -> None:
        self.fleet = Fleet()
        self.lines = Lines()
        self._around = Around(self.registry)
        self.decider = Decider(self.fleet, self._around, self.registry.rng)
        self._freed: dict[str, None] = {}  # nodes on which something changed for the better
        self._is_stirred = False  # pods moved, so those who look at other pods may be lucky

    def start(self) -> None:
        """Look at nodes, pods and services; nothing is remembered from before."""
        self._reset()
        self.watch(self.registry.kind("v1", "Service"), self._around.on_service)
        self.watch(self.registry.kind("v1", "Node"), self._on_node)
        self.watch(self._pod_kind, self._on_pod)

    # -- what happens --------------------------------------------------------------------------

    def _on_node(self, change: Change) -> None:
        name = change.key[1]
        if change.type == "DELETED":
            self.fleet.remove_node(name)
            self._is_stirred = True
        elif self.fleet.set_node(change.obj) is None:
            return
        else:
            self._freed[name] = None
        self.enqueue(_TURN)

    def _on_pod(self, change: Change) -> None:
        pod = change.obj
        uid = pod["metadata"]["uid"]
        spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
        gone = change.type == "DELETED" or phase in _FINISHED
        bound = self.fleet.bound.get(uid)
        if bound is not None:
            self._on_bound(bound, pod, is_gone=gone)
        elif gone or spec.get("nodeName"):
            self._leave(uid)
            if not gone:
                self._take(pod, spec["nodeName"])
        elif _is_ours(pod):
            self._arrive(uid, pod)
        else:
            self._leave(uid)

    def _on_bound(self, bound: PodInfo, pod: Json, *, is_gone: bool) -> None:
        if is_gone:
            self.fleet.release(bound.uid)
            self._freed[bound.node] = None
            self._stir()
            return
        metadata = pod["metadata"]
        labels = metadata.get("labels") or _NO_LABELS
        bound.started = (pod.get("status") or {}).get("startTime") or ""
        if labels != bound.labels:
            self.fleet.relabel(bound, labels)
            self._stir()
        if "deletionTimestamp" in metadata and not bound.terminating:
            bound.terminating = True
            self._stir()

    def _stir(self) -> None:
        if self.lines:
            self._is_stirred = True
            self.enqueue(_TURN)

    def _take(self, pod: Json, node: str) -> None:
        """A pod that somebody else bound, or that came with a node."""
        info = self._info(pod)
        info.terminating = "deletionTimestamp" in pod["metadata"]
        self.fleet.bind(info, node)
        self._stir()

    def _arrive(self, uid: str, pod: Json) -> None:
        shape = self._shapes.of(pod)
        known = self.lines.pods.get(uid)
        if known is not None:
            labels = pod["metadata"].get("labels") or _NO_LABELS
            if labels != known.labels:
                known.labels = labels
                self._stir()  # it may be welcome now where it was not
            if known.shape is shape:
                return  # a status, most often our own
            self._leave(uid)
        self.lines.add(self._info(pod, shape))
        self.enqueue(_TURN)

    def _info(self, pod: Json, shape: Shape | None = None) -> PodInfo:
        metadata = pod["metadata"]
        self._arrivals += 1
        controllers = (one for one in metadata.get("ownerReferences") or () if _controls(one))
        return PodInfo(
            (metadata["namespace"], metadata["name"]),
            metadata["uid"],
            metadata.get("labels") or _NO_LABELS,
            shape or self._shapes.of(pod),
            self._arrivals,
            (pod.get("status") or {}).get("startTime") or "",
            next(controllers, None),
        )

    def _leave(self, uid: str) -> None:
        pod = self.lines.remove(uid)
        if pod is not None:
            self._nominate(pod, "")

    # -- the queue -----------------------------------------------------------------------------

    def reconcile(self, _key: Key) -> None:
        """Wake who may be lucky now, then look at one pod."""
        if self._freed or self._is_stirred:
            self._wake()
        found = self.lines.pop()
        if found is not None:
            line, pod = found
            if line.message is None:
                self._try(line, pod)
            else:
                self._tell(pod, line.message)
            self.lines.push(line)
        if self.lines.is_due or self._freed or self._is_stirred:
            self.enqueue(_TURN)

    def _wake(self) -> None:
        nodes = [self.fleet.nodes[name] for name in self._freed if name in self.fleet.nodes]
        stirred, self._is_stirred = self._is_stirred, False
        self._freed = {}

        def may_be_lucky(shape: Shape) -> bool:
            if stirred and (shape.looks_at_others or self.fleet.apart):
                return True
            return self.decider.might_fit(shape, nodes)

        self.lines.wake(may_be_lucky)

    def _try(self, line: Line, pod: PodInfo) -> None:
        node = self.decider.choose(pod)
        if node is not None:
            self._bind(pod, node)
            return
        why = self.decider.diagnose(pod)
        message = why.message()
        if why.may_preempt and (in_vain := self._preempt(pod, why)):
            message = f"{message} {preemption.PREFACE}{in_vain}"
        is_unwelcome = any(refusal is UNWELCOME for refusal in why.refusals.values())
        if is_unwelcome or pod.node:
            # Others may have labels that are welcome; and others may preempt as this one did.
            line.passed.add(pod.uid)
        else:
            line.message = message
        self._tell(pod, message)

    def _bind(self, pod: PodInfo, node: NodeInfo) -> None:
        self._leave(pod.uid)
        self.fleet.bind(pod, node.name)  # before the write, whose echo must find it there
        try:
            bound = bind(self.registry, pod.key, node.name)
        except Failure:  # deleted, or bound by hand, in this very moment
            self.fleet.release(pod.uid)
            found = self.registry.find(self._pod_kind, pod.key)
            if found is not None and _is_ours(found):
                raise
            return
        self._stir()
        text = f"Successfully assigned {pod.key[0]}/{pod.key[1]} to {node.name}"
        self._recorder.normal(bound, "Scheduled", text)

    # -- preemption ----------------------------------------------------------------------------

    def _preempt(self, pod: PodInfo, why: Diagnosis) -> str:
        """Make room if it can be made; what to add to the message."""
        nominated = self.fleet.nodes.get(pod.node) if pod.node else None
        if nominated is not None and any(
            one.terminating and one.shape.priority < pod.shape.priority
            for one in nominated.pods.values()
        ):
            return preemption.WAITING
        plan = preemption.find(self.decider, pod, why)
        if isinstance(plan, str):
            self._nominate(pod, "")
            return plan
        self._nominate(pod, plan.node)
        for victim in plan.victims:
            self._remove(victim, pod)
        return ""

    def _nominate(self, pod: PodInfo, node: str) -> None:
        if pod.node != node:
            self._freed |= dict.fromkeys(name for name in (pod.node, node) if name)
            self.fleet.nominate(pod, node)

    def _remove(self, victim: PodInfo, pod: PodInfo) -> None:
        found = self.registry.find(self._pod_kind, victim.key)
        if found is None or found["metadata"]["uid"] != victim.uid:
            return
        text = f"{NAME}: preempting to accommodate a higher priority pod"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": text,
        }
        self._set_condition(victim.key, condition)
        self.registry.delete(self._pod_kind, victim.key, Deletion(uid=victim.uid))
        text = f"Preempted by pod {pod.uid} on node {victim.node}"
        self._recorder.normal(found, "Preempted", text)

    # -- what is said --------------------------------------------------------------------------

    def _tell(self, pod: PodInfo, message: str) -> None:
        if pod.told == message:
            return
        pod.told = message
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        try:
            found = self._set_condition(pod.key, condition, nominated=pod.node)
        except Failure:
            return  # it is gone
        self._recorder.warning(found, "FailedScheduling", message)

    def _set_condition(self, key: Key, condition: Json, nominated: str = "") -> Json:
        at = seconds(self.registry.clock.now_us())

        def change(pod: Json) -> Json:
            status = pod.get("status") or {}
            before = status.get("conditions") or []
            same = [one for one in before if one["type"] == condition["type"]]
            since = at
            if same and same[0]["status"] == condition["status"]:
                since = same[0]["lastTransitionTime"]
            others = [one for one in before if one["type"] != condition["type"]]
            times: Json = {"lastProbeTime": None, "lastTransitionTime": since}
            times["observedGeneration"] = pod["metadata"].get("generation", 0)
            changed = status | {"conditions": [*others, condition | times]}
            if nominated:
                changed["nominatedNodeName"] = nominated
            else:
                changed.pop("nominatedNodeName", None)
            return pod | {"status": changed}

        return self.registry.patch(
            self._pod_kind, key, change, Write(trusted=True, subresource="status")
        )


def _is_ours(pod: Json) -> bool:
    spec = pod.get("spec") or {}
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", NAME) == NAME
        and "deletionTimestamp" not in pod["metadata"]
    )


def _controls(reference: Json) -> bool:
    return bool(reference.get("controller"))
