"""The books of the nodes for people: what is free is of use; what takes no pods is told apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcad.core.assumed.node_report import NodeState
from mcad.core.capacity import Capacity
from mcad.core.state.model import Node, Taint
from mcad.core.state.settings import Settings
from tests.core.builders import pod

GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")


def node(name: str, cpu: int = 4000, **changes: object) -> Node:
    return Node(name, (("cpu", cpu), ("pods", 10)), **changes)


def capacity(*nodes: Node) -> Capacity:
    made = Capacity(Settings())
    for one in nodes:
        made.node_seen(one)
    return made


def cpu(amounts: tuple[tuple[str, int], ...]) -> int:
    return dict(amounts).get("cpu", 0)


def test_nodes_that_take_no_pods_are_told_apart_and_lend_nothing() -> None:
    made = capacity(
        node("open"),
        node("cordoned", unschedulable=True),
        node("lost", ready=False),
        node("gpu", taints=(GPU,)),
        node("gpu2", taints=(GPU, Taint("k", "", "PreferNoSchedule"))),
    )
    found = {one.sums.state: (one.nodes, cpu(one.sums.free)) for one in made.report.apart()}
    assert found == {
        NodeState.TAINTED: (2, 8000),
        NodeState.CORDONED: (1, 0),
        NodeState.NOT_READY: (1, 0),
    }
    total = made.report.sums()
    assert (cpu(total.allocatable), cpu(total.used), cpu(total.free)) == (20_000, 0, 12_000)


def test_a_taint_that_only_weighs_sets_no_node_apart() -> None:
    assert capacity(node("a", taints=(Taint("k", "", "PreferNoSchedule"),))).report.apart() == []


nodes = st.builds(
    node,
    st.sampled_from("abc"),
    st.integers(0, 4000),
    ready=st.booleans(),
    unschedulable=st.booleans(),
    taints=st.sampled_from(((), (GPU,))),
)
pods = st.builds(pod, st.sampled_from("pqrs"), st.sampled_from("abc"), st.sampled_from("124"))


@given(st.lists(nodes, max_size=4), st.lists(pods, max_size=6))
def test_no_figure_is_negative_and_sums_are_those_of_the_nodes(present: list, there: list) -> None:
    made = capacity(*present)
    for one in there:
        made.pod_seen(one)
    each, total = list(made.report.nodes()), made.report.sums()

    assert all(n > 0 for one in each for _, n in one.usable)
    assert all(n >= 0 for _, n in total.usable)
    assert cpu(total.usable) == sum(cpu(one.usable) for one in each)
    for one in made.report.apart():
        alike = [each_one for each_one in each if each_one.state is one.sums.state]
        assert one.nodes == len(alike)
        assert cpu(one.sums.usable) == sum(cpu(each_one.usable) for each_one in alike)
    assert sum(one.nodes for one in made.report.apart()) == sum(
        one.state is not NodeState.READY for one in each
    )
