"""DaemonSets: one pod per node that fits.

After ``pkg/controller/daemon``, without revisions, rolling updates and back-off: a pod stays as it
was made, whatever becomes of the template, until it is deleted. The pod names its node in a
required node affinity, and the scheduler binds it.
"""

from __future__ import annotations

from mcad.kube.types import Json
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import (
    from_template,
    is_available,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
)
from mcad.sim.controllers.workload import Workload, compact, min_ready_s
from mcad.sim.registry import Registry
from mcad.sim.scheduling.filters import repels
from mcad.sim.selectors import node_selector_terms
from mcad.sim.store import Change, Key

Pods = dict[str, list[Json]]  # by node; nodes that have none are missing

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class DaemonSetController(Workload):
    """Keeps a pod on every node that a DaemonSet is for."""

    def __init__(self, registry: Registry, pods: OwnedIndex) -> None:
        kind = registry.kind("apps/v1", "DaemonSet")
        super().__init__(registry, kind, pods, "daemonset-controller")
        self._nodes = registry.kind("v1", "Node")

    def start(self) -> None:
        super().start()
        self.watch(self._nodes, self._on_node)

    def _on_node(self, change: Change) -> None:
        """Reports of a node do not matter; its labels, taints and size do."""
        before, node = change.previous, change.obj
        if change.type == "MODIFIED" and before is not None:
            same_spec = before.get("spec") == node.get("spec")
            if same_spec and labels_of(before) == labels_of(node):
                return
        for key, _ in list(self.registry.store.items(self.kind.storage)):
            self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        owner = self.registry.find(self.kind, key)
        if owner is None or is_deleting(owner):
            return
        nodes = {key[1]: node for key, node in self.registry.store.items(self._nodes.storage)}
        self.manage(
            owner,
            lambda: self._change(owner, nodes, self._pods(owner)),
            lambda _: self._report(owner, nodes, self._pods(owner)),
        )

    def _pods(self, owner: Json) -> Pods:
        pods: Pods = {}
        for pod in self.claim(owner):
            name = _node_of(pod)
            if name and not (is_finished(pod) and is_deleting(pod)):
                pods.setdefault(name, []).append(pod)
        return pods

    def _change(self, owner: Json, nodes: dict[str, Json], pods: Pods) -> None:
        gone: list[Json] = []
        for name, node in nodes.items():
            wanted, may_stay = _should_run(owner, node)
            there = pods.get(name, [])
            if wanted and not there:
                self.create_pod(owner, _pod_for(owner, name))
            elif may_stay:
                gone += [pod for pod in there if is_finished(pod)]
                gone += _by_age([pod for pod in there if not is_finished(pod)])[1:]
            else:
                gone += there
        for name in pods.keys() - nodes.keys():
            gone += [pod for pod in pods[name] if not pod["spec"].get("nodeName")]
        for pod in gone:
            if not is_deleting(pod):
                self.delete_pod(owner, pod)

    def _report(self, owner: Json, nodes: dict[str, Json], pods: Pods) -> None:
        wanted = {name for name, node in nodes.items() if _should_run(owner, node)[0]}
        first = {name: _by_age(them)[0] for name, them in pods.items() if name in nodes}
        there = [pod for name, pod in first.items() if name in wanted]
        now_us = self.registry.clock.now_us()
        available = sum(is_available(pod, min_ready_s(owner), now_us) for pod in there)
        always = {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(there),
            "numberMisscheduled": len(first) - len(there),
            "numberReady": sum(map(is_ready, there)),
        }
        status = always | {
            "observedGeneration": owner["metadata"].get("generation", 0),
            "updatedNumberScheduled": len(there),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        self.write_status(owner, compact(status, *always))


def _by_age(pods: list[Json]) -> list[Json]:
    """Bound ones first, then the oldest."""
    return sorted(
        pods,
        key=lambda pod: (
            not pod["spec"].get("nodeName"),
            pod["metadata"]["creationTimestamp"],
            pod["metadata"]["name"],
        ),
    )


def _tolerations(spec: Json) -> list[Json]:
    """Those of the template, and those that every DaemonSet pod has."""
    wanted = [*_TOLERATED]
    if spec.get("hostNetwork"):
        wanted.append(("network-unavailable", "NoSchedule"))
    added = [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        for name, effect in wanted
    ]
    given = list(spec.get("tolerations") or ())
    return given + [one for one in added if one not in given]


def _should_run(owner: Json, node: Json) -> tuple[bool, bool]:
    """Whether a pod is to be put on the node, and whether one that is there may stay."""
    spec = (owner["spec"].get("template") or {}).get("spec") or {}
    labels = labels_of(node)
    if spec.get("nodeName") not in {None, "", node["metadata"]["name"]}:
        return False, False
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False, False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if affinity and not node_selector_terms(affinity.get("nodeSelectorTerms") or (), node):
        return False, False
    taints, tolerated = (node.get("spec") or {}).get("taints") or (), _tolerations(spec)
    if not repels(taints, tolerated):
        return True, True
    evicting = [taint for taint in taints if taint.get("effect") == "NoExecute"]
    return False, not repels(evicting, tolerated)


def _pod_for(owner: Json, node: str) -> Json:
    """The pod of one node, to be created."""
    pod = from_template(owner["spec"].get("template") or {}, owner)
    affinity = pod["spec"].get("affinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    of_node = (affinity.get("nodeAffinity") or {}) | {_REQUIRED: terms}
    spec = pod["spec"] | {
        "tolerations": _tolerations(pod["spec"]),
        "affinity": affinity | {"nodeAffinity": of_node},
    }
    return {"metadata": pod["metadata"], "spec": spec}


def _node_of(pod: Json) -> str:
    """The node that the pod is on, or that it is meant for; "" if it is no pod of ours."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        name: str = spec["nodeName"]
        return name
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            values = list(field.get("values") or ())
            if field.get("key") == "metadata.name" and len(values) == 1:
                return str(values[0])
    return ""
