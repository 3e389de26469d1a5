"""What users see of a request: the condition ScaleUp, the start time, and the reservation."""

import pytest
from msgspec.structs import replace

from mcad.core.scale_up.shown import describe
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import Basis, StartTime, start_times
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.builders import appwrapper, pods

GROWS = replace(PATIENT, scale_up=True)
NAME = "ProvisioningRequest default/uid-a-1"


def _asks(*nodes: int) -> Bench:
    bench = Bench(GROWS, [node(f"n{at}", milli) for at, milli in enumerate(nodes)])
    bench.start(workload("a", 1000, 1000))
    bench.advance(2)
    return bench


def _start_time(bench: Bench, name: str = "a") -> StartTime:
    cluster = bench.dispatcher.cluster
    line = Picture(cluster, cluster.now).line(100)
    return start_times(cluster, line, [f"uid-{name}"])[f"uid-{name}"]


def test_the_condition_says_what_was_asked_for_and_what_the_autoscaler_says() -> None:
    bench = _asks(1000)
    asked = "Asked for nodes for 1 pod of 1 CPU; " + NAME
    assert bench.condition("a", "ScaleUp") == (True, "Asked", f"{asked}: Asked.")
    bench.autoscale("a", ScaleUpState.ACCEPTED, "2 nodes of group g")
    bench.settle()
    said = f"{asked}: Accepted: 2 nodes of group g."
    assert bench.condition("a", "ScaleUp") == (True, "Accepted", said)
    written = bench.writes["status"]
    bench.advance(50)
    assert bench.writes["status"] == written  # nothing in it grows with time
    bench.add_node(node("new", 1000))
    bench.advance(3)
    assert bench.condition("a", "ScaleUp") == (False, "AppWrapperRunnable", "")


def test_the_condition_keeps_the_words_of_a_failure() -> None:
    bench = _asks()
    bench.autoscale("a", ScaleUpState.FAILED, "out of stock.")
    bench.advance(2)
    assert bench.condition("a", "ScaleUp") == (False, "Failed", f"{NAME}: Failed: out of stock.")
    bench = _asks()
    bench.advance(905)
    late = "The nodes that it asked for did not come in time."
    assert bench.condition("a", "ScaleUp") == (False, "TimedOut", late)


@pytest.mark.parametrize("is_led_anew", [False, True])
def test_the_condition_of_one_that_does_not_wait_any_more_says_so(is_led_anew: bool) -> None:
    bench = _asks()
    if is_led_anew:
        bench.crash()
    bench.edit("uid-a", suspended=True)
    bench.advance(2)
    assert bench.condition("a", "ScaleUp") == (False, "Withdrawn", "")


def test_a_leader_that_asks_for_nothing_says_that_it_does_not_wait_for_nodes() -> None:
    bench = _asks(1000)
    bench.settings = PATIENT
    bench.restart()
    assert bench.condition("a", "ScaleUp") == (False, "Withdrawn", "")


def test_the_pods_are_described_with_their_requests() -> None:
    sets = [
        pods(12, "3", "4Gi"),
        pods(1, "500m", gpu=1, item=1),
        *(pods(1, item=n) for n in range(2, 5)),
    ]
    entry = Bench(GROWS).submit(appwrapper("a", workload("a", *range(5)).items, sets)).entry("a")
    assert describe(entry, ((0, 0, 12),)) == "12 pods of 3 CPU and 4Gi memory"
    assert describe(entry, ((1, 0, 1),)) == "1 pod of 500m CPU and 1 nvidia.com/gpu"
    every = tuple((n, 0, 1) for n in range(5))
    assert describe(entry, every).endswith("1 pod of 1 CPU and more of 2 other pod sets")


def test_the_reservation_says_that_no_node_has_room_or_how_many_have() -> None:
    bare = "No node has room for its pods; an autoscaler is asked for nodes."
    assert _asks().condition("a", "Backoff") == (True, "ScalingUp", bare)
    assert [one.note for one in _asks().events if one.reason == "RoomReserved"] == [bare]
    assert [one.waits_for for one in _asks().queue()] == ["ScalingUp"]
    part = "Room on 1 node is reserved for it; an autoscaler is asked for nodes for its other pods."
    assert _asks(1000).condition("a", "Backoff") == (True, "ScalingUp", part)


def test_a_start_time_says_when_new_nodes_are_expected() -> None:
    bench = _asks()
    found = _start_time(bench)
    assert (found.basis, found.latest) == (Basis.SCALE_UP, bench.entry("a").reserved.start)
    assert "takes about 120 s" in found.why
    bench.advance(200)
    bench.decide()
    assert _start_time(bench).why == "The nodes that it asked for take longer than is usual."


def test_where_the_cluster_may_grow_nothing_is_too_large() -> None:
    bench = Bench(replace(GROWS, scale_up_concurrent=0), [node("n1", 1000)])
    bench.start(workload("a", 2000))
    found = _start_time(bench)
    assert (found.basis, found.latest) == (
        Basis.SCALE_UP,
        bench.dispatcher.cluster.now + 120 * SECOND,
    )
    assert found.why == "If the cluster grows for it: a scale-up takes about 120 s."
    bench = Bench(PATIENT, [node("n1", 1000)])
    bench.start(workload("a", 2000))
    assert _start_time(bench).why == "It would not fit even if every AppWrapper left."
