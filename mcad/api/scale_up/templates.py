"""A pod of a pod set, as an autoscaler has to see it: with the request and the placement that the
fit test counts, and with rules about other pods, which it does not model, as the manifest has them.

Its container does nothing. Defaults of namespaces, overheads and what admission adds are in the
request already, so that the pod asks for as much as the pods that come later.
"""

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mcad.api import labels
from mcad.api.templates import PathError, follow
from mcad.api.wire import Map, as_list, as_map
from mcad.core.state.model import HOSTNAME, PodSet, Requirement, Resources, Toleration, Workload
from mcad.core.state.quantity import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    format_amount,
)

IMAGE = "registry.k8s.io/pause:3.10"
_RESTRICTED_POD = {
    "runAsNonRoot": True,
    "runAsUser": 65535,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What namespaces with the strictest standard ask of pods. cluster-autoscaler creates a pod of each
buffer as a dry run, so it counts for templates, too."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ABOUT_OTHERS = ("podAffinity", "podAntiAffinity")
_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
_EVERYWHERE = {CPU, MEMORY, EPHEMERAL_STORAGE}
_DIGITS = 5
_POD = "pods"  # the slot on the node, which is no request of a container


class Wanted(Struct, frozen=True):
    """So many pods of one template."""

    template: Map
    count: int

    @property
    def placement(self) -> str:
        """A hash of where the pods may go and which devices they need: equal ones can be on nodes
        of one node group."""
        spec = self.template["spec"]
        where = {name: spec.get(name) for name in _PLACEMENT}
        requests = spec["containers"][0]["resources"]["requests"]
        devices = sorted(requests.keys() - _EVERYWHERE)
        return labels.short_hash(json.dumps([where, devices], sort_keys=True))[:_DIGITS]


def wanted(
    work: Workload, manifests: Sequence[bytes], pods: Iterable[tuple[int, int, int]]
) -> list[Wanted]:
    """The templates of the pods (item, index of the pod set, pods), those of large pods first;
    equal ones are one."""
    sets = {(one.item, one.index): one for one in work.sets}
    counts: dict[str, int] = {}
    objects: dict[int, Map] = {}
    missing = [one for one in pods if one[2] > 0]
    for item, index, count in sorted(missing, key=lambda one: _size(sets[one[:2]]), reverse=True):
        if item not in objects:
            objects[item] = json.loads(manifests[item])
        template = pod_template(work, sets[item, index], objects[item])
        text = json.dumps(template, sort_keys=True)
        counts[text] = counts.get(text, 0) + count
    return [Wanted(json.loads(text), count) for text, count in counts.items()]


def _size(one: PodSet) -> tuple[int, int]:
    request = dict(one.request)
    return request.get(CPU, 0), request.get(MEMORY, 0)


def pod_template(work: Workload, one: PodSet, manifest: Map) -> Map:
    """The template of a pod set."""
    written = _written(one, manifest)
    spec: Map = {"containers": [_container(one)], "securityContext": dict(_RESTRICTED_POD)}
    if one.constraint.selector:
        spec["nodeSelector"] = dict(one.constraint.selector)
    if affinity := _affinity(work, one, as_map(written.get("spec"))):
        spec["affinity"] = affinity
    if one.constraint.tolerations:
        spec["tolerations"] = [_toleration(each) for each in one.constraint.tolerations]
    if spread := as_list(as_map(written.get("spec")).get("topologySpreadConstraints")):
        spec["topologySpreadConstraints"] = spread
    ours = {labels.SCALE_UP_UID: work.uid} | _group(one)
    return {"metadata": {"labels": _user_labels(written) | ours}, "spec": spec}


def _written(one: PodSet, manifest: Map) -> Map:
    """The template of the manifest; of a set that was declared without a place an empty one."""
    try:
        return follow(one.path, manifest)
    except PathError:
        return {}


def _user_labels(written: Map) -> Map:
    """The labels that rules about other pods may select by; the dispatcher's own are for pods."""
    given = labels.labels_of(written)
    return {key: value for key, value in given.items() if key not in labels.OURS}


def _container(one: PodSet) -> Map:
    container: Map = {
        "name": "placeholder",
        "image": IMAGE,
        "resources": _resources(one.request),
        "securityContext": dict(_RESTRICTED),
    }
    if one.ports:
        container["ports"] = [
            {
                "containerPort": port.number,
                "hostPort": port.number,
                "hostIP": port.address,
                "protocol": port.protocol,
            }
            for port in one.ports
        ]
    return container


def _resources(request: Resources) -> Map:
    """Requests and limits. Those of devices and huge pages have to be equal, and a LimitRange would
    add limits that are lower than the requests."""
    amounts = {name: format_amount(name, size) for name, size in request if name != _POD}
    return {"requests": amounts, "limits": amounts}


def _affinity(work: Workload, one: PodSet, spec: Map) -> Map:
    written = as_map(spec.get("affinity"))
    affinity: Map = {name: dict(as_map(written[name])) for name in _ABOUT_OTHERS if name in written}
    if one.constraint.affinity is not None:
        terms = [_term(term) for term in one.constraint.affinity]
        affinity["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": terms}}
    if one.topology is not None and one.topology.required:
        same = _same(work, one)
        _require(affinity, "podAffinity", same | {"topologyKey": one.topology.levels[-1]})
    if one.cap == 1 and "podAntiAffinity" not in affinity:
        _require(affinity, "podAntiAffinity", _same(work, one) | {"topologyKey": HOSTNAME})
    return affinity


def _require(affinity: Map, kind: str, term: Map) -> None:
    given = affinity.setdefault(kind, {})
    given[_REQUIRED] = [*as_list(given.get(_REQUIRED)), term]


def _same(work: Workload, one: PodSet) -> Map:
    return {"labelSelector": {"matchLabels": {labels.SCALE_UP_UID: work.uid} | _group(one)}}


def _group(one: PodSet) -> dict[str, str]:
    """The label of pods that have to be together, or on different nodes."""
    if one.topology is not None and one.topology.required and one.topology.group:
        return {labels.SCALE_UP_GROUP: labels.short_hash(one.topology.group)}
    if one.cap == 1 or (one.topology is not None and one.topology.required):
        return {labels.SCALE_UP_GROUP: labels.podset_value(one.item, one.index)}
    return {}


def _term(term: tuple[Requirement, ...]) -> Map:
    made: Map = {}
    for one in term:
        line: Map = {"key": one.key, "operator": one.operator}
        if one.values:
            line["values"] = list(one.values)
        made.setdefault("matchFields" if one.field else "matchExpressions", []).append(line)
    return made


def _toleration(one: Toleration) -> Map:
    fields = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    return {name: value for name, value in fields.items() if value}
