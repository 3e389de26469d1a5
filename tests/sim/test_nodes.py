"""Nodes that come, fail, recover, are cordoned, and go."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.sim.failures import Failure
from tests.sim.worlds import World, condition, virtually, world

Json = dict[str, Any]


def _taints(w: World, name: str) -> list[tuple[str, str]]:
    taints = w.get("Node", name)["spec"].get("taints") or []
    return [(one["key"].rpartition("/")[2], one["effect"]) for one in taints]


@virtually
async def test_a_node_is_what_kubectl_expects_to_see() -> None:
    async with world() as w:
        w.cluster.add_node(
            "n1",
            cpu="8",
            memory="32Gi",
            pods=20,
            extended={"nvidia.com/gpu": "4"},
            labels={"a": "b"},
        )
        await w.settle()

        node = w.get("Node", "n1")
        assert node["status"]["allocatable"] == {
            "cpu": "8",
            "memory": "32Gi",
            "pods": "20",
            "nvidia.com/gpu": "4",
        }
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
        body = {"metadata": {"name": "mine"}, "status": {"capacity": capacity}}
        w.create("Node", body)
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
        w.change("Node", "n1", lambda node: node | {"spec": node["spec"] | {"taints": soft}})
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
        hasty = {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 10,
        }
        w.pod("hasty", tolerations=[hasty])
        await w.settle()
        w.cluster.fail_node("n1")
        await w.settle()

        assert _taints(w, "n1") == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
        assert condition(w.get("Node", "n1"), "Ready")["status"] == "Unknown"
        assert w.condition("p", "Ready")["status"] == "False"
        assert ("NodeNotReady", "Node is not ready") in w.events("p")
        assert "deletionTimestamp" not in w.get("Pod", "hasty")["metadata"]

        await w.settle(10)
        assert "deletionTimestamp" in w.get("Pod", "hasty")["metadata"]
        await w.settle(280)
        assert "deletionTimestamp" not in w.get("Pod", "p")["metadata"]
        await w.settle(20)
        pod = w.get("Pod", "p")  # still there: its kubelet would have to end it
        assert "deletionTimestamp" in pod["metadata"]
        assert condition(pod, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
        assert "deletionTimestamp" not in w.get("Pod", "patient")["metadata"]

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
        assert w.phase("p") == "Running"  # nobody can know better

        w.cluster.recover_node("n1")
        await w.settle(1)
        assert w.phase("p") == "Succeeded"
        said = w.events("server")
        assert ("TaintManagerEviction", "Cancelling deletion of Pod default/server") in said
        await w.settle(400)
        assert w.phase("server") == "Running"


@virtually
async def test_a_no_execute_taint_evicts_who_does_not_bear_it() -> None:
    async with world("n1") as w:
        w.pod("p")
        w.pod("bears", tolerations=[{"key": "out", "operator": "Exists"}])
        await w.settle()
        taints = [{"key": "out", "effect": "NoExecute"}]
        w.change("Node", "n1", lambda node: node | {"spec": node["spec"] | {"taints": taints}})
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
