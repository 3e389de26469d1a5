"""Shapes: equal gangs are of equal shape, and what has no holder is forgotten."""

import pytest

from mcad.core.capacity import Capacity
from mcad.core.nodes.resources import resources, total, with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import Node, Pod, PodSet
from mcad.core.state.violations import InvariantViolated, check
from tests.core.builders import cluster, needs, node, on, pod, pods, port, waiting, wants


def test_what_has_no_holder_is_forgotten_and_as_good_as_new_when_it_comes_back() -> None:
    capacity = cluster(node("a", labels={"zone": "z0"}))
    first = waiting(capacity, pods(1, where=on(zone="z0")))
    capacity.gangs.adopt("held", 1, (pods(1, "2", where=on(zone="z0", other="")),))
    known, bits = capacity._memory.classes(), capacity._ledger.constraints._bits.shape
    for _ in range(3):
        for i in range(100):
            shape = capacity.shape((pods(4, where=on(zone=f"z{i}")),))
            assert (capacity.refusal(shape) is None) is (i == 0)
            assert capacity._memory.classes() == known

    assert capacity._ledger.constraints._bits.shape == bits
    assert capacity._memory.bounds.all.size == 64
    assert capacity.take_requeued() == []
    assert capacity.refusal(first) is None
    capacity.node_seen(node("b", labels={"zone": "z0", "other": ""}))
    capacity.place_unplaced()
    assert capacity.report.unplaced() == ()


def test_a_shape_may_be_a_key() -> None:
    capacity = cluster()
    one, other = capacity.shape((pods(1),)), capacity.shape((pods(2),))

    assert {one: 1, other: 2}[capacity.shape((pods(1),))] == 1
    assert isinstance(one, Shape)


# -- what equal gangs have in common -------------------------------------------------------------


def test_equal_gangs_are_of_one_shape_whatever_their_paths() -> None:
    capacity = cluster()
    one = capacity.shape((pods(2), pods(1, item=1)))
    again = capacity.shape((pods(2), pods(1, item=1)))

    assert one == again
    assert capacity.shape((pods(3), pods(1, item=1))) != one


def test_demand_is_declared_with_the_pods_slots() -> None:
    shape = cluster().shape((pods(2, "1", "1Gi"), pods(3, "500m", gpu=1, item=1), pods(0, "9")))

    assert shape.fixed == wants("3500m", "2Gi", 3, pods="5")


def test_a_daemon_set_demands_one_pod_per_admitted_node_as_they_come_and_go() -> None:
    capacity = cluster(node("a"), node("b", cordoned=True))
    shape = capacity.shape((pods(7, "1", per_node=True),))

    assert capacity.demand(shape) == wants("1", pods="1")
    capacity.node_seen(node("b"))
    assert capacity.demand(shape) == wants("2", pods="2")


def test_shapes_compete_if_their_pods_may_go_to_one_node() -> None:
    capacity = cluster(node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}))
    a, b, both = (
        waiting(capacity, pods(1, where=where)) for where in (on(zone="a"), on(zone="b"), on())
    )

    assert capacity.compete(a, both)
    assert capacity.compete(both, b)
    assert not capacity.compete(a, b)
    capacity.node_seen(node("c", labels={"zone": "a"}))
    assert not capacity.compete(a, b)


# -- what requeues a refused shape ---------------------------------------------------------------

RESTS, LOOKS, FITS = "is not requeued", "is requeued and refused again", "is requeued and fits"
A, B = {"zone": "a"}, {"zone": "b"}
NOT_A = on((needs("zone", "NotIn", "c"), needs("zone", "NotIn", "a")))
NOT_C = on((needs("zone", "NotIn", "c"),))
Event = Node | Pod | str | tuple[Node | Pod | str, ...]
"""A node or a pod is seen, the one of this name is gone, or several of that happen at once."""


def see(capacity: Capacity, event: Event) -> None:
    """What the event says happens."""
    match event:
        case Node():
            capacity.node_seen(event)
        case Pod():
            capacity.pod_seen(event)
        case tuple():
            for each in event:
                see(capacity, each)
        case name if name in capacity._ledger.rows:
            capacity.node_gone(name)
        case uid:
            capacity.pod_gone(uid)


