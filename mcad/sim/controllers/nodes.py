"""The work of kube-controller-manager on nodes: taints, eviction by taints, pods of lost nodes.

Modelled after ``pkg/controller/{nodelifecycle,tainteviction,podgc}``. A node that a user creates
without conditions is registered as if its kubelet did (``registered`` in nodeinfo.py).
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcad.kube.types import Json
from mcad.sim.controllers import nodeinfo
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.events import Recorder
from mcad.sim.controllers.nodeinfo import READY, condition
from mcad.sim.controllers.pods import is_deleting, is_finished, is_ready
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry
from mcad.sim.scheduling.filters import UNSCHEDULABLE, tolerates
from mcad.sim.store import Change, Key
from mcad.sim.times import micros, seconds
from mcad.sim.writes import Write

QUARANTINE_S = 40.0  # pods of a node that is gone are deleted after this time, as it may come back

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_BY_CONDITION = {
    (READY, "False"): _NOT_READY,
    (READY, "Unknown"): _UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS = {*_BY_CONDITION.values(), UNSCHEDULABLE}
_STATUS = "status"


class Nodes(Controller):
    """Keys are those of pods, and ("", name) for nodes."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._kind = registry.kind("v1", "Node")
        self._pod_kind = registry.kind("v1", "Pod")
        self._recorder = Recorder(registry, "node-controller")
        self._taint_recorder = Recorder(registry, "taint-eviction-controller")
        self._pods: dict[str, dict[Key, None]] = {}  # by node
        self._doomed: dict[Key, float] = {}  # since when a NoExecute taint is borne for a while
        self._lost: dict[str, float] = {}  # since when a node with pods is not there
        self._numbers = 0

    def start(self) -> None:
        for known in (self._pods, self._doomed, self._lost):
            known.clear()
        self.watch(self._kind, self._on_node)
        self.watch(self._pod_kind, self._on_pod)

    def register(self, node: Json) -> Json:
        """Create a Node as its kubelet would, with its Lease; raises Failure."""
        self._numbers += 1
        at = seconds(self.registry.clock.now_us())
        complete = nodeinfo.registered(node, self._numbers - 1, at)
        created = self.registry.create(self._kind, None, complete)
        self._add_lease(created)
        return created

    # -- what happens --------------------------------------------------------------------------

    def _on_node(self, change: Change) -> None:
        name = change.key[1]
        if change.type == "DELETED":
            self._tell(change.obj, "RemovingNode", f"Removing Node {name} from Controller")
        elif change.type == "ADDED":
            self._lost.pop(name, None)
            self._tell(change.obj, "RegisteredNode", f"Registered Node {name} in Controller")
        if change.previous is None or _judged(change.obj) != _judged(change.previous):
            self._tell_changes(change)
            self.enqueue(change.key)
        elif change.type == "DELETED":
            self.enqueue(change.key)

    def _tell_changes(self, change: Change) -> None:
        if change.previous is None:
            return
        name = change.key[1]
        was, now = condition(change.previous, READY), condition(change.obj, READY)
        if was != now:
            state = "NodeReady" if now == "True" else "NodeNotReady"
            self._recorder.normal(change.obj, state, f"Node {name} status is now: {state}")
        was, now = (str(_spec(one).get("unschedulable")) for one in (change.previous, change.obj))
        if was != now:
            state = "NodeNotSchedulable" if now == "True" else "NodeSchedulable"
            self._recorder.normal(change.obj, state, f"Node {name} status is now: {state}")

    def _tell(self, node: Json, reason: str, text: str) -> None:
        name = node["metadata"]["name"]
        self._recorder.normal(node, reason, f"Node {name} event: {text}")

    def _on_pod(self, change: Change) -> None:
        node = (change.obj.get("spec") or {}).get("nodeName")
        if not node:
            return
        pods = self._pods.setdefault(node, {})
        if change.type == "DELETED":
            pods.pop(change.key, None)
            self._doomed.pop(change.key, None)
            return
        if change.key in pods:
            return
        pods[change.key] = None
        found = self.registry.find(self._kind, ("", node))
        if found is None:
            self.enqueue(("", node))
        elif _evicting(found):
            self.enqueue(change.key)

    def reconcile(self, key: Key) -> None:
        if key[0]:
            self._reconcile_pod(key)
            return
        node = self.registry.find(self._kind, key)
        if node is None:
            self._collect(key[1])
        elif not condition(node, READY):
            self._join(key, node)
        else:
            self._set_taints(key, node)
            if condition(node, READY) != "True":
                self._mark_pods(key[1])
            for pod in self._pods.get(key[1], ()):
                self.enqueue(pod)

    # -- nodes ---------------------------------------------------------------------------------

    def _join(self, key: Key, node: Json) -> None:
        self._numbers += 1
        at = seconds(self.registry.clock.now_us())
        complete = nodeinfo.registered(node, self._numbers - 1, at)
        found = self.registry.update(self._kind, key, _unversioned(complete))
        self.registry.update_status(self._kind, found | {"status": complete["status"]})
        self._add_lease(node)

    def _add_lease(self, node: Json) -> None:
        now = micros(self.registry.clock.now_us())
        kind = self.registry.kind("coordination.k8s.io/v1", "Lease")
        try:
            self.registry.create(kind, "kube-node-lease", nodeinfo.lease(node, now))
        except Failure as failure:
            if failure.reason != "AlreadyExists":
                raise

    def _set_taints(self, key: Key, node: Json) -> None:
        present = _spec(node).get("taints") or []
        wanted = _taints(node)
        kept = [one for one in present if not _is_ours(one) or _id(one) in wanted]
        known = [_id(one) for one in kept]
        at = seconds(self.registry.clock.now_us())
        added = [
            {"key": name, "effect": effect, "timeAdded": at}
            for name, effect in wanted
            if (name, effect) not in known
        ]
        if added or len(kept) != len(present):
            spec = {name: value for name, value in _spec(node).items() if name != "taints"}
            taints = [*kept, *added]
            spec |= {"taints": taints} if taints else {}
            self.registry.patch(self._kind, key, lambda one: one | {"spec": spec})

    def _mark_pods(self, node: str) -> None:
        for key in list(self._pods.get(node, ())):
            pod = self.registry.find(self._pod_kind, key)
            if pod is None or not is_ready(pod):
                continue
            at = seconds(self.registry.clock.now_us())
            unready = {"type": READY, "status": "False", "lastTransitionTime": at}
            self._set_condition(key, unready, {})
            self._recorder.warning(pod, "NodeNotReady", "Node is not ready")

    def _collect(self, name: str) -> None:
        """Delete the pods of a node that is gone for long enough."""
        if not self._pods.get(name):
            self._pods.pop(name, None)
            self._lost.pop(name, None)
            return
        now_s = asyncio.get_running_loop().time()
        since_s = self._lost.setdefault(name, now_s)
        if now_s < since_s + QUARANTINE_S:
            self.enqueue_after(("", name), since_s + QUARANTINE_S - now_s)
            return
        for key in list(self._pods[name]):
            pod = self.registry.find(self._pod_kind, key)
            if pod is not None:
                text = "PodGC: node no longer exists"
                if not is_finished(pod):
                    self._disrupt(key, "DeletionByPodGC", text, {"phase": "Failed"})
                uid = pod["metadata"]["uid"]
                self.registry.delete(self._pod_kind, key, Deletion(uid=uid, grace_s=0))

    # -- pods ----------------------------------------------------------------------------------

    def _reconcile_pod(self, key: Key) -> None:
        """Evict a pod that does not tolerate its node, or tolerates it no longer."""
        pod = self.registry.find(self._pod_kind, key)
        if pod is None or is_deleting(pod) or is_finished(pod) or not pod["spec"].get("nodeName"):
            return
        node = self.registry.find(self._kind, ("", pod["spec"]["nodeName"]))
        taints = _evicting(node) if node is not None else []
        if not taints:
            if self._doomed.pop(key, None) is not None:
                text = f"Cancelling deletion of Pod {key[0]}/{key[1]}"
                self._taint_recorder.normal(pod, "TaintManagerEviction", text)
            return
        bearable_s = _tolerated_s(taints, pod["spec"].get("tolerations") or ())
        if bearable_s is None:
            self._doomed.pop(key, None)
            return
        now_s = asyncio.get_running_loop().time()
        due_s = self._doomed.setdefault(key, now_s) + bearable_s
        if due_s > now_s:
            self.enqueue_after(key, due_s - now_s)
            return
        text = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self._taint_recorder.normal(pod, "TaintManagerEviction", text)
        why = "Taint manager: deleting due to NoExecute taint"
        self._disrupt(key, "DeletionByTaintManager", why, {})
        self._doomed.pop(key, None)
        self.registry.delete(self._pod_kind, key, Deletion(uid=pod["metadata"]["uid"]))

    def _disrupt(self, key: Key, reason: str, message: str, more: Json) -> None:
        at = seconds(self.registry.clock.now_us())
        times = {"lastProbeTime": None, "lastTransitionTime": at}
        target = {"type": "DisruptionTarget", "status": "True"} | times
        self._set_condition(key, target | {"reason": reason, "message": message}, more)

    def _set_condition(self, key: Key, wanted: Json, more: Json) -> None:
        def change(pod: Json) -> Json:
            status = pod.get("status") or {}
            before = status.get("conditions") or ()
            kept = [one if one["type"] != wanted["type"] else one | wanted for one in before]
            if all(one["type"] != wanted["type"] for one in before):
                kept.append(wanted)
            return pod | {"status": status | more | {"conditions": kept}}

        how = Write(trusted=True, subresource=_STATUS)
        self.registry.patch(self._pod_kind, key, change, how)


