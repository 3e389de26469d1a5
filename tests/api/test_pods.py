"""Live pods and nodes, malformed ones included."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api import labels, pods
from mcad.api.autopilot import AutopilotSettings
from mcad.api.pods import read_node, read_pod
from mcad.api.podspec import effective_request, host_ports
from mcad.api.projections import PodStatusPick
from mcad.core.state.model import Node, Pod, PodPhase, Taint, Unscheduled
from tests.api.builders import Gi, container, pod_spec
from tests.api.strategies import mutated, shaped


def live_pod(**changes: Any) -> dict[str, Any]:
    meta = {"uid": "u", "namespace": "team", "name": "p"} | changes.pop("metadata", {})
    return {
        "metadata": meta,
        "spec": pod_spec(container("1", "1Gi"), nodeName="n1"),
        "status": {"phase": "Running"},
    } | changes


def test_a_pod_of_an_appwrapper() -> None:
    tags = {labels.PODSET: "2.1", labels.ATTEMPT: "4", labels.ITEM: "2"}
    meta = {"labels": tags, "creationTimestamp": "1970-01-01T00:00:02Z"}
    assert read_pod(live_pod(metadata=meta), "aw-uid") == Pod(
        uid="u",
        namespace="team",
        name="p",
        node="n1",
        phase=PodPhase.RUNNING,
        request=(("cpu", 1000), ("memory", Gi), ("pods", 1)),
        workload="aw-uid",
        item=2,
        index=1,
        attempt=4,
        created=2_000_000,
    )


def test_a_pod_without_an_appwrapper() -> None:
    pod = read_pod(live_pod())
    assert (pod.workload, pod.item, pod.index, pod.attempt) == ("", -1, -1, 0)


@pytest.mark.parametrize("hint", ["", "1", "1.", ".1", "a.b", "1.2.3", "-1.0", "1.999999999999", 7])
def test_a_podset_label_that_is_not_ours_is_no_hint(hint: Any) -> None:
    pod = read_pod(live_pod(metadata={"labels": {labels.PODSET: hint}}))
    assert (pod.item, pod.index) == (-1, -1)


@pytest.mark.parametrize(
    ("status", "phase"),
    [({}, "Pending"), ({"phase": "Succeeded"}, "Succeeded"), ({"phase": "Weird"}, "Unknown")],
)
def test_phases(status: dict[str, Any], phase: str) -> None:
    assert read_pod(live_pod(status=status)).phase == phase


def test_a_terminating_pod() -> None:
    assert read_pod(live_pod(metadata={"deletionTimestamp": "2023-07-21T11:18:27Z"})).terminating


def ended(*codes: Any, key: str = "containerStatuses") -> dict[str, Any]:
    return {key: [{"state": {"terminated": {"exitCode": code}}} for code in codes]}


OWN = {"labels": {labels.ATTEMPT: "1"}}


def test_the_exit_codes_of_a_failed_pod() -> None:
    failed = {"phase": "Failed"} | ended(0, 137, 3, 137, -1)
    assert read_pod(live_pod(metadata=OWN, status=failed)).exit_codes == (-1, 3, 137)
    assert read_pod(live_pod(metadata=OWN, status={"phase": "Failed"})).exit_codes == ()


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({}, {"phase": "Failed"} | ended(3)),
        (OWN, {"phase": "Running"} | ended(3)),
        (OWN, {"phase": "Failed"} | ended(3, key="initContainerStatuses")),
        (OWN, {"phase": "Failed", "containerStatuses": [{"lastState": ended(3)}]}),
        (OWN, {"phase": "Failed"} | ended("3", None, True, {})),
    ],
    ids=["not ours", "runs on", "init container", "an earlier end", "no codes"],
)
def test_exit_codes_that_do_not_count(metadata: Any, status: Any) -> None:
    assert read_pod(live_pod(metadata=metadata, status=status)).exit_codes == ()


def unscheduled(tags: dict[str, str], phase: str, condition: dict[str, Any]) -> Any:
    status = {"phase": phase, "conditions": [None, {"type": "Ready"}, condition]}
    return read_pod(live_pod(metadata={"labels": tags}, status=status)).unscheduled


REFUSED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available.",
    "lastTransitionTime": "1970-01-01T00:00:02Z",
}
OURS = {labels.ATTEMPT: "1"}


def test_the_message_of_the_scheduler_about_a_pending_pod() -> None:
    assert unscheduled(OURS, "Pending", REFUSED) == Unscheduled(
        "0/3 nodes are available.", 2_000_000
    )
    told = unscheduled(OURS, "Pending", REFUSED | {"message": "x" * 10_000})
    assert told.message == "x" * 256


@pytest.mark.parametrize(
    ("tags", "phase", "condition"),
    [
        ({}, "Pending", REFUSED),  # of no AppWrapper
        (OURS, "Running", REFUSED),
        (OURS, "Pending", REFUSED | {"reason": "SchedulingGated"}),
        (OURS, "Pending", REFUSED | {"type": "Ready"}),
        (OURS, "Pending", {}),
    ],
)
def test_conditions_of_the_scheduler_that_do_not_count(
    tags: dict[str, str], phase: str, condition: dict[str, Any]
) -> None:
    assert unscheduled(tags, phase, condition) is None


def test_how_a_pod_ended_does_not_make_it_another_kind_of_pod() -> None:
    """Pods that run differ in when they started only, and that is not picked."""
    text = b'{"containerStatuses":[{"name":"main","state":{"running":{"startedAt":"%d"}}}]}'
    decoder = msgspec.json.Decoder(PodStatusPick)
    assert decoder.decode(text % 1) == decoder.decode(text % 2)


def test_a_malformed_quantity_of_a_live_pod_counts_as_nothing() -> None:
    pod = read_pod(live_pod(spec=pod_spec(container("one"))))
    assert pod.request == (("pods", 1),)


def test_a_node() -> None:
    node = {
        "metadata": {"name": "n1", "labels": {"b": "2", "a": "1"}},
        "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "1930m", "memory": "4Gi", "pods": "110", "hugepages-1Gi": "0"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert read_node(node) == Node(
        name="n1",
        allocatable=(("cpu", 1930), ("memory", 4 * Gi), ("pods", 110)),
        taints=(Taint("gpu", "yes", "NoSchedule"),),
        labels=(("a", "1"), ("b", "2")),
    )


GPU_EVICTS = AutopilotSettings().evictions


@pytest.mark.parametrize(
    ("tags", "evicts"),
    [
        ({"autopilot.ibm.com/gpuhealth": "EVICT"}, ("nvidia.com/gpu",)),
        ({"autopilot.ibm.com/gpuhealth": "TESTING"}, ()),
        ({"autopilot.ibm.com/gpuhealth": "PASS"}, ()),
        ({}, ()),
    ],
)
def test_a_node_that_users_of_a_resource_have_to_leave(tags: Any, evicts: Any) -> None:
    node = {"metadata": {"name": "n1", "labels": tags}}
    assert read_node(node, GPU_EVICTS).evicts == evicts
    assert read_node(node).evicts == ()


@pytest.mark.parametrize("state", ["False", "Unknown", None])
def test_a_node_without_the_condition_ready_is_not_ready(state: Any) -> None:
    conditions = [{"type": "Ready", "status": state}] if state else []
    assert not read_node({"status": {"conditions": conditions}}).ready


def test_a_cordoned_node() -> None:
    assert read_node({"spec": {"unschedulable": True}}).unschedulable


KEYS = (
    *("metadata", "spec", "status", "labels", "containers", "initContainers", "resources"),
    *("requests", "limits", "phase", "taints", "conditions", "allocatable", "containerStatuses"),
    *("affinity", "ports", "overhead", "name", "cpu", "state", "terminated", "exitCode"),
)


@given(st.dictionaries(st.sampled_from(KEYS), shaped(*KEYS), max_size=6))
def test_no_live_object_raises(obj: dict[str, Any]) -> None:
    read_pod(obj)
    read_pod(obj | {"metadata": OWN, "status": {"phase": "Failed", "containerStatuses": obj}})
    read_pod(live_pod(metadata=OWN, status={"phase": "Failed", "containerStatuses": [obj]}))
    read_node(obj, GPU_EVICTS)


def _resources(cpu: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "example.com/gpu": 1, "memory": 0.5}, "limits": {"cpu": "9"}}


SIZED: list[Any] = [
    {
        "metadata": {"uid": "u", "name": "p"},
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "a", "resources": _resources("1"), "ports": [{"hostPort": 80}]},
                {"name": "b", "ports": [{"containerPort": 81, "protocol": "UDP"}]},
            ],
            "initContainers": [
                {"name": "c", "resources": _resources("8"), "restartPolicy": "Always"},
                {"name": "d", "resources": _resources("3"), "env": [{"name": "x", "value": "y"}]},
            ],
            "resources": {"requests": {"cpu": "2"}},
            "overhead": {"memory": "1Mi"},
            "hostNetwork": network,
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodResizePending", "reason": reason, "lastTransitionTime": "t"},
                {"type": "Ready", "status": "True"},
            ],
            "containerStatuses": [
                {"name": "a", "allocatedResources": {"cpu": "4"}, "resources": _resources("5")}
            ],
            "initContainerStatuses": [{"name": "c", "resources": _resources("6")}],
            "resources": {"requests": {"cpu": "7"}},
            "allocatedResources": {"cpu": "11"},
        },
    }
    for network, reason in ((True, "Infeasible"), (False, "Deferred"))
]


@given(mutated(SIZED))
def test_what_is_remembered_of_pods_made_alike_is_what_each_of_them_needs(obj: Any) -> None:
    """Read twice, the second time by memory, and read as if there were none."""
    known = pods._known_needs.cache_info().hits
    seen = [read_pod(obj), read_pod(obj)]
    spec, status = (
        value if isinstance(value := obj.get(key), dict) else {} for key in ("spec", "status")
    )
    needs = (effective_request(spec, status), host_ports(spec))
    assert [(pod.request, pod.ports) for pod in seen] == [needs, needs]
    assert pods._known_needs.cache_info().hits > known


def test_a_pod_of_its_own_kind_is_not_remembered() -> None:
    pods._known_needs.cache_clear()
    odd = pod_spec(container("1"), overhead={f"example.com/{n}": "1" for n in range(200)})
    assert len(read_pod(live_pod(spec=odd)).request) == 202
    assert pods._known_needs.cache_info().currsize == 0
