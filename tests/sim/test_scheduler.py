"""Where pods go, and what is said about those that go nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.kube.types import Json
from mcad.sim.scheduling.deciding import Decider
from tests.sim.worlds import World, virtually, world

APP = {"matchLabels": {"app": "a"}}
DISRUPTED = "DisruptionTarget"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def _message(w: World, pod: str) -> str:
    condition = w.condition(pod, "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    message: str = condition["message"]
    return message


def _near(kind: str, key: str, **more: Any) -> Json:
    term = {"topologyKey": key, "labelSelector": APP} | more
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@virtually
async def test_a_bound_pod_has_its_condition_and_its_event() -> None:
    async with world("n1") as w:
        w.pod("p")
        await w.settle(0.5)

        assert w.node_of("p") == "n1"
        assert w.condition("p", "PodScheduled")["status"] == "True"
        assert w.get("Pod", "p")["metadata"]["generation"] == 1  # a binding is no new generation
        assert w.events("p")[0] == ("Scheduled", "Successfully assigned default/p to n1")


@virtually
async def test_the_reasons_of_different_nodes_are_counted_and_sorted() -> None:
    async with world() as w:
        w.cluster.add_node("n1", labels={"disk": "ssd"})
        gpu = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
        w.cluster.add_node("n2", taints=[gpu], labels={"disk": "ssd"})
        w.cluster.add_node("n3", labels={"disk": "hdd"})
        w.cluster.add_node("n4")
        w.cluster.cordon("n4")
        w.pod("p", cpu="5", nodeSelector={"disk": "ssd"})
        await w.settle()

        assert _message(w, "p") == (
            "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node"
            " affinity/selector, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
        )


@virtually
async def test_without_nodes_a_pod_waits_until_there_is_one() -> None:
    async with world() as w:
        w.pod("p")
        await w.settle()
        assert _message(w, "p") == "no nodes available to schedule pods"

        w.cluster.add_node("n1")
        await w.settle()
        assert w.node_of("p") == "n1"


@virtually
async def test_room_that_becomes_free_goes_to_the_first_in_line() -> None:
    async with world("n1") as w:
        w.pod("running", cpu="4", command=["sleep", "30"], restartPolicy="Never")
        await w.settle(0.5)
        w.pod("first", cpu="4")
        w.pod("second", cpu="4")
        await w.settle(20)
        assert w.placed() == {"first": "", "running": "n1", "second": ""}

        await w.settle(20)
        assert w.placed() == {"first": "n1", "running": "n1", "second": ""}


@virtually
async def test_the_more_important_is_looked_at_first() -> None:
    async with world() as w:
        for name, value in (("low", 10), ("high", 1000)):
            w.create("PriorityClass", {"metadata": {"name": name}, "value": value})
        w.pod("low", cpu="4", priorityClassName="low")
        w.pod("high", cpu="4", priorityClassName="high")
        w.cluster.add_node("n1")
        await w.settle()

        assert w.placed() == {"high": "n1", "low": ""}


@virtually
async def test_a_toleration_lets_a_pod_in_and_prefer_no_schedule_only_weighs() -> None:
    async with world() as w:
        hard = {"key": "k", "value": "v", "effect": "NoSchedule"}
        w.cluster.add_node("hard", taints=[hard])
        w.pod("refused")
        w.pod("let-in", tolerations=[{"key": "k", "operator": "Equal", "value": "v"}])
        await w.settle()
        assert w.placed() == {"let-in": "hard", "refused": ""}

        w.cluster.add_node("soft", taints=[{"key": "s", "effect": "PreferNoSchedule"}])
        await w.settle()
        assert w.node_of("refused") == "soft"

        w.cluster.add_node("clean", cpu="1")
        w.pod("choosy", cpu="500m")
        await w.settle()
        assert w.node_of("choosy") == "clean"


@virtually
async def test_required_and_preferred_node_affinity() -> None:
    async with world() as w:
        for name, rank in (("a", "1"), ("b", "5"), ("c", "9")):
            w.cluster.add_node(name, labels={"rank": rank})
        high = {"key": "rank", "operator": "Gt", "values": ["4"]}
        highest = {"matchExpressions": [{"key": "rank", "operator": "In", "values": ["9"]}]}
        wish = [{"weight": 5, "preference": highest}]
        for name, term in (("p0", {"matchExpressions": [high]}), ("none", {})):
            required = {"nodeSelectorTerms": [term]}
            affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
            affinity |= {"preferredDuringSchedulingIgnoredDuringExecution": wish}
            w.pod(name, affinity={"nodeAffinity": affinity})
        w.pod("p1", affinity=w.get("Pod", "p0")["spec"]["affinity"])
        await w.settle()

        assert w.placed() == {"p0": "c", "p1": "c", "none": ""}


@virtually
async def test_pods_keep_themselves_apart_on_nodes_in_their_own_namespace() -> None:
    async with world("n1", "n2") as w:
        w.create("Namespace", {"metadata": {"name": "other"}})
        apart = _near("podAntiAffinity", HOST)
        for number in range(3):
            w.pod(f"p{number}", labels={"app": "a"}, affinity=apart)
        w.pod("plain", labels={"app": "a"}, nodeName="n1")
        w.pod("elsewhere", "other", affinity=apart, nodeSelector={HOST: "n1"})
        await w.settle()

        placed = w.placed()
        assert sorted(placed[f"p{n}"] for n in range(3)) == ["", "", "n2"], "n1 has one already"
        assert placed["elsewhere"] == "n1", "its namespace has no such pod"
        waiting = next(name for name in ("p0", "p1", "p2") if not placed[name])
        assert _message(w, waiting) == (
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
        )

        w.remeta("Pod", "plain", labels={"app": "b"})
        await w.settle()
        assert sorted(w.placed()[f"p{n}"] for n in range(3)) == ["", "n1", "n2"]


@virtually
async def test_keys_of_a_term_stand_for_the_values_that_the_pod_has() -> None:
    """As kube-apiserver merges them into the selector; a key that the pod lacks counts for
    nothing."""
    async with world("n1", "n2") as w:
        match, other = {"matchLabelKeys": ["rev", "none"]}, {"mismatchLabelKeys": ["rev"]}
        for name, more in (("match", match), ("other", other)):
            affinity = _near("podAntiAffinity", HOST, **more)
            for number in range(4):
                labels = {"app": "a", "rev": f"{name}-{number % 2}"}
                where = {HOST: "n1"}
                w.pod(f"{name}-{number}", labels=labels, affinity=affinity, nodeSelector=where)
            await w.settle()

        placed = [name for name, node in w.placed().items() if node]
        found = [w.get("Pod", name)["metadata"]["labels"]["rev"] for name in placed]
        assert sorted(found) == ["match-0", "match-1"]


@virtually
async def test_a_pod_with_an_unknown_requirement_waits_and_says_so() -> None:
    async with world("n1") as w:
        company = _near("podAffinity", HOST)
        even = {"topologyKey": ZONE, "maxSkew": 1, "labelSelector": APP}
        wish = even | {"whenUnsatisfiable": "ScheduleAnyway"}
        w.pod("company", affinity=company, topologySpreadConstraints=[even])
        w.pod("zones", affinity=_near("podAntiAffinity", ZONE))
        w.pod("others", affinity=_near("podAntiAffinity", HOST, namespaceSelector={}))
        w.pod("wishes", topologySpreadConstraints=[wish])
        await w.settle(1)
        w.cluster.add_node("n2")
        await w.settle()

        assert w.placed() == {"company": "", "others": "", "wishes": "n1", "zones": ""}
        not_known = "the embedded scheduler does not know this; a real cluster does"
        assert _message(w, "company") == f"podAffinity, topologySpreadConstraints: {not_known}"
        beyond = f"podAntiAffinity of zones or namespaces: {not_known}"
        assert _message(w, "zones") == _message(w, "others") == beyond
        assert ("FailedScheduling", beyond) in w.events("zones")


@virtually
async def test_gates_and_other_schedulers_keep_a_pod_out_of_the_queue() -> None:
    async with world("n1") as w:
        w.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
        w.pod("foreign", schedulerName="other")
        await w.settle()
        assert w.placed() == {"foreign": "", "gated": ""}
        assert w.events("foreign") == []
        assert w.condition("gated", "PodScheduled")["reason"] == "SchedulingGated"

        w.respec("Pod", "gated", schedulingGates=[])
        await w.settle()
        assert w.placed() == {"foreign": "", "gated": "n1"}


@virtually
async def test_a_thousand_equal_pods_that_wait_cost_one_try_for_each_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = []
    choose = Decider.choose

    def counted(self: Decider, pod: Any) -> Any:
        tries.append(pod)
        return choose(self, pod)

    monkeypatch.setattr(Decider, "choose", counted)
    async with world("n1", "n2", cpu="1") as w:
        w.pod("running", cpu="1", command=["sleep", "10"], restartPolicy="Never")
        w.pod("staying", cpu="1")
        await w.settle(0.5)
        for number in range(1000):
            w.pod(f"p{number}", cpu="1")
        await w.settle(5)
        assert len(tries) == 3  # two that fit, and one for all that do not
        assert all(_message(w, f"p{n}") == _message(w, "p0") for n in (1, 500, 999))

        await w.settle(20)
        assert w.node_of("p0") != ""
        assert len(tries) <= 6


def _classes(w: World) -> None:
    for name, value in (("low", 1), ("high", 10)):
        w.create("PriorityClass", {"metadata": {"name": name}, "value": value})


@virtually
async def test_pods_of_lower_priority_are_preempted() -> None:
    async with world("n1", "n2") as w:
        _classes(w)
        w.pod("a", cpu="2", priorityClassName="low")
        w.pod("b", cpu="3", priorityClassName="low")
        await w.settle()
        w.pod("equal", cpu="3", priorityClassName="low")
        w.pod("urgent", cpu="4", priorityClassName="high")
        before = w.registry.store.version
        await w.settle()
        assert w.node_of("urgent")
        assert w.node_of("equal") == ""
        (victim,) = {"a", "b"} - w.placed().keys()
        gone = [one.obj for one in w.history("Pod", before) if one.key[1] == victim]
        (why,) = (one for one in gone[-1]["status"]["conditions"] if one["type"] == DISRUPTED)
        assert why["reason"] == "PreemptionByScheduler"
        assert w.get("Pod", "urgent")["status"]["nominatedNodeName"] == w.node_of("urgent")
        assert "Preempted" in w.reasons(victim)


@virtually
async def test_as_few_pods_as_possible_leave_and_none_for_what_never_preempts() -> None:
    async with world("n1") as w:
        _classes(w)
        for name in "abcd":
            w.pod(name, cpu="1")
        await w.settle()
        w.pod("patient", cpu="1", priorityClassName="high", preemptionPolicy="Never")
        await w.settle()
        assert w.node_of("patient") == ""
        w.delete("Pod", "patient")
        w.pod("large", cpu="5", priorityClassName="high")
        await w.settle()
        assert len(w.placed()) == 5, "it fits nowhere, whichever pods leave"
        w.pod("urgent", cpu="1", priorityClassName="high")
        await w.settle()
        assert w.node_of("urgent") == "n1"
        assert sorted(w.placed()) == ["a", "b", "c", "large", "urgent"], "the youngest one left"
