"""Where slots are, and where they go when nodes change (protocol C6, core rule R3)."""

import pytest

from mcad.core.capacity import Capacity
from mcad.core.state.model import Node, Wanted
from tests.core.builders import (
    adopt,
    cluster,
    fits,
    hold,
    node,
    on,
    pod,
    pods,
    reserved,
    taint,
    waiting,
    wants,
)


def test_c6_own_pods_on_a_node_that_is_gone_are_reserved_again() -> None:
    capacity = cluster(node("a", "1"), node("b", "1"))
    hold(capacity, "one", pods(1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.node_gone("a")
    assert capacity.gangs.outstanding("one") == (1,)

    capacity.place_unplaced()
    assert reserved(capacity) == {"b": wants("1", pods="1")}
    capacity.node_seen(node("a", "1"))
    assert capacity.gangs.outstanding("one") == (0,)
    assert fits(capacity, pods(1))


def test_c6_own_pods_on_a_node_that_is_not_ready_are_reserved_again() -> None:
    capacity = cluster(node("a", "1"), node("b", "1"))
    hold(capacity, "one", pods(1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.node_seen(node("a", "1", ready=False))
    assert capacity.gangs.outstanding("one") == (1,)
    capacity.node_seen(node("a", "1"))
    assert capacity.gangs.outstanding("one") == (0,)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(None, id="gone"),
        pytest.param(node("a", "1", ready=False), id="not ready"),
        pytest.param(node("a", "1", cordoned=True), id="cordoned"),
        pytest.param(node("a", "1", taints=[taint("t")]), id="tainted"),
        pytest.param(node("a", "1", labels={"zone": "b"}), id="relabelled"),
        pytest.param(node("a", "500m", labels={"zone": "a"}), id="smaller"),
    ],
)
def test_c6_slots_leave_a_node_that_is_not_for_them_any_more(after: object) -> None:
    capacity = cluster(node("a", "1", labels={"zone": "a"}))
    hold(capacity, "one", pods(1, where=on(zone="a")))
    capacity.node_seen(node("b", "1", labels={"zone": "a"}))
    if after is None:
        capacity.node_gone("a")
    else:
        capacity.node_seen(after)  # type: ignore[arg-type]

    capacity.place_unplaced()
    assert reserved(capacity) == {"b": wants("1", pods="1")}
    assert capacity.report.unplaced() == ()


def test_c6_slots_stay_where_a_changed_node_still_admits_them() -> None:
    capacity = cluster(node("a", "2"), node("b", "2"))
    hold(capacity, "one", pods(2))
    before = reserved(capacity)
    for name in "ab":
        capacity.node_seen(node(name, "2", labels={"new": "label"}))
        capacity.node_seen(node(name, "3", labels={"new": "label"}))

    assert reserved(capacity) == before


def test_c6_the_latest_dispatch_gives_way_when_a_node_is_overcommitted() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "older", pods(2))
    hold(capacity, "newer", pods(2))
    capacity.node_seen(node("b", "1"))
    capacity.pod_seen(pod("foreign", "a", "1"))

    capacity.place_unplaced()
    assert capacity.gangs.outstanding("newer") == (2,)
    assert reserved(capacity) == {"a": wants("3", pods="3"), "b": wants("1", pods="1")}
    capacity.gangs.release("older")
    assert reserved(capacity) == {"a": wants("1", pods="1"), "b": wants("1", pods="1")}


def test_c6_only_slots_that_take_what_is_overcommitted_give_way() -> None:
    capacity = cluster(node("a", "4", gpu=2))
    hold(capacity, "gpu", pods(1, "1", gpu=2))
    hold(capacity, "cpu", pods(1, "1"))
    capacity.node_seen(node("a", "4", gpu=0))
    capacity.place_unplaced()

    assert capacity.report.unplaced() == wants("1", gpu=2, pods="1")
    assert reserved(capacity) == {"a": wants("1", pods="1")}


def test_c6_older_dispatches_find_a_node_first() -> None:
    capacity = cluster()
    adopt(capacity, "first", pods(1))
    adopt(capacity, "second", pods(1))
    capacity.node_seen(node("a", "1"))
    capacity.place_unplaced()

    capacity.gangs.release("second")
    assert reserved(capacity) == {"a": wants("1", pods="1")}
    capacity.gangs.release("first")
    assert reserved(capacity) == {}


def test_c6_what_is_unplaced_finds_a_node_before_the_queue_does() -> None:
    capacity = cluster(node("a", "1"))
    adopt(capacity, "one", pods(2))
    capacity.place_unplaced()
    capacity.node_seen(node("b", "1"))
    assert not fits(capacity, pods(1))
    capacity.place_unplaced()

    assert not fits(capacity, pods(1))
    assert sorted(reserved(capacity)) == ["a", "b"]
    assert capacity.report.unplaced() == ()


def test_c6_the_queue_may_not_take_bit_by_bit_what_an_unplaced_pod_waits_for() -> None:
    """The sum leaves room for one small pod, but not on the node the large one waits for."""
    capacity = cluster(node("a", "4"), node("b", "2"), node("c", "1"))
    capacity.pod_seen(pod("foreign", "a", "1"))
    adopt(capacity, "large", pods(1, "4"))
    capacity.place_unplaced()
    assert capacity.report.unplaced() == wants("4", pods="1")
    hold(capacity, "small", pods(1, "1"))
    assert not fits(capacity, pods(2, "1")), "3 + 2 + 1 less 4 unplaced less 1 is 1"

    assert "a" not in reserved(capacity)
    capacity.pod_gone("foreign")
    capacity.place_unplaced()
    assert reserved(capacity)["a"] == wants("4", pods="1")


def test_c6_what_is_unplaced_weighs_only_on_gangs_that_share_nodes_with_it() -> None:
    capacity = cluster(node("a", "4", labels={"zone": "a"}), node("b", "4", labels={"zone": "b"}))
    adopt(capacity, "lost", pods(2, "4", where=on(zone="a")))
    adopt(capacity, "nowhere", pods(9, "4", where=on(zone="c")))
    capacity.place_unplaced()

    assert fits(capacity, pods(4, where=on(zone="b")))
    assert not fits(capacity, pods(1, where=on(zone="a")))
    assert not fits(capacity, pods(1)), "4 free, 4 unplaced that could come to zone a"


def test_c6_nodes_that_are_set_aside_no_longer_requeue_what_waits_for_them() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    capacity.pod_seen(pod("f", "a", "3"))
    capacity.pod_seen(pod("g", "b", "3"))
    adopt(capacity, "lost", pods(1, "2", "16Gi"))
    capacity.place_unplaced()
    shape = waiting(capacity, pods(2, "1"))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.gangs.release("lost")
    capacity.place_unplaced()
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_c6_what_no_node_could_hold_weighs_until_it_is_released() -> None:
    """No node is set aside for it, so none is given back: its weight alone keeps others out."""
    capacity = cluster(node("a", "4"))
    adopt(capacity, "lost", pods(1, "5"))
    capacity.place_unplaced()
    shape = waiting(capacity, pods(1))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.gangs.release("lost")
    capacity.place_unplaced()
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def lacking_one_cpu() -> Capacity:
    """4 CPUs are unplaced: ``a`` has 3 free and is set aside, the others of its zone have 2."""
    zone = {"zone": "a"}
    capacity = cluster(*(node(name, "4", labels=zone) for name in "acde"), node("b", "5"))
    used = {"a": "1", "c": "2", "d": "2", "e": "2", "b": "3"}
    for name, cpu in used.items():
        capacity.pod_seen(pod(f"foreign-{name}", name, cpu))
    adopt(capacity, "lost", pods(1, "4"))
    capacity.place_unplaced()
    return capacity


def test_c6_no_gang_goes_to_the_node_that_is_set_aside_though_the_sum_suffices() -> None:
    capacity = lacking_one_cpu()
    assert not fits(capacity, pods(1, "3")), "a alone has as much free"
    assert not fits(capacity, pods(1, "3"), pods(1, "1")), "nor beside another one"
    assert fits(capacity, pods(2, "2"))


def test_c6_of_nodes_that_lack_the_same_at_worst_one_that_lacks_less_in_sum_is_set_aside() -> None:
    smaller = [node(name, "3", "7Gi") for name in "cde"]
    capacity = cluster(node("a", "4", "8Gi"), node("b", "4", "8Gi"), *smaller)
    capacity.pod_seen(pod("on-a", "a", "2", "4Gi"))
    capacity.pod_seen(pod("on-b", "b", "2"))
    adopt(capacity, "lost", pods(1, "4", "8Gi"))
    capacity.place_unplaced()

    assert not fits(capacity, pods(1, "1", "8Gi")), "b alone has as much free"
    assert fits(capacity, pods(4, "2", "4Gi")), "a has room for one of them"


def test_c6_each_unplaced_pod_has_a_node_of_its_own_set_aside_whatever_its_class() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"), *(node(name, "2") for name in "cde"))
    capacity.pod_seen(pod("on-a", "a", "1"))
    capacity.pod_seen(pod("on-b", "b", "1500m"))
    adopt(capacity, "lost", pods(1, "4"), pods(1, "4", "1Gi", item=1))
    capacity.place_unplaced()

    assert not fits(capacity, pods(1, "2500m")), "only a and b have as much free"
    assert fits(capacity, pods(1, "2"))


def test_c6_a_node_that_is_not_the_nearest_any_more_is_given_back() -> None:
    """What waits for it is requeued, although no node that it could use has changed."""
    capacity = lacking_one_cpu()
    shape = waiting(capacity, pods(1, "3", where=on(zone="a")))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.pod_gone("foreign-b")
    capacity.pod_seen(pod("smaller", "b", "1500m"))
    capacity.place_unplaced()
    assert capacity.report.unplaced() != ()
    assert shape in capacity.take_requeued()
    assert capacity.refusal(shape) is None


def test_c6_a_node_that_comes_after_the_one_set_aside_has_gone_is_free_for_all() -> None:
    """It has the number of that node in the books. People may ask before the next pass."""
    capacity = lacking_one_cpu()
    capacity.node_gone("a")
    capacity.node_seen(node("f", "3"))

    assert capacity.questions().refusal(capacity.shape((pods(1, "3"),))) is None


def test_c6_a_node_less_may_end_what_weighed_on_others() -> None:
    """The only node that the lost pods could come to goes, and with it their weight on the rest."""
    capacity = cluster(node("a", "1", labels={"zone": "a"}), node("b", "3"))
    adopt(capacity, "lost", pods(1, "4", where=on(zone="a")))
    capacity.place_unplaced()
    shape = waiting(capacity, pods(2))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.node_gone("a")
    capacity.place_unplaced()
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_c6_what_is_placed_again_before_the_next_verdict_requeues_nothing() -> None:
    """A pod of a Job ends: its slot is unplaced, and placed at the beginning of the pass."""
    capacity = cluster(node("a", "2", labels={"zone": "a"}), node("b", "1"))
    hold(capacity, "job", pods(2))
    capacity.pod_seen(pod("x", "a", of="job", item=0, index=0))
    everywhere, elsewhere = waiting(capacity, pods(9)), waiting(capacity, pods(2, "1", "99Gi"))
    for shape in (everywhere, elsewhere):
        assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.gangs.adopt("one", 1, (pods(1),))
    capacity.gangs.want("one", 0, 0, Wanted(0))
    capacity.place_unplaced()
    assert capacity.take_requeued() == []
    assert capacity.report.unplaced() == ()


def test_adopted_pods_are_unplaced_until_the_next_pass() -> None:
    capacity = cluster(node("a", "4"))
    adopt(capacity, "one", pods(2), pods(1, item=1))
    assert capacity.gangs.outstanding("one") == (2, 1)
    assert capacity.report.unplaced() == wants("3", pods="3")

    capacity.place_unplaced()
    assert capacity.report.unplaced() == ()
    assert reserved(capacity) == {"a": wants("3", pods="3")}


def test_a_cap_counts_own_pods_and_slots_when_a_node_is_looked_for() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    hold(capacity, "one", pods(2, cap=1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.node_gone("b")
    capacity.place_unplaced()

    assert capacity.report.unplaced() == wants("1", pods="1")
    capacity.node_seen(node("c", "4"))
    capacity.place_unplaced()
    assert reserved(capacity) == {"c": wants("1", pods="1")}


def test_sets_that_share_no_node_find_nodes_apart() -> None:
    """What is bound and what is assumed of the one keeps the other off."""
    capacity = cluster(node("a", "4"), node("b", "4"))
    hold(capacity, "one", pods(2, repels=(0,)), pods(2, item=1, repelled=(0,)))
    places = capacity.gangs.places_of("one")
    first, second = sorted(places, key=lambda name: places[name])
    assert places == {first: (0, 2), second: (2, 0)}
    capacity.pod_seen(pod("x", second, of="one", item=0, index=0))
    capacity.node_gone(first)
    capacity.place_unplaced()
    assert capacity.report.unplaced() == wants("2", pods="2")
    capacity.pod_seen(pod("y", second, of="one", item=0, index=0))
    capacity.place_unplaced()
    assert capacity.report.unplaced() == wants("2", pods="2")
    capacity.node_seen(node(first, "4"))
    capacity.place_unplaced()
    assert capacity.gangs.places_of("one") == {first: (0, 2)}


def test_slots_leave_a_node_that_a_pod_of_another_set_took() -> None:
    """kube-scheduler bound the pod where those of the set that it excludes were to go."""
    capacity = cluster(node("a", "4"), node("b", "4"))
    hold(capacity, "one", pods(1, "2", repels=(0,)), pods(2, item=1, repelled=(0,)))
    places = capacity.gangs.places_of("one")
    taken = next(name for name, (_, n) in places.items() if n)
    capacity.pod_seen(pod("x", taken, "2", of="one", item=0, index=0))
    capacity.place_unplaced()
    other = "b" if taken == "a" else "a"
    assert capacity.gangs.places_of("one") == {other: (0, 2)}


def test_a_cap_is_that_of_each_set_where_equal_sets_may_share_a_node() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    hold(capacity, "one", pods(2, cap=1), pods(2, item=1, cap=1))
    capacity.node_gone("b")
    capacity.node_seen(node("b", "4"))
    capacity.place_unplaced()
    assert capacity.gangs.places_of("one") == {"a": (1, 1), "b": (1, 1)}


# -- DaemonSets ----------------------------------------------------------------------------------


def test_a_daemon_set_reserves_one_pod_on_every_admitted_node() -> None:
    capacity = cluster(node("a"), node("b"), node("c", cordoned=True))
    hold(capacity, "one", pods(0, per_node=True), pods(2, "3", item=1))

    assert capacity.gangs.outstanding("one") == (2, 2)
    assert reserved(capacity) == {"a": wants("4", pods="2"), "b": wants("4", pods="2")}


def test_a_daemon_set_has_a_pod_to_come_on_a_node_that_joins_later() -> None:
    capacity = cluster(node("a"))
    hold(capacity, "one", pods(0, per_node=True))
    capacity.node_seen(node("b", "1"))
    capacity.place_unplaced()
    assert reserved(capacity) == {"a": wants("1", pods="1"), "b": wants("1", pods="1")}
    assert not fits(capacity, pods(4))

    capacity.pod_seen(pod("x", "b", of="one", item=0, index=0))
    assert reserved(capacity) == {"a": wants("1", pods="1")}


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(None, id="gone"),
        pytest.param(node("b", ready=False), id="not ready"),
        pytest.param(node("b", cordoned=True), id="cordoned"),
    ],
)
def test_a_daemon_set_owes_no_pod_to_a_node_that_was_decommissioned(after: Node | None) -> None:
    capacity = cluster(node("a"), node("b"), node("c"))
    hold(capacity, "one", pods(0, per_node=True))
    for name in "ab":
        capacity.pod_seen(pod(name, name, of="one", item=0, index=0))
    for before in (node("b"), None):
        if after is None:
            capacity.node_gone("b")
        else:
            capacity.node_seen(after)
        capacity.place_unplaced()
        assert capacity.gangs.outstanding("one") == (1,)
        assert reserved(capacity) == {"c": wants("1", pods="1")}
        assert capacity.report.unplaced() == ()
        if before is not None:
            capacity.node_seen(before)
            assert capacity.gangs.outstanding("one") == (1,), "its pod is still there"


def test_two_equal_daemon_sets_of_one_gang_come_to_every_node_both() -> None:
    capacity = cluster(node("a"), node("b"))
    hold(capacity, "one", pods(0, per_node=True), pods(0, per_node=True, item=1))
    assert reserved(capacity) == {"a": wants("2", pods="2"), "b": wants("2", pods="2")}

    capacity.node_gone("b")
    capacity.node_seen(node("c"))
    capacity.place_unplaced()
    assert reserved(capacity) == {"a": wants("2", pods="2"), "c": wants("2", pods="2")}


def test_a_refused_daemon_set_may_fit_when_a_node_leaves() -> None:
    capacity = cluster(node("a"), node("b", "500m"))
    shape = waiting(capacity, pods(0, per_node=True))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.node_gone("b")
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_a_daemon_set_whose_pods_are_there_already_needs_no_second_one() -> None:
    capacity = cluster(node("a"), node("b"))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    hold(capacity, "one", pods(0, per_node=True))

    assert reserved(capacity) == {"b": wants("1", pods="1")}
