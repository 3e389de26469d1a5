"""Which AppWrappers ask for nodes, for how many pods, and when they are dispatched."""

from msgspec.structs import replace

from mcad.core.commands import RequestScaleUp
from mcad.core.state.scale_up import ScaleUpState
from tests.core.bench import PATIENT, Bench, node, workload

GROWS = replace(PATIENT, scale_up=True)


def test_one_that_lacks_nodes_asks_for_the_pods_without_a_place_and_is_dispatched_to_them() -> None:
    bench = Bench(GROWS, [node("n1", 2000)])
    bench.start(workload("a", 1500, 1500, 1500))
    bench.advance(2)
    assert bench.asked == [RequestScaleUp("uid-a", 1, ((1, 0, 1), (2, 0, 1)))]
    assert bench.status["uid-a"].reservation is not None
    assert bench.status["uid-a"].reservation.nodes == ("n1",)

    bench.autoscale("a", ScaleUpState.PROVISIONED)
    bench.add_node(node("new-1", 2000))
    bench.advance(2)
    assert not bench.names()  # one node is not enough, and no pod starts without its gang
    bench.add_node(node("new-2", 2000))
    bench.settle()
    assert bench.names() == ["a-0", "a-1", "a-2"]
    assert not bench.scale_ups
    assert len(bench.asked) == 1


def test_where_nothing_runs_yet_all_pods_are_asked_for() -> None:
    bench = Bench(GROWS)
    bench.start(workload("a", 1500))
    bench.advance(2)
    assert bench.asked == [RequestScaleUp("uid-a", 1, ((0, 0, 1),))]
    bench.add_node(node("new", 2000))
    bench.settle()
    assert bench.names() == ["a-0"]


def test_nothing_is_asked_for_where_all_of_it_fits() -> None:
    bench = Bench(GROWS, [node("n1", 2000)])
    bench.start(workload("a", 1500))
    bench.advance(5)
    assert bench.names() == ["a-0"]
    assert not bench.asked
