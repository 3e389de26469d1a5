"""What keeps all nodes off the pods of a set is said as kube-scheduler would find it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.core.nodes.constraints import Facts
from mcad.core.nodes.filters import admits
from mcad.core.nodes.obstacle import obstacle
from mcad.core.state.model import Constraint, Node, Requirement, Taint, Toleration

GPU, OLD = Taint("gpu", "", "NoSchedule"), Taint("old", "yes", "NoExecute")
ZONE_A, SSD = ("zone", "a"), ("disk", "ssd")


def node(name: str, *labels: tuple[str, str], **changes: object) -> Node:
    return Node(name, (("cpu", 1),), labels=labels, **changes)


def facts(*nodes: Node) -> Facts:
    made = Facts(64)
    for at, one in enumerate(nodes):
        made.enter(at, one)
    return made


@pytest.mark.parametrize(
    ("nodes", "constraint", "said"),
    [
        ([], Constraint(), "there is no node"),
        ([node("a")], Constraint(node_name="b"), "no node is named b"),
        ([node("a", ZONE_A)], Constraint((SSD, ZONE_A)), "none has the label disk=ssd"),
        (
            [node("a", ZONE_A), node("b", SSD)],
            Constraint((SSD, ZONE_A)),
            "none has all of the labels disk=ssd, zone=a",
        ),
        (
            [node("a", ZONE_A)],
            Constraint(affinity=((Requirement("zone", "In", ("b",)),),)),
            "none matches their node affinity",
        ),
        (
            [node("a", ZONE_A, taints=(GPU, OLD)), node("b")],
            Constraint((ZONE_A,)),
            "they do not tolerate the taints of the node that matches: gpu:NoSchedule, "
            "old=yes:NoExecute",
        ),
        (
            [node("a", taints=(GPU, OLD))],
            Constraint(tolerations=(Toleration("gpu", "Exists", "", ""),)),
            "they do not tolerate the taints of the node that matches: old=yes:NoExecute",
        ),
        (
            [node("a", unschedulable=True), node("b", unschedulable=True)],
            Constraint(),
            "the 2 nodes that match are cordoned",
        ),
        ([node("a", ready=False)], Constraint(), "the node that matches is not ready"),
        (
            [node("a", taints=(GPU,), ready=False), node("b", taints=(OLD,))],
            Constraint(tolerations=(Toleration("gpu", "Exists", "", ""),)),
            "the 2 nodes that match are tainted or not ready: old=yes:NoExecute",
        ),
    ],
)
def test_the_first_thing_that_leaves_no_node_is_named(
    nodes: list[Node], constraint: Constraint, said: str
) -> None:
    assert obstacle(facts(*nodes), constraint) == said


labels = st.lists(
    st.sampled_from([ZONE_A, ("zone", "b"), SSD]), max_size=2, unique_by=lambda o: o[0]
)
nodes = st.lists(
    st.builds(
        lambda ls, **changes: (ls, changes),
        labels,
        ready=st.booleans(),
        unschedulable=st.booleans(),
        taints=st.sampled_from([(), (GPU,), (GPU, OLD)]),
    ),
    max_size=3,
)
constraints = st.builds(
    Constraint,
    labels.map(tuple),
    st.sampled_from([None, ((Requirement("zone", "In", ("a",)),),)]),
    st.sampled_from([(), (Toleration("gpu", "Exists", "", ""),)]),
    st.sampled_from(["", "n0", "n9"]),
)


@given(nodes, constraints)
def test_what_is_said_is_true_of_every_node(drawn: list, constraint: Constraint) -> None:
    there = [node(f"n{at}", *labels, **changes) for at, (labels, changes) in enumerate(drawn)]
    if any(admits(one, constraint) for one in there):
        return
    said = obstacle(facts(*there), constraint)

    if said.startswith("none has the label "):
        label = tuple(said.removeprefix("none has the label ").split("="))
        assert label in constraint.selector
        assert not any(label in one.labels for one in there)
    elif said.endswith("not ready"):
        assert not all(one.ready for one in there)
    elif "taints of" in said:
        assert any(one.taints for one in there)
    elif said.endswith("cordoned"):
        assert any(one.unschedulable for one in there)
    elif said.startswith("no node is named "):
        assert constraint.node_name not in [one.name for one in there]
