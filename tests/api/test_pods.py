"""Live pods and nodes, malformed ones included."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api import labels, pods, projections
from mcad.api.autopilot import AutopilotSettings
from mcad.api.pods import read_node, read_pod
from mcad.api.podspec import effective_request, host_ports
from mcad.api.projections import PodStatusPick
from mcad.api.wire import to_json
from mcad.core.state.model import Node, Pod, PodPhase, Stuck, StuckReason, Taint, Unscheduled
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


def live(tags: dict[str, str], **status: Any) -> Pod:
    """A pod with these labels and this status."""
    return read_pod(live_pod(metadata={"labels": tags}, status={"phase": "Running"} | status))


def condition(kind: str, status: Any = "True", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": status} | fields


@pytest.mark.parametrize(
    ("tags", "conditions", "ready"),
    [
        (OURS, [condition("Initialized"), condition("Ready"), condition("ContainersReady")], True),
        (OURS, [condition("Ready", "False"), condition("ContainersReady")], False),
        (OURS, [condition("Ready", "Unknown")], False),
        (OURS, [condition("Ready", True)], False),
        (OURS, [condition("ContainersReady")], False),
        (OURS, [None, "Ready", {"type": ["Ready"], "status": "True"}], False),
        (OURS, {"type": "Ready", "status": "True"}, False),
        (OURS, None, False),
        ({}, [condition("Ready")], False),  # of no AppWrapper
    ],
)
def test_a_pod_is_ready_by_its_condition(tags: Any, conditions: Any, ready: bool) -> None:
    assert live(tags, conditions=conditions).ready is ready


@pytest.mark.parametrize(
    ("tags", "gates", "gated"),
    [
        (OURS, [{"name": "example.com/hold"}], True),
        (OURS, [], False),
        (OURS, None, False),
        (OURS, "example.com/hold", False),
        ({}, [{"name": "example.com/hold"}], False),  # of no AppWrapper
    ],
)
def test_a_pod_is_gated_as_long_as_it_has_a_gate(tags: Any, gates: Any, gated: bool) -> None:
    spec = pod_spec(container("1"), schedulingGates=gates)
    pod = read_pod(live_pod(metadata={"labels": tags}, spec=spec, status={"phase": "Pending"}))
    assert pod.gated is gated


@pytest.mark.parametrize(
    ("tags", "generation", "node", "amended"),
    [
        (OURS, 1, "", False),
        (OURS, 2, "", True),
        (OURS, 2, "n0", False),
        (OURS, None, "", False),  # before Kubernetes 1.33
        (OURS, "2", "", False),
        ({}, 2, "", False),  # of no AppWrapper
    ],
)
def test_a_pod_without_a_node_may_have_been_amended(
    tags: Any, generation: Any, node: str, amended: bool
) -> None:
    spec = pod_spec(container("1")) | ({"nodeName": node} if node else {})
    meta = {"labels": tags, "generation": generation}
    pod = read_pod(live_pod(metadata=meta, spec=spec, status={"phase": "Pending"}))
    assert pod.amended is amended


@pytest.mark.parametrize(
    ("conditions", "disruption"),
    [
        *(
            ([condition("DisruptionTarget", reason=reason)], reason)
            for reason in (
                *("PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI"),
                *("DeletionByPodGC", "TerminationByKubelet"),
            )
        ),
        ([condition("DisruptionTarget")], "DisruptionTarget"),
        ([condition("DisruptionTarget", reason=7)], "DisruptionTarget"),
        ([condition("DisruptionTarget", "False", reason="PreemptionByScheduler")], ""),
        ([condition("Ready", "False", reason="PodFailed")], ""),
    ],
)
def test_why_a_pod_is_made_to_go(conditions: Any, disruption: str) -> None:
    for phase in ("Pending", "Running", "Failed"):
        assert live(OURS, phase=phase, conditions=conditions).disruption == disruption
    assert live({}, conditions=conditions).disruption == ""


def test_devices_of_a_resource_claim_are_taken_from_no_node() -> None:
    name = "example.com/gpu"
    one = container("1") | {"resources": {"limits": {"cpu": "1", name: "1", "example.com/fpga": 2}}}
    mapped = [{"containerName": "main", "resourceName": name, "requestName": "container-0"}]
    status = {"extendedResourceClaimStatus": {"requestMappings": mapped}}
    claims = read_pod(live_pod(spec=pod_spec(one), status=status))
    assert dict(claims.request) == {"cpu": 1000, "example.com/fpga": 2, "pods": 1}
    assert dict(read_pod(live_pod(spec=pod_spec(one))).request)[name] == 1


def test_a_pod_is_nominated_to_a_node_until_it_is_bound() -> None:
    given = {"phase": "Pending", "nominatedNodeName": "node-1"}
    assert read_pod({"spec": {}, "status": given}).nominated == "node-1"
    assert live({}, **given).nominated == ""


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HERE = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}


def daemon_pod(
    *terms: Any, owner: Any = DAEMON, phase: str = "Pending", **spec: Any
) -> dict[str, Any]:
    """A pod as a DaemonSet creates it, with these terms of its affinity."""
    wanted = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}, "podAffinity": {}}
    return {
        "metadata": {"name": "d", "namespace": "team", "uid": "u", "ownerReferences": [owner]},
        "spec": {"affinity": wanted} | spec,
        "status": {"phase": phase},
    }


def test_a_pod_of_a_daemon_set_is_nominated_to_its_node_until_it_is_bound() -> None:
    there = {"matchFields": [HERE]}
    assert read_pod(daemon_pod(there)).nominated == "node-1"
    picked = projections.POD.decode(to_json(daemon_pod(there)))
    assert "podAffinity" not in picked["spec"]["affinity"]
    assert read_pod(picked).nominated == "node-1"
    assert read_pod(daemon_pod(there, nodeName="node-1")).nominated == ""
    assert read_pod(daemon_pod(there, owner=DAEMON | {"kind": "ReplicaSet"})).nominated == ""
    assert read_pod(daemon_pod(there, owner=DAEMON | {"apiVersion": "x/v1"})).nominated == ""


@pytest.mark.parametrize(
    "terms",
    [
        [],
        [{"matchFields": [HERE]}, {"matchFields": [HERE]}],
        [{"matchFields": [HERE, HERE]}],
        [{"matchFields": [HERE | {"operator": "NotIn"}]}],
        [{"matchFields": [HERE | {"key": "metadata.uid"}]}],
        [{"matchFields": [HERE | {"values": ["node-1", "node-2"]}]}],
        [{"matchFields": [HERE | {"values": None}]}],
        [{"matchFields": [HERE | {"values": [1]}]}],
        [{"matchFields": 7}],
        [{"matchExpressions": [HERE]}],
        [None],
    ],
)
def test_a_pod_that_may_go_to_other_nodes_is_nominated_to_none(terms: list[Any]) -> None:
    assert read_pod(daemon_pod(*terms)).nominated == ""


def waits(reason: str) -> dict[str, Any]:
    return {"name": "main", "state": {"waiting": {"reason": reason}}}


@pytest.mark.parametrize("key", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
def test_a_pod_whose_container_does_not_run(phase: str, key: str) -> None:
    told = Stuck(StuckReason.CRASH, "container main: CrashLoopBackOff")
    status = {"phase": phase, key: [waits("CrashLoopBackOff")]}
    ended = phase in ("Succeeded", "Failed")
    assert live(OURS, **status).stuck == (None if ended else told)
    assert live({}, **status).stuck is None


BUSY: list[Any] = [
    {
        "metadata": {"uid": "u", "name": "p", "labels": tags},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "schedulingGates": [{"name": "example.com/hold"}],
        },
        "status": {
            "phase": phase,
            "conditions": [
                condition("Ready", reason="x", message="unread"),
                condition("DisruptionTarget", reason="DeletionByPodGC"),
                REFUSED,
            ],
            "containerStatuses": [
                waits(reason)
                | {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
            ],
            "initContainerStatuses": [waits("PodInitializing"), waits(reason)],
        },
    }
    for tags in (OURS, {})
    for phase, reason in (("Pending", "ErrImagePull"), ("Running", "CrashLoopBackOff"))
]


@given(mutated(BUSY))
def test_what_is_picked_of_a_pod_is_all_that_is_read(obj: Any) -> None:
    try:
        picked = projections.POD.decode(to_json(obj))
    except msgspec.MsgspecError:
        return  # malformed: then the whole object is read
    assert read_pod(picked) == read_pod(obj)


def test_conditions_that_are_text_are_read_of_pods_of_appwrappers_only() -> None:
    ours, other = (read_pod(projections.POD.decode(to_json(BUSY[at]))) for at in (0, 2))
    assert (ours.ready, ours.gated, ours.disruption) == (True, True, "DeletionByPodGC")
    assert ours.stuck == Stuck(
        StuckReason.IMAGE, "container main: ImagePullBackOff: “ErrImagePull”"
    )
    assert ours.unscheduled == Unscheduled("0/3 nodes are available.", 2_000_000)
    assert (other.ready, other.gated, other.disruption, other.stuck) == (False, False, "", None)


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
    conditions = [{"type": "DiskPressure", "status": "True"}]
    conditions += [{"type": "Ready", "status": state}] if state else []
    assert not read_node({"status": {"conditions": conditions}}).ready


def test_a_cordoned_node() -> None:
    assert read_node({"spec": {"unschedulable": True}}).unschedulable


KEYS = (
    *("metadata", "spec", "status", "labels", "containers", "initContainers", "resources"),
    *("requests", "limits", "phase", "taints", "conditions", "allocatable", "containerStatuses"),
    *("affinity", "ports", "overhead", "name", "cpu", "state", "terminated", "exitCode"),
    *("waiting", "reason", "lastState", "schedulingGates", "type"),
)


@given(st.dictionaries(st.sampled_from(KEYS), shaped(*KEYS), max_size=6))
def test_no_live_object_raises(obj: dict[str, Any]) -> None:
    read_pod(obj)
    read_pod(obj | {"metadata": OWN})
    read_pod(live_pod(metadata=OWN, status=obj))
    read_pod(live_pod(metadata=OWN, status={"conditions": [obj], "containerStatuses": [obj]}))
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
