"""What one node says to a pod, at the borders: exactly enough, one too many, this and no other."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.kube.types import Json
from mcad.sim.scheduling import filters
from mcad.sim.scheduling.filters import Ground
from mcad.sim.scheduling.fleet import Fleet, NodeInfo, PodInfo
from mcad.sim.scheduling.shapes import Shape, Shapes

TAINT = {"key": "gpu", "value": "a", "effect": "NoSchedule"}
CORDON = "node.kubernetes.io/unschedulable"


def shape(cpu: str = "0", **spec: Any) -> Shape:
    port = spec.pop("port", None)
    container: Json = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    container |= {"ports": [{"hostPort": port}]} if port else {}
    pod = {"metadata": {"namespace": "default"}, "spec": {"containers": [container], **spec}}
    return Shapes().of(pod)


def waiting(name: str, of: Shape) -> PodInfo:
    return PodInfo(("default", name), name, {}, of, 0)


def node(name: str = "n", pods: str = "2", **spec: Any) -> Json:
    allocatable = {"cpu": "2", "pods": pods}
    metadata = {"name": name, "labels": {"zone": "a"}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}}


def furnished(obj: Json, *bound: Shape) -> NodeInfo:
    fleet = Fleet()
    info = fleet.set_node(obj)
    assert info is not None
    for number, one in enumerate(bound):
        fleet.bind(waiting(f"bound-{number}", one), info.name)
    return info


@pytest.mark.parametrize(
    ("toleration", "is_for"),
    [
        ({"key": "gpu", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "a"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gpu", "value": "b"}, False),
        ({"key": "gpu"}, False),
        ({"key": "gpu", "operator": "Lt", "value": "a"}, False),
    ],
)
def test_a_toleration_is_for_a_taint(toleration: Json, is_for: bool) -> None:
    assert filters.tolerates(toleration, TAINT) is is_for
    assert filters.tolerated([{"key": "x"}, toleration], TAINT) is is_for


def test_no_value_is_an_empty_one() -> None:
    assert filters.tolerates({"key": "gpu", "value": ""}, {"key": "gpu"})
    assert filters.tolerates({"key": "gpu"}, {"key": "gpu", "value": ""})


@pytest.mark.parametrize(
    ("effect", "keeps_away"),
    [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)],
)
def test_which_taints_keep_pods_away(effect: str, keeps_away: bool) -> None:
    taint = TAINT | {"effect": effect}
    assert filters.repels([taint], []) is keeps_away
    assert not filters.repels([taint], [{"operator": "Exists"}])


def _affinity(*terms: Json) -> Shape:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return shape(affinity={"nodeAffinity": required})


def _named(*names: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [*names]}]}


def test_a_selector_and_affinity_both_have_to_take_the_node() -> None:
    here = furnished(node())
    for selector, taken in (({"zone": "a"}, True), ({"zone": "b"}, False)):
        assert filters.is_selected(shape(nodeSelector=selector), here) is taken
    assert not filters.is_selected(shape(nodeSelector={"zone": "a", "disk": "x"}), here)
    assert filters.is_selected(_affinity(_named("n")), here)
    assert not filters.is_selected(_affinity(_named("other")), here)
    assert not filters.is_selected(_affinity(), here), "no term matches no node"


def test_the_first_reason_is_told_and_none_where_there_is_none() -> None:
    elsewhere = shape(nodeSelector={"zone": "b"})
    spoilt = furnished(node(unschedulable=True, taints=[TAINT]))
    anything = [{"operator": "Exists"}]
    cordoned = [{"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}]
    assert filters.static_refusal(elsewhere, spoilt) == filters.CORDONED
    tolerant = shape(nodeSelector={"zone": "b"}, tolerations=cordoned)
    assert filters.static_refusal(tolerant, spoilt) == filters.TAINTED
    tolerant = shape(nodeSelector={"zone": "b"}, tolerations=anything)
    assert filters.static_refusal(tolerant, spoilt) == filters.NOT_SELECTED
    assert filters.static_refusal(shape(tolerations=anything), spoilt) is None
    assert filters.static_refusal(shape(), furnished(node())) is None


@pytest.mark.parametrize(
    ("bound", "cpu", "refusal"),
    [
        ([], "2", None),
        ([], "2001m", ("Insufficient cpu",)),
        (["500m"], "1500m", None),
        (["500m"], "1501m", ("Insufficient cpu",)),
        (["500m"], "2", ("Insufficient cpu",)),
        (["500m"], "2001m", ("Insufficient cpu",)),
        (["0", "0"], "0", ("Too many pods",)),
        (["0", "1"], "1001m", ("Too many pods", "Insufficient cpu")),
    ],
)
def test_room_is_enough_when_it_is_exactly_enough(
    bound: list[str], cpu: str, refusal: tuple[str, ...] | None
) -> None:
    here = furnished(node(), *map(shape, bound))
    assert filters.room_refusal(shape(cpu), here) == refusal
    assert filters.has_room(shape(cpu), here) is (refusal is None)


def test_what_a_node_does_not_name_it_does_not_have() -> None:
    bare = furnished({"metadata": {"name": "n"}, "spec": {}, "status": {}})
    assert filters.room_refusal(shape("1m"), bare) == ("Too many pods", "Insufficient cpu")
    assert not filters.has_room(shape(), bare)
    bare = furnished(node() | {"status": {"allocatable": {"pods": "2"}}})
    assert filters.room_refusal(shape("1m"), bare) == ("Insufficient cpu",)
    assert not filters.has_room(shape("1m"), bare)


def test_a_port_that_is_taken_is_the_only_reason() -> None:
    here = furnished(node(), shape("2", port=80))
    taken = ("node(s) didn't have free ports for the requested pod ports",)
    assert filters.room_refusal(shape("1", port=80), here) == taken
    assert not filters.has_room(shape(port=80), here)
    assert filters.has_room(shape(port=81), here)
    assert filters.room_refusal(shape(port=81), here) is None


def test_the_nodes_that_admit_a_kind_of_pods() -> None:
    fleet = Fleet()
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    fleet.set_node(node("a"))
    fleet.set_node(node("b", taints=[TAINT, soft]))
    ground = Ground(fleet, shape())
    assert [one.name for one in ground.open] == ["a"]
    assert ground.refused == {"b": filters.TAINTED}
    assert not ground.has_soft_taints, "those of a node that refuses do not weigh"
    assert Ground(fleet, shape(tolerations=[{"operator": "Exists"}])).has_soft_taints
