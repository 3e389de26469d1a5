"""The objects of a scale-up request: PodTemplates first, because a ProvisioningRequest whose
templates are missing fails for good, and then what the autoscaler reads (ADR 68).

There is a ProvisioningRequest for each placement, because one is served from one node group.

All are owned by the AppWrapper, and named after the AppWrapper, its uid and the attempt, so that
to create them again is safe.
"""

import json
from collections.abc import Iterable, Iterator

from msgspec import Struct

from mcad.api import labels
from mcad.api.scale_up.settings import GROUP, Via
from mcad.api.scale_up.templates import Wanted
from mcad.api.wire import Map, as_map
from mcad.core.state.model import Dialect, Workload

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_OF = "autoscaling.x-k8s.io/provisioning-class-name"
"""Annotations of the pods for which a ProvisioningRequest was made."""

MAX_POD_SETS = 32
"""Pod sets of a ProvisioningRequest, by its CRD."""

PLACEHOLDER_CLASS = "mcad-placeholder"
PLACEHOLDER_PRIORITY = -10
"""The PriorityClass of placeholder pods. cluster-autoscaler adds no nodes for pods of a lower one
(``--expendable-pods-priority-cutoff``)."""

_NAME_MAX = 40


class Ask(Struct, frozen=True):
    """What is asked: pods of an attempt. ``valid_s`` is for how many seconds it is tried."""

    work: Workload
    attempt: int
    pods: tuple[Wanted, ...]
    valid_s: int

    @property
    def name(self) -> str:
        """The name of the request, and the beginning of the names of what belongs to it."""
        name = self.work.name[:_NAME_MAX].rstrip("-.")
        return f"{name}-{labels.short_hash(self.work.uid)}-{self.attempt}"

    def of_set(self, number: int) -> str:
        """The name of what is made for the pods of this number."""
        return f"{self.name}-{number}"

    def of_placement(self, one: Wanted) -> str:
        """The name of the ProvisioningRequest for pods with such a placement."""
        return f"{self.name}-{one.placement}"


class Made(Struct, frozen=True):
    """What is created for a request, in this order."""

    templates: tuple[Map, ...]
    requests: tuple[Map, ...]


def made_for(via: Via, version: str, ask: Ask) -> Made:
    """The objects of a request by this kind, in this version."""
    if via is Via.PLACEHOLDER_PODS:
        return Made((), _counted(_placeholders(ask)))
    templates = [
        _object("v1", "PodTemplate", ask.of_set(number), ask) | {"template": one.template}
        for number, one in enumerate(ask.pods)
    ]
    api_version = f"{GROUP}/{version}"
    ask_by = _requests if via is Via.PROVISIONING_REQUEST else _buffers
    return Made(tuple(map(_marked, templates)), _counted(ask_by(api_version, ask)))


def consuming(request: str) -> dict[str, str]:
    """The annotations by which pods use what the ProvisioningRequest of this name has booked."""
    return {CONSUMES: request, CLASS_OF: CLASS}


def is_placeholder(pod: Map) -> bool:
    """Whether a pod keeps a place for pods that come later. The class makes it safe to believe:
    any other pod may take its place."""
    tags = labels.labels_of(pod)
    named = as_map(pod.get("spec")).get("priorityClassName") == PLACEHOLDER_CLASS
    return named and labels.SCALE_UP_ATTEMPT in tags and labels.ATTEMPT not in tags


def priority_class() -> Map:
    """The PriorityClass of placeholder pods."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PLACEHOLDER_CLASS},
        "value": PLACEHOLDER_PRIORITY,
        "preemptionPolicy": "Never",
        "description": "Pods that keep the place of pods of AppWrappers while nodes are added.",
    }


def _requests(api_version: str, ask: Ask) -> Iterator[Map]:
    sets: dict[str, list[Map]] = {}
    for number, one in enumerate(ask.pods):
        pods = {"count": one.count, "podTemplateRef": {"name": ask.of_set(number)}}
        sets.setdefault(ask.of_placement(one), []).append(pods)
    for name, pod_sets in sets.items():
        yield _object(api_version, "ProvisioningRequest", name, ask) | {
            "spec": {
                "provisioningClassName": CLASS,
                "parameters": {"ValidUntilSeconds": str(ask.valid_s)},
                "podSets": pod_sets,
            }
        }


def _buffers(api_version: str, ask: Ask) -> Iterator[Map]:
    for number, one in enumerate(ask.pods):
        name = ask.of_set(number)
        spec = {"podTemplateRef": {"name": name}, "replicas": one.count}
        yield _object(api_version, "CapacityBuffer", name, ask) | {"spec": spec}


def _placeholders(ask: Ask) -> Iterator[Map]:
    """One pod per pod. None of them becomes ready, so that no Service sends requests to it."""
    for number, one in enumerate(ask.pods):
        for at in range(one.count):
            yield _placeholder(f"{ask.of_set(number)}-{at}", one.template, ask)


def _placeholder(name: str, template: Map, ask: Ask) -> Map:
    pod = _object("v1", "Pod", name, ask)
    pod["metadata"]["labels"] = as_map(template["metadata"]["labels"]) | pod["metadata"]["labels"]
    pod["spec"] = template["spec"] | {
        "priorityClassName": PLACEHOLDER_CLASS,
        "readinessGates": [{"conditionType": labels.SCALE_UP_UID}],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
    }
    return pod


def _object(api_version: str, kind: str, name: str, ask: Ask) -> Map:
    owner = {
        "apiVersion": f"{labels.GROUP}/{Dialect.V1BETA2}",
        "kind": labels.KIND,
        "name": ask.work.name,
        "uid": ask.work.uid,
        "controller": True,
    }
    tags = {labels.SCALE_UP_UID: ask.work.uid, labels.SCALE_UP_ATTEMPT: str(ask.attempt)}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": ask.work.namespace,
            "labels": tags,
            "ownerReferences": [owner],
        },
    }


def _counted(objects: Iterable[Map]) -> tuple[Map, ...]:
    """The objects of a request, each with the number of all: so a part is known as such."""
    found = list(objects)
    for one in found:
        one["metadata"]["labels"][labels.SCALE_UP_OBJECTS] = str(len(found))
    return tuple(map(_marked, found))


def _marked(obj: Map) -> Map:
    """The object with a label that differs if the content does."""
    text = json.dumps({"spec": obj.get("spec"), "template": obj.get("template")}, sort_keys=True)
    obj["metadata"]["labels"][labels.SCALE_UP_CONTENT] = labels.short_hash(text)
    return obj