def _judged(node: Json) -> Json:
    """What decides about taints, without the time stamps of heartbeats."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return {
        "conditions": [(one["type"], one["status"]) for one in conditions],
        "unschedulable": _spec(node).get("unschedulable"),
        "taints": _spec(node).get("taints"),
    }


def _spec(node: Json) -> Json:
    return node.get("spec") or {}


def _taints(node: Json) -> list[tuple[str, str]]:
    """Key and effect of the taints that conditions and cordoning ask for."""
    wanted: list[tuple[str, str]] = []
    for one in (node.get("status") or {}).get("conditions") or ():
        name = _BY_CONDITION.get((one["type"], one["status"]))
        if name is not None:
            wanted.append((name, "NoSchedule"))
            if name in {_NOT_READY, _UNREACHABLE}:
                wanted.append((name, "NoExecute"))
    if _spec(node).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def _is_ours(taint: Json) -> bool:
    if taint["key"] not in _OURS:
        return False
    return taint["effect"] == "NoSchedule" or taint["key"] in {_NOT_READY, _UNREACHABLE}


def _id(taint: Json) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _evicting(node: Json) -> list[Json]:
    return [one for one in _spec(node).get("taints") or () if one["effect"] == "NoExecute"]


def _tolerated_s(taints: list[Json], tolerations: Any) -> float | None:
    """For how many seconds a pod tolerates these taints: 0 if it does not, None if for ever."""
    limits: list[float] = []
    for taint in taints:
        matching = [one for one in tolerations if tolerates(one, taint)]
        if not matching:
            return 0.0
        limits += [
            max(float(one["tolerationSeconds"]), 0.0)
            for one in matching
            if one.get("tolerationSeconds") is not None
        ]
    return min(limits, default=None)


def _unversioned(node: Json) -> Json:
    metadata = {k: v for k, v in node["metadata"].items() if k != "resourceVersion"}
    return node | {"metadata": metadata}