@pytest.mark.parametrize(
    ("there", "sets", "steps"),
    [
        pytest.param(
            (node("a", labels=A), node("b", labels=B), pod("x", "a", "4"), pod("y", "b", "4")),
            (pods(1, where=on(zone="a")),),
            ((pod("z", "a"), RESTS), ("z", RESTS), ("y", RESTS), ("x", FITS)),
            id="room on its own nodes, and no fall",
        ),
        pytest.param(
            (node("a", "2"),),
            (pods(1), pods(1, item=1, where=on(zone="b"))),
            ((node("a", "8"), RESTS), (node("b", "2", labels=B), FITS)),
            id="the first node that admits it",
        ),
        pytest.param(
            (node("a", "2", labels=A), node("b", "2", labels=B)),
            (pods(3, where=on(zone="a")), pods(3, item=1, where=on(zone="b"))),
            (
                (node("a", "3", labels=A), LOOKS),  # the other part was not counted yet
                (node("a", "3500m", labels=A), RESTS),
                (node("b", "3", labels=B), FITS),
            ),
            id="room for all of its parts",
        ),
        pytest.param(
            (node("a", "5"), node("b", "5")),
            (pods(2, "3"), pods(1, "4", item=1)),
            ((pod("x", "a"), RESTS), ("x", LOOKS)),
            id="any rise after a search that failed",
        ),
        pytest.param(
            (node("a"), pod("x", "a", "2"), pod("y", "a", "2")),
            (pods(3),),
            (("x", RESTS), ("y", FITS)),
            id="enough in sum",
        ),
        pytest.param(
            (node("a"), pod("x", "a", "2"), pod("y", "a", "2")),
            (pods(2, "2"),),
            ((("x", "y"), FITS),),
            id="what two pods leave at once",
        ),
        pytest.param(
            (node("a", "3"), node("b", "3")),
            (pods(3, "2"),),
            ((node("b", "3500m"), RESTS), (node("b", "4"), FITS)),
            id="enough slots",
        ),
        pytest.param(
            tuple(node(f"n{i}", "3") for i in range(40)),
            (pods(41, "2"),),
            ((tuple(node(f"n{i}", "3500m") for i in range(40)), RESTS), (node("n0", "4"), FITS)),
            id="enough slots, however many nodes rise",
        ),
        pytest.param(
            (node("a"), pod("x", "a", "9"), pod("y", "a", "3")),
            (pods(1, "1", "1Gi"),),
            ((pod("y", "a", "2"), RESTS), ("x", FITS)),
            id="room that an overcommitted node has",
        ),
        pytest.param(
            (node("a", labels=A), node("a2", labels=A)),
            (pods(5, where=on(zone="a")), pods(4, item=1, where=NOT_A)),
            ((node("b", "3", labels=B), LOOKS), ("b", RESTS), (node("b", labels=B), FITS)),
            id="a node for the narrower part",
        ),
        *(
            pytest.param(
                (node("a", labels=A),),
                (pods(4, where=places[0]), pods(4, item=1, where=places[1])),
                ((node("b", labels=B), FITS),),
                id=f"a node beside all that there were, {order}",
            )
            for places, order in (((on(**A), NOT_C), "narrow first"), ((NOT_C, on(**A)), "last"))
        ),
        pytest.param(
            (node("a"), pod("x", "a")),
            (pods(1, "9"),),
            (("x", RESTS), ((node("b", "9"), pod("y", "b", "9")), LOOKS)),
            id="a node that is large enough, though it is full",
        ),
        pytest.param(
            (node("a"), node("b"), pod("x", "b", "4")),
            (pods(0, per_node=True),),
            ((pod("y", "a"), RESTS), ("b", FITS)),
            id="a node less for a DaemonSet",
        ),
        pytest.param(
            (node("a"), pod("x", "a", ports=[port(80)])),
            (pods(1, ports=[port(80)]),),
            ((pod("y", "a", ports=[port(81)]), RESTS), ("y", RESTS), ("x", FITS)),
            id="its host port",
        ),
    ],
)
def test_a_refused_shape_is_requeued_by(
    there: tuple[Node | Pod, ...], sets: tuple[PodSet, ...], steps: tuple[tuple[Event, str], ...]
) -> None:
    capacity = cluster()
    for each in there:
        see(capacity, each)
    shape = waiting(capacity, *sets)
    assert capacity.refusal(shape) is not None
    for event, expected in steps:
        see(capacity, event)
        requeued, refused = capacity.take_requeued(), capacity.refusal(shape) is not None
        found = (LOOKS if refused else FITS) if requeued == [shape] else RESTS
        assert (found, refused) == (expected, expected is not FITS), event


def test_a_requeued_shape_is_named_once_and_not_after_it_is_forgotten() -> None:
    capacity = cluster(node("a", "1"))
    first, second = (waiting(capacity, pods(1, size)) for size in ("2", "3"))
    for shape in (first, second):
        assert capacity.refusal(shape) is not None
    capacity.node_seen(node("a", "4"))
    capacity.forget(second)

    assert capacity.take_requeued() == [first]
    capacity.node_seen(node("a", "5"))
    assert capacity.take_requeued() == []


# -- small things --------------------------------------------------------------------------------


def test_resources_are_sorted_and_without_zeros() -> None:
    assert resources({"b": 1, "a": 2, "c": 0}) == (("a", 2), ("b", 1))
    assert total([((("a", 1),), 2), ((("a", 1), ("b", 1)), -2)]) == (("b", -2),)


def test_a_pod_takes_one_of_the_nodes_pods_unless_it_says_otherwise() -> None:
    assert with_pod_slot(wants("1")) == wants("1", pods="1")
    assert with_pod_slot(wants("1", pods="3")) == wants("1", pods="3")


def test_a_violated_invariant_has_a_name_and_a_story() -> None:
    check(True, "never", "")
    with pytest.raises(InvariantViolated) as caught:
        check(False, "books-balance", "node a: 1 is not 2")

    assert (caught.value.name, caught.value.story) == ("books-balance", "node a: 1 is not 2")
    assert str(caught.value) == "books-balance: node a: 1 is not 2"
