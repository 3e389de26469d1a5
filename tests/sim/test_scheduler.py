"""Where pods go, and what is said about those that go nowhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mcad.sim.controllers import scheduler as module
from mcad.sim.scheduling.deciding import Decider
from tests.sim.nodeside import World, pod, virtually, world

Json = dict[str, Any]
APP = {"matchLabels": {"app": "a"}}
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def _message(w: World, pod: str) -> str:
    condition = w.condition(pod, "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    message: str = condition["message"]
    return message


def _spread(key: str, skew: int = 1, **more: Any) -> Json:
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    return constraint | {"labelSelector": APP} | more


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
async def test_pods_without_constraints_are_spread_by_what_is_free() -> None:
    async with world("n1", "n2", "n3") as w:
        for number in range(6):
            w.pod(f"p{number}", cpu="1")
        await w.settle()

        assert Counter(w.placed().values()) == {"n1": 2, "n2": 2, "n3": 2}


@virtually
async def test_requests_add_up_and_the_rest_waits_with_the_words_of_kube_scheduler() -> None:
    async with world("n1", "n2") as w:
        for number in range(5):
            w.pod(f"p{number}", cpu="1500m")
        await w.settle()

        assert [w.node_of(f"p{n}") != "" for n in range(5)] == [True] * 4 + [False]
        assert _message(w, "p4") == (
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption:"
            " 0/2 nodes are available: 2 No preemption victims found for incoming pod."
        )
        assert ("FailedScheduling", _message(w, "p4")) in w.events("p4")


@virtually
async def test_a_request_above_the_size_of_every_node_cannot_be_helped_by_preemption() -> None:
    async with world("n1", "n2") as w:
        w.pod("p", cpu="9", requests={"nvidia.com/gpu": "1"})
        await w.settle()

        assert _message(w, "p") == (
            "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient nvidia.com/gpu."
            " no new claims to deallocate, preemption: 0/2 nodes are available:"
            " 2 Preemption is not helpful for scheduling."
        )


@virtually
async def test_the_reasons_of_different_nodes_are_counted_and_sorted() -> None:
    async with world("n1") as w:
        w.cluster.add_node("n2", taints=[{"key": "gpu", "value": "x", "effect": "NoSchedule"}])
        w.cluster.add_node("n3", labels={"disk": "hdd"})
        w.cluster.add_node("n4")
        w.cluster.cordon("n4")
        w.change("Node", "n1", lambda n: n | {"metadata": _labelled(n, disk="ssd")})
        w.change("Node", "n2", lambda n: n | {"metadata": _labelled(n, disk="ssd")})
        w.pod("p", cpu="5", nodeSelector={"disk": "ssd"})
        await w.settle()

        assert _message(w, "p") == (
            "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node"
            " affinity/selector, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
            " no new claims to deallocate, preemption: 0/4 nodes are available:"
            " 4 Preemption is not helpful for scheduling."
        )


def _labelled(obj: Json, **labels: str) -> Json:
    metadata: Json = obj["metadata"]
    return metadata | {"labels": (metadata.get("labels") or {}) | labels}


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
async def test_the_slots_of_a_node_count() -> None:
    async with world() as w:
        w.cluster.add_node("n1", pods=2)
        for number in range(3):
            w.pod(f"p{number}")
        await w.settle()

        assert w.placed() == {"p0": "n1", "p1": "n1", "p2": ""}
        assert "1 Too many pods" in _message(w, "p2")


@virtually
async def test_room_that_becomes_free_goes_to_who_came_first() -> None:
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
        _classes(w)
        w.pod("low", cpu="4", priorityClassName="low")
        w.pod("high", cpu="4", priorityClassName="high")
        w.cluster.add_node("n1")
        await w.settle()

        assert w.placed() == {"high": "n1", "low": ""}


def _classes(w: World, **more: Any) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        body = {"metadata": {"name": name}, "value": value} | more
        w.create("PriorityClass", body, "scheduling.k8s.io/v1")


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
        required = {"key": "rank", "operator": "Gt", "values": ["4"]}
        preferred = {"key": "rank", "operator": "In", "values": ["9"]}
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [required]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": {"matchExpressions": [preferred]}}
            ],
        }
        for number in range(3):
            w.pod(f"p{number}", affinity={"nodeAffinity": affinity})
        w.pod(
            "none",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
                }
            },
        )
        await w.settle()

        assert w.placed() == {"p0": "c", "p1": "c", "p2": "c", "none": ""}


@virtually
async def test_affinity_by_the_name_of_a_node_is_reported_as_kube_scheduler_does() -> None:
    async with world("n1", "n2", cpu="1") as w:
        field = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
        affinity = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [field]}]
                }
            }
        }
        w.pod("fits", cpu="600m", affinity=affinity)
        await w.settle(1)
        w.pod("waits", cpu="600m", affinity=affinity)
        await w.settle()

        assert w.node_of("fits") == "n2"
        assert _message(w, "waits").startswith(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s)"
            " [NodeAffinity]."
        )


@virtually
async def test_node_affinity_that_contradicts_itself_is_said_so() -> None:
    async with world("n1", "n2") as w:
        fields = [
            {"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")
        ]
        required = {"nodeSelectorTerms": [{"matchFields": fields}]}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        w.pod("p", affinity={"nodeAffinity": affinity})
        await w.settle()

        assert _message(w, "p") == (
            "0/2 nodes are available: pod affinity terms conflict. not found"
        )


@virtually
async def test_a_pod_takes_over_where_its_node_is() -> None:
    async with world() as w:
        w.cluster.add_node("n1", labels={ZONE: "z1"})
        w.pod("p", labels={"app": "a"})
        await w.settle()

        assert w.get("Pod", "p")["metadata"]["labels"] == {"app": "a", ZONE: "z1"}


@virtually
async def test_two_pods_with_the_same_host_port_never_share_a_node() -> None:
    async with world("n1", "n2") as w:
        for number, address in enumerate(("", "10.0.0.1", "10.0.0.2")):
            port = {"containerPort": 80, "hostPort": 80} | ({"hostIP": address} if address else {})
            containers = [{"name": "c", "image": "i", "ports": [port]}]
            w.create(
                "Pod", {"metadata": {"name": f"p{number}"}, "spec": {"containers": containers}}
            )
            await w.settle(0.5)
        w.create("Pod", {"metadata": {"name": "p3"}, "spec": {"containers": containers}})
        await w.settle()

        placed = w.placed()
        assert placed["p0"] != placed["p1"] == placed["p2"]
        assert placed["p3"] == ""
        assert "2 node(s) didn't have free ports for the requested pod ports" in _message(w, "p3")


@virtually
async def test_anti_affinity_keeps_pods_apart_and_existing_pods_are_respected() -> None:
    async with world("n1", "n2") as w:
        apart = _near("podAntiAffinity", HOST)
        for number in range(3):
            w.pod(f"p{number}", labels={"app": "a"}, affinity=apart)
        w.pod("plain", labels={"app": "a"})
        w.pod("other", labels={"app": "b"})
        await w.settle()

        placed = w.placed()
        assert sorted([placed["p0"], placed["p1"]]) == ["n1", "n2"]
        assert placed["p2"] == placed["plain"] == ""
        assert placed["other"] != ""
        assert "2 node(s) didn't match pod anti-affinity rules" in _message(w, "p2")
        assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in _message(w, "plain")

        w.delete("Pod", "p0")
        await w.settle()
        assert w.node_of("p2") == placed["p0"]


@virtually
async def test_alike_pods_with_other_labels_are_not_refused_for_one_that_is_unwelcome() -> None:
    async with world("n1") as w:
        w.pod("alone", labels={"app": "x"}, affinity=_near("podAntiAffinity", HOST))
        await w.settle()
        w.pod("unwelcome", labels={"app": "a"})
        w.pod("welcome", labels={"app": "b"})
        await w.settle()

        assert w.placed() == {"alone": "n1", "unwelcome": "", "welcome": "n1"}
        w.change("Pod", "unwelcome", lambda one: one | {"metadata": _labelled(one, app="b")})
        await w.settle()
        assert w.node_of("unwelcome") == "n1"


@virtually
async def test_affinity_follows_and_the_first_of_a_series_may_go_anywhere() -> None:
    async with world() as w:
        for number in range(4):
            w.cluster.add_node(f"n{number}", labels={ZONE: f"z{number % 2}"})
        together = _near("podAffinity", ZONE)
        w.pod("lonely", labels={"app": "b"}, affinity=together)
        await w.settle(1)
        assert "4 node(s) didn't match pod affinity rules" in _message(w, "lonely")

        for number in range(6):
            w.pod(f"p{number}", labels={"app": "a"}, affinity=together)
        await w.settle()

        placed = w.placed()
        zones = {int(node[1]) % 2 for node in placed.values()}
        assert len(zones) == 1


@virtually
async def test_who_waits_for_company_notices_when_somebody_is_relabelled() -> None:
    async with world("n1") as w:
        w.pod("other", labels={"app": "b"})
        w.pod("lonely", affinity=_near("podAffinity", HOST))
        await w.settle()
        assert w.node_of("lonely") == ""

        w.change("Pod", "other", lambda one: one | {"metadata": _labelled(one, app="a")})
        await w.settle()
        assert w.node_of("lonely") == "n1"


@virtually
async def test_affinity_to_pods_of_namespaces_chosen_by_their_labels() -> None:
    async with world("n1", "n2") as w:
        w.create("Namespace", {"metadata": {"name": "other", "labels": {"team": "x"}}})
        w.create(
            "Pod",
            {
                "metadata": {"name": "leader", "namespace": "other", "labels": {"app": "a"}},
                "spec": {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}]},
            },
        )
        w.pod("by-name", affinity=_near("podAffinity", HOST, namespaces=["other"]))
        chosen = {"matchLabels": {"team": "x"}}
        w.pod("by-label", affinity=_near("podAffinity", HOST, namespaceSelector=chosen))
        w.pod("own", affinity=_near("podAffinity", HOST))
        await w.settle()

        placed = w.placed()
        assert (placed["by-name"], placed["by-label"], placed["own"]) == ("n2", "n2", "")


@virtually
async def test_preferred_affinity_and_anti_affinity_weigh() -> None:
    async with world("n1", "n2", "n3") as w:
        w.create(
            "Pod",
            {
                "metadata": {"name": "leader", "labels": {"app": "a"}},
                "spec": {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}]},
            },
        )
        term = {"weight": 100, "podAffinityTerm": {"topologyKey": HOST, "labelSelector": APP}}
        wish = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        w.pod("near", affinity={"podAffinity": wish})
        w.pod("far", affinity={"podAntiAffinity": wish})
        await w.settle()

        assert w.node_of("near") == "n2"
        assert w.node_of("far") in {"n1", "n3"}


@virtually
async def test_hard_spreading_keeps_the_skew_and_says_so() -> None:
    async with world() as w:
        for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            w.cluster.add_node(name, cpu="3", labels={ZONE: zone})
        w.cluster.add_node("nowhere", cpu="64")
        for number in range(8):
            w.pod(
                f"p{number}",
                cpu="1",
                labels={"app": "a"},
                topologySpreadConstraints=[_spread(ZONE)],
            )
            await w.settle(0.2)
        await w.settle()

        placed = Counter(w.placed().values())
        assert placed["b1"] == 3
        assert placed["a1"] + placed["a2"] == 4
        assert placed[""] == 1
        assert _message(w, "p7").startswith(
            "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology"
            " spread constraints (missing required label), 2 node(s) didn't match pod topology"
            " spread constraints."
        )


@virtually
async def test_too_few_domains_count_as_an_empty_one() -> None:
    async with world() as w:
        w.cluster.add_node("a", labels={ZONE: "a"})
        constraint = _spread(ZONE, minDomains=2)
        for number in range(2):
            w.pod(f"p{number}", labels={"app": "a"}, topologySpreadConstraints=[constraint])
        await w.settle()

        assert sorted(w.placed().values()) == ["", "a"]


@virtually
async def test_soft_spreading_evens_out_what_free_room_would_not() -> None:
    async with world() as w:
        w.cluster.add_node("small", cpu="8", labels={ZONE: "a"})
        w.cluster.add_node("big", cpu="64", memory="256Gi", labels={ZONE: "b"})
        soft = _spread(ZONE, whenUnsatisfiable="ScheduleAnyway")
        for number in range(6):
            w.pod(f"p{number}", cpu="1", labels={"app": "a"}, topologySpreadConstraints=[soft])
        await w.settle()

        assert Counter(w.placed().values()) == {"small": 3, "big": 3}


@virtually
async def test_pods_of_one_replicaset_are_spread_by_default() -> None:
    async with world() as w:
        w.cluster.add_node("small", cpu="8")
        w.cluster.add_node("big", cpu="64", memory="256Gi")
        template = pod("x", cpu="100m", labels={"app": "a"})
        spec = {"replicas": 8, "selector": APP, "template": template}
        w.create("ReplicaSet", {"metadata": {"name": "rs"}, "spec": spec}, "apps/v1")
        await w.settle()

        assert Counter(w.placed().values()) == {"small": 4, "big": 4}


@virtually
async def test_pods_behind_one_service_are_spread_by_default() -> None:
    async with world() as w:
        w.cluster.add_node("small", cpu="8")
        w.cluster.add_node("big", cpu="64", memory="256Gi")
        w.create("Service", {"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}}})
        for number in range(8):
            w.pod(f"p{number}", cpu="100m", labels={"app": "a", "more": "x"})
        await w.settle()

        assert Counter(w.placed().values()) == {"small": 4, "big": 4}


@virtually
async def test_gates_and_other_schedulers_keep_a_pod_out_of_the_queue() -> None:
    async with world("n1") as w:
        w.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
        w.pod("foreign", schedulerName="other")
        await w.settle()
        assert w.placed() == {"foreign": "", "gated": ""}
        assert w.events("foreign") == []
        assert w.condition("gated", "PodScheduled")["reason"] == "SchedulingGated"

        w.change("Pod", "gated", lambda one: one | {"spec": one["spec"] | {"schedulingGates": []}})
        await w.settle()
        assert w.placed() == {"foreign": "", "gated": "n1"}


@virtually
async def test_a_pod_that_is_changed_so_that_it_fits_is_scheduled() -> None:
    async with world("n1") as w:
        w.pod("p", nodeSelector={"disk": "ssd"})
        await w.settle()
        assert w.node_of("p") == ""

        w.change("Node", "n1", lambda node: node | {"metadata": _labelled(node, disk="ssd")})
        await w.settle()
        assert w.node_of("p") == "n1"


@virtually
async def test_uncordoning_wakes_who_waits() -> None:
    async with world("n1") as w:
        w.cluster.cordon("n1")
        w.pod("p")
        await w.settle()
        assert "1 node(s) were unschedulable" in _message(w, "p")

        w.cluster.cordon("n1", unschedulable=False)
        await w.settle()
        assert w.node_of("p") == "n1"


@virtually
async def test_a_more_important_pod_preempts_as_little_as_possible() -> None:
    async with world("n1", "n2", cpu="4") as w:
        _classes(w)
        for number in range(4):
            w.pod(f"low{number}", cpu="2", priorityClassName="low")
        await w.settle()
        w.pod("equal", cpu="2", priorityClassName="low")
        w.pod("high", cpu="2", priorityClassName="high")
        await w.settle()

        placed = w.placed()
        assert placed["high"] != ""
        assert placed["equal"] == ""
        assert len([one for one in placed if one.startswith("low")]) == 3
        victims = [n for n in range(4) if f"low{n}" not in placed]
        reasons = [reason for reason, _ in w.events(f"low{victims[0]}")]
        assert "Preempted" in reasons


@virtually
async def test_several_preemptors_each_make_their_own_room() -> None:
    async with world("n1", "n2", cpu="4") as w:
        _classes(w)
        for number in range(4):
            w.pod(f"low{number}", cpu="2", priorityClassName="low")
        await w.settle()
        for number in range(3):
            w.pod(f"high{number}", cpu="2", priorityClassName="high")
        await w.settle(0.5)
        nominated = [w.get("Pod", f"high{n}")["status"].get("nominatedNodeName") for n in range(3)]
        assert sorted(nominated) in (["n1", "n1", "n2"], ["n1", "n2", "n2"])

        await w.settle()
        placed = w.placed()
        assert all(placed[f"high{n}"] for n in range(3))
        assert len([one for one in placed if one.startswith("low")]) == 1
        assert "nominatedNodeName" not in w.get("Pod", "high0")["status"]


@virtually
async def test_preemption_never_means_never() -> None:
    async with world("n1", cpu="2") as w:
        _classes(w, preemptionPolicy="Never")
        w.pod("low", cpu="2", priorityClassName="low")
        await w.settle()
        w.pod("high", cpu="2", priorityClassName="high")
        await w.settle()

        assert w.placed() == {"high": "", "low": "n1"}
        assert _message(w, "high").endswith(
            "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        )


@virtually
async def test_ten_thousand_alike_that_wait_cost_one_try_for_each_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = Counter[str]()
    choose = Decider.choose

    def counted(self: Decider, pod: Any) -> Any:
        tries["all"] += 1
        return choose(self, pod)

    monkeypatch.setattr(module.Decider, "choose", counted)
    async with world("n1", "n2", cpu="1") as w:
        w.pod("running", cpu="1", command=["sleep", "10"], restartPolicy="Never")
        w.pod("staying", cpu="1")
        await w.settle(0.5)
        for number in range(1000):
            w.pod(f"p{number}", cpu="1")
        await w.settle(5)
        assert tries["all"] == 3  # two that fit, and one for all that do not
        assert all(_message(w, f"p{n}") == _message(w, "p0") for n in (1, 500, 999))

        await w.settle(20)
        assert w.node_of("p0") != ""
        assert tries["all"] <= 6


@virtually
async def test_the_same_seed_gives_the_same_placement() -> None:
    placements = []
    for _ in range(2):
        async with world(*(f"n{number}" for number in range(7))) as w:
            for number in range(30):
                w.pod(f"p{number}", cpu="100m")
            await w.settle()
            placements.append(w.placed())

    assert placements[0] == placements[1]
    assert len(set(placements[0].values())) == 7
