"""Assumed pods: what binding and ending pods do to them.

C1 in the names is use, C2 the size of what is assumed. Both are compared with plain books after
random histories in ``tests/core/fit/test_capacity_properties.py``.
"""

import pytest

from mcad.core.state.model import PodCounts, PodPhase, Wanted
from mcad.core.state.violations import InvariantViolated
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.builders import (
    GPU,
    adopt,
    cluster,
    expire,
    fits,
    free_on,
    hold,
    node,
    pod,
    pods,
    report_of,
    reserved,
    taint,
    waiting,
    wants,
)


def test_a_reservation_takes_room_before_any_pod_exists() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))

    assert fits(capacity, pods(1))
    assert not fits(capacity, pods(2))
    assert free_on(capacity, "a") == wants("1", "16Gi", pods="107")


def test_two_gangs_never_get_the_same_room_however_late_their_pods_appear() -> None:
    capacity = cluster(node("a", "2"), node("b", "2"))
    hold(capacity, "one", pods(3))
    assert not fits(capacity, pods(2))
    hold(capacity, "two", pods(1))

    for i in range(3):
        assert not fits(capacity, pods(1))
        capacity.pod_seen(pod(f"one-{i}", "a" if i < 2 else "b", of="one", item=0, index=0))
    capacity.pod_seen(pod("two-0", "b", of="two", item=0, index=0))
    assert not fits(capacity, pods(1))
    assert reserved(capacity) == {}
    assert capacity.report.sums().free == wants("0", "32Gi", pods="216")


def test_a_gang_that_is_refused_reserves_nothing() -> None:
    capacity = cluster(node("a", "3"), node("b", "3"))
    sets = (pods(1, "3"), pods(2, "2", item=1))
    refused = capacity.assume("one", 1, capacity.shape(sets), sets)

    assert refused is not None
    assert refused.reason is WaitingReason.INSUFFICIENT
    assert not capacity.gangs.exists("one")
    assert reserved(capacity) == {}


def test_reserving_twice_is_a_bug_of_the_caller() -> None:
    capacity = cluster(node("a"))
    hold(capacity, "one", pods(1))
    with pytest.raises(InvariantViolated, match="reserved-once"):
        hold(capacity, "one", pods(1))


def test_a_gang_without_pods_is_held_all_the_same() -> None:
    capacity = cluster()
    hold(capacity, "one")

    assert capacity.gangs.exists("one")
    assert capacity.gangs.outstanding("one") == ()
    capacity.gangs.release("one")
    assert not capacity.gangs.exists("one")


def test_an_unknown_gang_can_be_released_frozen_expired_and_wanted() -> None:
    capacity = cluster()
    capacity.gangs.release("x")
    capacity.gangs.freeze("x")
    capacity.gangs.want("x", 0, 0, Wanted(1))

    assert expire(capacity, "x") == 0
    assert capacity.gangs.outstanding("x") == ()
    assert capacity.pods.counts("x") == PodCounts()


# -- C2 ------------------------------------------------------------------------------------------


def test_c2_binding_moves_one_unit_from_reservation_to_use_in_one_event() -> None:
    capacity = cluster(node("a", "2"))
    hold(capacity, "one", pods(2))
    assert capacity.refusal(waiting(capacity, pods(1))) is not None
    capacity.pod_seen(pod("x", of="one", item=0, index=0))
    assert capacity.gangs.outstanding("one") == (2,)

    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    assert capacity.gangs.outstanding("one") == (1,)
    assert free_on(capacity, "a") == wants("0", "16Gi", pods="108")
    assert capacity.take_requeued() == [], "nothing rose, so nothing is requeued"


def test_c2_binding_elsewhere_frees_the_slot_that_was_assumed_last() -> None:
    capacity = cluster(node("a", "2"), node("b", "1"), node("c", "1"))
    hold(capacity, "one", pods(2, "1"), pods(1, "2", item=1))
    assert reserved(capacity)["a"][0] == ("cpu", 2000)
    capacity.node_seen(node("d", "4"))

    capacity.pod_seen(pod("x", "d", of="one", item=0, index=0))
    assert capacity.gangs.outstanding("one") == (1, 1)
    assert sorted(reserved(capacity)) in (["a", "b"], ["a", "c"])
    assert free_on(capacity, "d")[0] == ("cpu", 3000)


