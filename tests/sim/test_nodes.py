"""Nodes that come, fail, recover, are cordoned, and go."""

from __future__ import annotations

import pytest

from mcad.sim.failures import Failure
from tests.sim.worlds import World, condition, virtually, world


def _taints(w: World, name: str) -> list[tuple[str, str]]:
    taints = w.get("Node", name)["spec"].get("taints") or []
    return [(one["key"].rpartition("/")[2], one["effect"]) for one in taints]


def _is_deleted(w: World, pod: str) -> bool:
    return "deletionTimestamp" in w.get("Pod", pod)["metadata"]


@virtually
async def test_a_node_is_what_kubectl_expects_to_see() -> None:
    async with world() as w:
        gpus = {"nvidia.com/gpu": "4"}
        w.cluster.add_node("n1", "8", "32Gi", 20, extended=gpus, labels={"a": "b"})
        await w.settle()

        node = w.get("Node", "n1")
        has = {"cpu": "8", "memory": "32Gi", "pods": "20"} | gpus
        assert node["status"]["allocatable"] == has
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
        assert node["metadata"]["labels"]["a"] == "b"
        assert condition(node, "Ready")["status"] == "True"
        assert condition(node, "MemoryPressure")["status"] == "False"
        assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
        assert {"type": "Hostname", "address": "n1"} in node["status"]["addresses"]
        lease = w.get("Lease", "n1", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "n1"

        with pytest.raises(Failure, match='nodes "n1" already exists'):
            w.cluster.add_node("n1")


@virtually
async def test_a_node_that_a_user_creates_becomes_ready_with_an_address_of_its_own() -> None:
    async with world("n1") as w:
        capacity = {"cpu": "2", "memory": "4Gi", "pods": "10"}
        w.create("Node", {"metadata": {"name": "mine"}, "status": {"capacity": capacity}})
        await w.settle()

        node = w.get("Node", "mine")
        assert condition(node, "Ready")["status"] == "True"
        assert node["status"]["allocatable"] == capacity
        assert node["spec"]["podCIDR"] == "10.244.1.0/24"
        w.pod("p", cpu="1", nodeSelector={"kubernetes.io/hostname": "mine"})
        await w.settle()
        assert w.phase("p") == "Running"
        assert w.get("Pod", "p")["status"]["hostIP"] == "172.18.0.3"


@virtually
async def test_cordoning_taints_and_uncordoning_takes_the_taint_away() -> None:
    async with world("n1") as w:
        soft = [{"key": "mine", "effect": "PreferNoSchedule"}]
        w.respec("Node", "n1", taints=soft)
        w.cluster.cordon("n1")
        w.pod("waits")
        await w.settle()
        taints = [("mine", "PreferNoSchedule"), ("unschedulable", "NoSchedule")]
        assert sorted(_taints(w, "n1")) == taints
        assert w.node_of("waits") == ""
        assert ("NodeNotSchedulable", "Node n1 status is now: NodeNotSchedulable") in w.events("n1")

        w.cluster.cordon("n1", unschedulable=False)
        await w.settle()
        assert _taints(w, "n1") == [("mine", "PreferNoSchedule")]
        assert w.phase("waits") == "Running"


@virtually
async def test_pods_of_a_failed_node_are_unready_then_evicted_after_five_minutes() -> None:
    async with world("n1") as w:
        w.pod("p")
        w.pod("patient", tolerations=[{"operator": "Exists"}])
        unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
        hasty = unreachable | {"operator": "Exists", "tolerationSeconds": 10}
        w.pod("hasty", tolerations=[hasty])
        await w.settle()
        w.cluster.fail_node("n1")
        await w.settle()

        assert _taints(w, "n1") == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
        assert condition(w.get("Node", "n1"), "Ready")["status"] == "Unknown"
        assert w.condition("p", "Ready")["status"] == "False"
        assert ("NodeNotReady", "Node is not ready") in w.events("p")
        assert not _is_deleted(w, "hasty")

        await w.settle(10)
        assert _is_deleted(w, "hasty")
        await w.settle(280)
        assert not _is_deleted(w, "p")
        await w.settle(20)
        assert _is_deleted(w, "p"), "and still there: its kubelet would have to end it"
        assert w.condition("p", "DisruptionTarget")["reason"] == "DeletionByTaintManager"
        assert not _is_deleted(w, "patient")

        w.cluster.recover_node("n1")
        await w.settle()
        assert w.find("Pod", "p") is None
        assert w.condition("patient", "Ready")["status"] == "True"


@virtually
async def test_a_node_that_recovers_in_time_keeps_its_pods() -> None:
    async with world("n1") as w:
        w.pod("p", command=["sleep", "100"], restartPolicy="Never")
        w.pod("server")
        await w.settle()
        w.cluster.fail_node("n1")
        await w.settle(200)
        assert w.phase("p") == "Running"  # the control plane cannot know better

        w.cluster.recover_node("n1")
        await w.settle(1)
        assert w.phase("p") == "Succeeded"
        said = w.events("server")
        assert ("TaintManagerEviction", "Cancelling deletion of Pod default/server") in said
        await w.settle(400)
        assert w.phase("server") == "Running"


@virtually
async def test_a_no_execute_taint_evicts_pods_that_do_not_tolerate_it() -> None:
    async with world("n1") as w:
        w.pod("p")
        w.pod("bears", tolerations=[{"key": "out", "operator": "Exists"}])
        await w.settle()
        taints = [{"key": "out", "effect": "NoExecute"}]
        w.respec("Node", "n1", taints=taints)
        await w.settle()

        assert w.find("Pod", "p") is None
        assert w.phase("bears") == "Running"
        w.pod("late", nodeName="n1")
        await w.settle()
        assert w.find("Pod", "late") is None


@virtually
async def test_pods_of_a_deleted_node_are_collected_after_a_while() -> None:
    async with world("n1", "n2") as w:
        w.pod("p", nodeName="n1")
        w.pod("stays", nodeName="n2")
        await w.settle()
        w.cluster.remove_node("n1")
        await w.settle(30)
        assert w.find("Pod", "p") is not None

        await w.settle(15)
        assert w.find("Pod", "p") is None
        assert w.phase("stays") == "Running"
        assert w.find("Lease", "n1", "kube-node-lease") is None


@virtually
async def test_the_room_of_a_node_that_is_gone_is_not_used() -> None:
    async with world("n1", cpu="1") as w:
        w.pod("p", cpu="1")
        await w.settle()
        w.cluster.remove_node("n1")
        w.cluster.add_node("n1", cpu="1")
        w.pod("q", cpu="1")
        await w.settle(30)

        assert w.placed() == {"p": "n1", "q": ""}
