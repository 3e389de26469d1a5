"""What is left out of a pod or node unread is nothing that its reader would look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints, is_typeddict

import msgspec
import pytest
from hypothesis import given, settings

from mcad.api import projections
from mcad.api.labels import ATTEMPT, PODSET
from mcad.api.owner import controller_of
from mcad.api.pods import read_node, read_pod
from mcad.api.projections import AppWrapperPick, NodePick, PodPick
from mcad.controller.event_translation import slim_node, slim_pod
from mcad.controller.mirror import spec_mark, status_mark
from mcad.kube.document import HEAD, Document
from mcad.kube.errors import BadAnswer
from mcad.kube.kinds import APPWRAPPERS, NODES, PODS
from tests import budget
from tests.api.strategies import mutated

Json = dict[str, Any]
META = {
    "name": "a",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "7",
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "labels": {PODSET: "1.2", ATTEMPT: "3"},
    "annotations": {"unread": "x"},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "v", "controller": True}
    ],
}
RESOURCES = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
CONTAINER = {
    "name": "main",
    "resources": RESOURCES,
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "127.0.0.1"}],
    "env": [{"name": "UNREAD", "value": "x"}],
}
STATE = {"terminated": {"exitCode": 3, "finishedAt": "unread"}, "waiting": {"reason": "unread"}}
STATUS = {"name": "main", "resources": RESOURCES, "allocatedResources": {"cpu": "1500m"}}
POD = {
    "metadata": META,
    "spec": {
        "nodeName": "n",
        "hostNetwork": True,
        "overhead": {"cpu": "10m"},
        "resources": {"requests": {"memory": "2Gi"}, "limits": {"cpu": "4"}},
        "containers": [CONTAINER, CONTAINER | {"name": "other"}],
        "initContainers": [
            CONTAINER | {"name": "sidecar", "restartPolicy": "Always"},
            CONTAINER | {"name": "init"},
        ],
        "volumes": [{"name": "unread"}],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        "resources": RESOURCES,
        "allocatedResources": {"memory": "3Gi"},
        "containerStatuses": [STATUS | {"state": STATE}],
        "initContainerStatuses": [STATUS | {"name": "sidecar"}],
        "podIP": "10.0.0.1",
    },
}
STUCK = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
PENDING = POD | {"status": {"phase": "Pending", "conditions": [STUCK]}}
FAILED = POD | {"status": POD["status"] | {"phase": "Failed"}}
REFUSED = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
CANNOT_GROW = POD | {"status": POD["status"] | {"conditions": REFUSED}}
HALF_A_PAIR = POD | {
    "status": {"phase": "Pending", "conditions": [STUCK | {"message": "half a pair: \ud800"}]}
}
NODE = {
    "metadata": {key: META[key] for key in ("name", "uid", "resourceVersion", "labels")},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["unread"]}],
    },
}


class Watched(dict[str, Any]):
    """Remembers which of its keys were asked for."""

    def __init__(self, value: Json) -> None:
        super().__init__({key: watched(one) for key, one in value.items()})
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)


def watched(value: Any) -> Any:
    if isinstance(value, list):
        return [watched(one) for one in value]
    return Watched(value) if isinstance(value, dict) else value


def paths(value: Any, pick: Any = Any, where: str = "") -> Iterator[str]:
    """Where something was asked for that is not picked."""
    if isinstance(value, list):
        for one in value:
            yield from paths(one, *get_args(pick), where=f"{where}[]")
    elif isinstance(value, Watched) and is_typeddict(pick):
        fields = get_type_hints(pick)
        yield from (f"{where}.{key}" for key in value.asked - set(fields))
        for key in value.asked & set(fields) & set(value):
            yield from paths(dict.__getitem__(value, key), fields[key], f"{where}.{key}")


@pytest.mark.parametrize(
    ("obj", "pick", "read"),
    [
        (POD, PodPick, read_pod),
        (PENDING, PodPick, read_pod),
        (FAILED, PodPick, read_pod),
        (NODE, NodePick, read_node),
    ],
)
def test_every_field_that_is_read_is_picked(obj: Json, pick: Any, read: Any) -> None:
    seen = watched(obj)
    assert read(seen) == read(obj)
    controller_of(seen)
    assert sorted(set(paths(seen, pick))) == []
    assert {"containers", "overhead"} <= seen["spec"].asked or "allocatable" in seen["status"].asked


def document(obj: Json, resource: Any) -> Document:
    return Document(msgspec.Raw(json.dumps(obj).encode()), resource)


@pytest.mark.parametrize("obj", [POD, PENDING, FAILED, CANNOT_GROW, HALF_A_PAIR])
def test_conditions_that_were_not_read_at_once_count(obj: Json) -> None:
    assert slim_pod(document(obj, PODS)).pod == read_pod(obj)


def test_what_those_conditions_change() -> None:
    """Else the test above could not fail."""
    assert read_pod(CANNOT_GROW).request != read_pod(POD).request
    assert read_pod(HALF_A_PAIR).unscheduled != read_pod(PENDING).unscheduled
    assert read_pod(PENDING).unscheduled is not None


@settings(max_examples=budget.examples(400))
@given(mutated([POD, PENDING, FAILED, CANNOT_GROW, NODE]))
def test_it_is_read_as_if_all_of_it_were_there(obj: Json) -> None:
    try:
        pod, node = document(obj, PODS), document(obj, NODES)
    except BadAnswer:
        return  # it cannot be told from others
    whole = pod.json()
    sighting = slim_pod(pod)
    assert sighting.pod == read_pod(whole)
    assert sighting.controller == controller_of(whole)
    assert read_node(slim_node(node)) == read_node(whole)


@settings(max_examples=budget.examples(200))
@given(mutated([POD, NODE]))
def test_it_is_the_same_object_whatever_is_read_of_it_at_once(obj: Json) -> None:
    raw = msgspec.Raw(json.dumps(obj).encode())
    told: set[object] = set()
    for fields in (HEAD, projections.APPWRAPPER, projections.NODE, projections.POD):
        try:
            told.add(Document(raw, PODS, fields).identity)
        except BadAnswer:
            told.add(None)
    assert len(told) == 1


def test_nine_tenths_are_left_out() -> None:
    picked = document(FAILED, PODS).pick(msgspec.json.Decoder(PodPick))
    (one,) = picked["status"]["containerStatuses"]
    assert one["state"] == {"terminated": {"exitCode": 3}, "waiting": {"reason": "unread"}}
    assert "volumes" not in document(POD, PODS).pick(msgspec.json.Decoder(PodPick))["spec"]
    assert "images" not in slim_node(document(NODE, NODES))["status"]


def test_a_pod_that_is_an_item_is_kept_whole() -> None:
    owner = META["ownerReferences"][0]  # type: ignore[index]
    ours = owner | {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper"}
    pod = POD | {"metadata": META | {"ownerReferences": [ours]}}
    sighting = slim_pod(document(pod, PODS))
    assert sighting.obj is not None
    assert sighting.obj["spec"] == POD["spec"]
    assert slim_pod(document(POD, PODS)).obj is None


APPWRAPPER = {
    "metadata": META | {"generation": 3, "finalizers": ["orphan"], "managedFields": [{"a": "b"}]},
    "spec": {"components": [{"template": POD}], "priority": 3},
    "status": {"state": "Running", "conditions": [{"type": "Init", "message": None}]},
}


@given(mutated([APPWRAPPER]))
@settings(max_examples=budget.examples(200))
def test_an_echo_is_told_without_the_spec_as_it_would_be_with_it(obj: Json) -> None:
    try:
        document = Document(msgspec.Raw(json.dumps(obj).encode()), APPWRAPPERS)
    except BadAnswer:
        return
    whole, picked = document.json(), document.pick(msgspec.json.Decoder(AppWrapperPick))
    assert spec_mark(picked) == spec_mark(whole)
    assert status_mark(picked.get("status")) == status_mark(whole.get("status"))
    assert picked["metadata"]["resourceVersion"] == whole["metadata"]["resourceVersion"]