def test_c2_binding_releases_what_is_unplaced_rather_than_a_slot_elsewhere() -> None:
    capacity = cluster(node("a", "1"))
    adopt(capacity, "one", pods(2))
    capacity.place_unplaced()
    assert capacity.report.unplaced() == wants("1", pods="1")
    capacity.node_seen(node("b", "1", taints=[taint("t")]))

    capacity.pod_seen(pod("x", "b", of="one", item=0, index=0))
    assert capacity.report.unplaced() == ()
    assert reserved(capacity) == {"a": wants("1", pods="1")}


def test_c2_a_terminating_pod_still_counts_and_its_successor_is_reserved_as_well() -> None:
    capacity = cluster(node("a", "1"), node("b", "1"))
    hold(capacity, "one", pods(1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    assert fits(capacity, pods(1))

    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0, terminating=True))
    capacity.place_unplaced()
    assert reserved(capacity) == {"b": wants("1", pods="1")}
    assert not fits(capacity, pods(1))


@pytest.mark.parametrize(
    ("want", "outstanding"),
    [
        pytest.param(None, 3, id="unknown: what was declared"),
        pytest.param(3, 3, id="as declared"),
        pytest.param(1, 1, id="scaled down"),
        pytest.param(0, 0, id="terminal"),
        pytest.param(9, 3, id="growth above declared is not reserved"),
    ],
)
def test_c2_the_live_child_says_how_many_pods_it_wants(want: int | None, outstanding: int) -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.gangs.want("one", 0, 0, None if want is None else Wanted(want))

    assert capacity.gangs.outstanding("one") == (outstanding,)


def test_c2_a_wish_for_a_set_that_was_not_declared_is_ignored() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.gangs.want("one", 0, 7, Wanted(0))

    assert capacity.gangs.outstanding("one") == (3,)


def test_c2_where_want_is_unknown_succeeded_pods_count_even_when_they_are_gone() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3, counts_pods=True))
    done = pod("x", "a", of="one", item=0, index=0, phase=PodPhase.SUCCEEDED)
    for seen in (pod("x", "a", of="one", item=0, index=0), done, done):
        capacity.pod_seen(seen)
    assert capacity.gangs.outstanding("one") == (2,)
    capacity.pod_gone("x")
    assert capacity.gangs.outstanding("one") == (2,)
    capacity.pod_seen(pod("y", "a", of="one", item=0, index=0, phase=PodPhase.FAILED))
    assert capacity.gangs.outstanding("one") == (2,)


def test_c2_a_frozen_reservation_stays_what_it_is() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.gangs.freeze("one")

    capacity.gangs.want("one", 0, 0, Wanted(0))
    capacity.pod_gone("x")
    capacity.pod_seen(pod("y", "a", of="one", item=0, index=0))
    assert expire(capacity, "one") == 0
    assert capacity.gangs.outstanding("one") == (2,)
    capacity.gangs.release("one")
    assert fits(capacity, pods(3))


def test_c2_a_pod_of_an_earlier_attempt_is_use_but_covers_nothing() -> None:
    capacity = cluster(node("a", "3"))
    capacity.pod_seen(pod("old", "a", of="one", item=0, index=0, attempt=1))
    hold(capacity, "one", pods(2), attempt=2)
    assert capacity.gangs.outstanding("one") == (2,)
    assert not fits(capacity, pods(1))

    capacity.pod_seen(pod("new", "a", of="one", item=0, index=0, attempt=2))
    assert capacity.gangs.outstanding("one") == (1,)
    assert capacity.pods.counts("one") == PodCounts(running=1)


# -- report --------------------------------------------------------------------------------------


def test_the_report_sorts_nodes_by_name_and_clamps_the_sum_of_what_is_free() -> None:
    capacity = cluster(node("b", "2", "0", gpu=1), node("a", "1", "0"))
    capacity.pod_seen(pod("x", "a", "3"))
    hold(capacity, "one", pods(1, "1", gpu=1))
    adopt(capacity, "two", pods(1, "9"))
    report = report_of(capacity)

    assert [n.name for n in report.nodes] == ["a", "b"]
    assert report.nodes[0].free == (("cpu", -2000), ("pods", 109))
    assert report.sums.allocatable == wants("3", gpu=1, pods="220")
    assert report.sums.used == wants("3", pods="1")
    assert report.sums.reserved == wants("1", gpu=1, pods="1")
    assert report.sums.free == wants("1", pods="218")
    assert report.unplaced == wants("9", pods="1")
    assert dict(report.nodes[1].reserved)[GPU] == 1
