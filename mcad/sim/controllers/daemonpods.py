"""On which nodes a DaemonSet wants a pod, and how that pod looks.

After ``pkg/controller/daemon/util`` and ``NodeShouldRunDaemonPod``. The pod names its node in a
required node affinity, and the scheduler binds it.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.pods import annotations_of, from_template, labels_of
from mcad.sim.scheduling.filters import repels
from mcad.sim.selectors import node_selector_terms
from mcad.sim.strategies import TEMPLATE_GENERATION

Json = dict[str, Any]

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def tolerations(spec: Json) -> list[Json]:
    """Those of the template, and those that every DaemonSet pod has."""
    wanted = [*_TOLERATED]
    if spec.get("hostNetwork"):
        wanted.append(("network-unavailable", "NoSchedule"))
    found = list(spec.get("tolerations") or ())
    for name, effect in wanted:
        key = f"node.kubernetes.io/{name}"
        added = {"key": key, "operator": "Exists", "effect": effect}
        found = [one for one in found if not _is_same(one, added)] + [added]
    return found


def _is_same(one: Json, other: Json) -> bool:
    names = ("key", "operator", "effect", "value")
    return all((one.get(name) or "") == (other.get(name) or "") for name in names)


def should_run(owner: Json, node: Json) -> tuple[bool, bool]:
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
    taints, tolerated = (node.get("spec") or {}).get("taints") or (), tolerations(spec)
    if not repels(taints, tolerated):
        return True, True
    evicting = [taint for taint in taints if taint.get("effect") == "NoExecute"]
    return False, not repels(evicting, tolerated)


def pod_for(owner: Json, hashed: str, node: str) -> Json:
    """The pod of one node, to be created."""
    pod = from_template(owner["spec"].get("template") or {}, owner)
    labels = labels_of(pod) | {HASH_LABEL: hashed}
    generation = annotations_of(owner).get(TEMPLATE_GENERATION)
    if generation:
        labels[GENERATION_LABEL] = generation
    affinity = pod["spec"].get("affinity") or {}
    of_node = affinity.get("nodeAffinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = affinity | {"nodeAffinity": of_node | {_REQUIRED: terms}}
    spec = pod["spec"] | {"tolerations": tolerations(pod["spec"]), "affinity": affinity}
    return {"metadata": pod["metadata"] | {"labels": labels}, "spec": spec}


def node_of(pod: Json) -> str:
    """The node that the pod is on, or that it is meant for; "" if it is no pod of ours."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        name: str = spec["nodeName"]
        return name
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if (field.get("key"), field.get("operator")) == ("metadata.name", "In"):
                values = list(field.get("values") or ())
                return str(values[0]) if len(values) == 1 else ""
    return ""


def is_updated(owner: Json, pod: Json, hashed: str) -> bool:
    """Whether the pod was made from the present template."""
    labels, generation = labels_of(pod), annotations_of(owner).get(TEMPLATE_GENERATION)
    by_generation = bool(generation) and labels.get(GENERATION_LABEL) == generation
    return by_generation or (bool(hashed) and labels.get(HASH_LABEL) == hashed)


def by_age(pods: list[Json]) -> list[Json]:
    """Bound ones first, then the oldest."""
    return sorted(
        pods,
        key=lambda pod: (
            not pod["spec"].get("nodeName"),
            pod["metadata"]["creationTimestamp"],
            pod["metadata"]["name"],
        ),
    )
