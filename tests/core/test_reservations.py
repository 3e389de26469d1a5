"""Reservations: what is promised, what binding does to it, and where slots go when nodes do.

The numbers of the protocol are in the names: C1 use, C2 size, C3 attribution, C4 expiry, C6 nodes.
"""

import pytest

from mcad.core.capacity import Capacity
from mcad.core.invariants import InvariantViolated
from mcad.core.model import PodCounts, PodPhase, PodSet, RefusalKind, Resources
from tests.core.builders import GPU, cluster, node, on, pod, pods, taint, wants


def hold(capacity: Capacity, uid: str, *sets: PodSet, attempt: int = 1) -> None:
    """Reserve; the gang must fit."""
    assert capacity.reserve(uid, attempt, capacity.shape(sets), sets) is None
    capacity.check()


def adopt(capacity: Capacity, uid: str, *sets: PodSet, attempt: int = 1) -> None:
    """Take up what a predecessor dispatched."""
    capacity.adopt(uid, attempt, capacity.shape(sets), sets)
    capacity.check()


def fits(capacity: Capacity, *sets: PodSet) -> bool:
    """Whether the queue could go on with such a gang."""
    return capacity.refusal(capacity.shape(sets)) is None


def reserved(capacity: Capacity) -> dict[str, Resources]:
    """What is reserved on each node that has something reserved."""
    return {n.name: n.reserved for n in capacity.totals().nodes if n.reserved}


def free(capacity: Capacity, name: str) -> Resources:
    return next(n.free for n in capacity.totals().nodes if n.name == name)


# -- never the same room twice -------------------------------------------------------------------


def test_a_reservation_takes_room_before_any_pod_exists() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))

    assert fits(capacity, pods(1))
    assert not fits(capacity, pods(2))
    assert free(capacity, "a") == wants("1", "16Gi", pods="107")


def test_two_gangs_never_get_the_same_room_however_late_their_pods_appear() -> None:
    capacity = cluster(node("a", "2"), node("b", "2"))
    hold(capacity, "one", pods(3))
    assert not fits(capacity, pods(2))
    hold(capacity, "two", pods(1))

    for i in range(3):
        assert not fits(capacity, pods(1))
        capacity.pod_seen(pod(f"one-{i}", "a" if i < 2 else "b", of="one", item=0, index=0))
        capacity.check()
    capacity.pod_seen(pod("two-0", "b", of="two", item=0, index=0))
    assert not fits(capacity, pods(1))
    assert reserved(capacity) == {}
    assert capacity.totals().totals.free == wants("0", "32Gi", pods="216")


def test_a_gang_that_is_refused_reserves_nothing() -> None:
    capacity = cluster(node("a", "3"), node("b", "3"))
    sets = (pods(1, "3"), pods(2, "2", item=1))
    refused = capacity.reserve("one", 1, capacity.shape(sets), sets)

    assert refused is not None
    assert refused.kind is RefusalKind.INSUFFICIENT
    assert not capacity.holds("one")
    assert reserved(capacity) == {}
    capacity.check()


def test_a_gang_of_equal_sets_is_dealt_out_set_by_set() -> None:
    capacity = cluster(node("a", "2"), node("b", "3"))
    hold(capacity, "one", pods(2), pods(3, item=1))

    assert capacity.outstanding("one") == (2, 3)


def test_reserving_twice_is_a_bug_of_the_caller() -> None:
    capacity = cluster(node("a"))
    hold(capacity, "one", pods(1))
    with pytest.raises(InvariantViolated, match="reserved-once"):
        hold(capacity, "one", pods(1))


def test_a_gang_without_pods_is_held_all_the_same() -> None:
    capacity = cluster()
    hold(capacity, "one")

    assert capacity.holds("one")
    assert capacity.outstanding("one") == ()
    capacity.release("one")
    assert not capacity.holds("one")


def test_what_nobody_holds_can_be_released_frozen_expired_and_wanted() -> None:
    capacity = cluster()
    capacity.release("x")
    capacity.freeze("x")
    capacity.want("x", 0, 0, 1)

    assert capacity.expire("x") == 0
    assert capacity.outstanding("x") == ()
    assert capacity.pod_counts("x") == PodCounts()


# -- C1 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "terminating", "counts"),
    [
        (PodPhase.PENDING, False, True),
        (PodPhase.RUNNING, False, True),
        (PodPhase.UNKNOWN, False, True),
        (PodPhase.RUNNING, True, True),
        (PodPhase.SUCCEEDED, False, False),
        (PodPhase.FAILED, False, False),
        (PodPhase.FAILED, True, False),
    ],
)
def test_c1_a_bound_pod_counts_until_it_is_terminal(
    phase: PodPhase, terminating: bool, counts: bool
) -> None:
    capacity = cluster(node("a", "2"))
    capacity.pod_seen(pod("x", "a", phase=phase, terminating=terminating))

    assert free(capacity, "a")[0] == ("cpu", 1000 if counts else 2000)
    capacity.check()


def test_c1_pods_may_precede_their_node_and_outlive_it() -> None:
    capacity = cluster()
    capacity.pod_seen(pod("x", "a", "3"))
    assert not fits(capacity, pods(1))
    capacity.node_seen(node("a", "4"))
    assert not fits(capacity, pods(2))
    capacity.node_gone("a")
    capacity.check()
    capacity.node_seen(node("a", "4"))
    assert not fits(capacity, pods(2))
    capacity.pod_gone("x")
    assert fits(capacity, pods(4))
    capacity.check()


def test_c1_a_pod_that_is_resized_counts_with_its_new_size() -> None:
    capacity = cluster(node("a", "4"))
    capacity.pod_seen(pod("x", "a", "1"))
    capacity.pod_seen(pod("x", "a", "3"))
    assert free(capacity, "a")[0] == ("cpu", 1000)
    capacity.pod_seen(pod("x", "a", "2"))
    assert free(capacity, "a")[0] == ("cpu", 2000)
    capacity.check()


def test_c1_a_pod_takes_nothing_before_it_is_bound() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    capacity.pod_seen(pod("x", cpu="3"))
    assert fits(capacity, pods(2, "4"))
    capacity.pod_seen(pod("x", "a", cpu="3"))
    assert not fits(capacity, pods(2, "4"))
    capacity.pod_seen(pod("x", "b", cpu="3"))
    assert free(capacity, "a")[0] == ("cpu", 4000)
    capacity.check()


def test_a_covering_pod_that_appears_on_another_node_still_covers() -> None:
    """Kubernetes never binds a pod twice, but a lost event may make it look as if."""
    capacity = cluster(node("a", "4"), node("b", "4"))
    hold(capacity, "one", pods(2))
    for name in "ab":
        capacity.pod_seen(pod("x", name, of="one", item=0, index=0))
        assert capacity.outstanding("one") == (1,)
        capacity.check()


def test_c1_use_may_exceed_what_there_is_and_then_nothing_new_goes_there() -> None:
    capacity = cluster(node("a", "2"), node("b", "2"))
    capacity.pod_seen(pod("x", "a", "5"))

    assert free(capacity, "a")[0] == ("cpu", -3000)
    assert fits(capacity, pods(2))
    assert not fits(capacity, pods(3))


def test_an_unknown_pod_or_node_may_go_without_having_come() -> None:
    capacity = cluster()
    capacity.pod_gone("x")
    capacity.node_gone("a")
    capacity.check()


# -- C2 ------------------------------------------------------------------------------------------


def test_c2_binding_moves_one_unit_from_reservation_to_use_in_one_event() -> None:
    capacity = cluster(node("a", "2"))
    hold(capacity, "one", pods(2))
    shape = capacity.shape((pods(1),))
    before = shape.rises()
    capacity.pod_seen(pod("x", of="one", item=0, index=0))
    assert capacity.outstanding("one") == (2,)

    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    assert capacity.outstanding("one") == (1,)
    assert free(capacity, "a") == wants("0", "16Gi", pods="108")
    assert shape.rises() == before, "nothing rose, so nobody is woken"
    capacity.check()


def test_c2_binding_elsewhere_frees_the_slot_that_was_assumed_last() -> None:
    capacity = cluster(node("a", "2"), node("b", "1"), node("c", "1"))
    hold(capacity, "one", pods(2, "1"), pods(1, "2", item=1))
    assert reserved(capacity)["a"][0] == ("cpu", 2000)
    capacity.node_seen(node("d", "4"))

    capacity.pod_seen(pod("x", "d", of="one", item=0, index=0))
    assert capacity.outstanding("one") == (1, 1)
    assert sorted(reserved(capacity)) in (["a", "b"], ["a", "c"])
    assert free(capacity, "d")[0] == ("cpu", 3000)
    capacity.check()


def test_c2_binding_releases_what_is_adrift_rather_than_a_slot_elsewhere() -> None:
    capacity = cluster(node("a", "1"))
    adopt(capacity, "one", pods(2))
    capacity.rehome()
    assert capacity.totals().adrift == wants("1", pods="1")
    capacity.node_seen(node("b", "1", taints=[taint("t")]))

    capacity.pod_seen(pod("x", "b", of="one", item=0, index=0))
    assert capacity.totals().adrift == ()
    assert reserved(capacity) == {"a": wants("1", pods="1")}
    capacity.check()


def test_c2_a_bound_pod_that_ends_is_reserved_again() -> None:
    capacity = cluster(node("a", "2"))
    hold(capacity, "one", pods(1, "2"))
    capacity.pod_seen(pod("x", "a", "2", of="one", item=0, index=0))
    assert capacity.outstanding("one") == (0,)

    capacity.pod_seen(pod("x", "a", "2", of="one", item=0, index=0, phase=PodPhase.FAILED))
    capacity.rehome()
    assert capacity.outstanding("one") == (1,)
    assert reserved(capacity) == {"a": wants("2", pods="1")}
    capacity.check()


def test_c2_a_terminating_pod_still_counts_and_its_successor_is_reserved_as_well() -> None:
    capacity = cluster(node("a", "1"), node("b", "1"))
    hold(capacity, "one", pods(1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    assert fits(capacity, pods(1))

    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0, terminating=True))
    capacity.rehome()
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
    capacity.want("one", 0, 0, want)

    assert capacity.outstanding("one") == (outstanding,)
    capacity.check()


def test_c2_growth_above_declared_is_charged_when_it_is_bound() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(1))
    capacity.want("one", 0, 0, 3)
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))

    assert capacity.outstanding("one") == (0,)
    assert free(capacity, "a")[0] == ("cpu", 1000)


def test_c2_a_wish_that_grows_back_is_reserved_again() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.want("one", 0, 0, 1)
    capacity.want("one", 0, 0, 2)
    capacity.rehome()

    assert capacity.outstanding("one") == (2,)
    assert reserved(capacity)["a"][0] == ("cpu", 2000)


def test_c2_a_wish_for_a_set_that_was_not_declared_is_ignored() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.want("one", 0, 7, 0)

    assert capacity.outstanding("one") == (3,)


def test_c2_where_the_wish_is_unknown_succeeded_pods_count_even_when_they_are_gone() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3, counts_pods=True))
    done = pod("x", "a", of="one", item=0, index=0, phase=PodPhase.SUCCEEDED)
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.pod_seen(done)
    capacity.pod_seen(done)
    assert capacity.outstanding("one") == (2,)
    capacity.pod_gone("x")
    assert capacity.outstanding("one") == (2,)
    capacity.pod_seen(pod("y", "a", of="one", item=0, index=0, phase=PodPhase.FAILED))
    assert capacity.outstanding("one") == (2,)
    capacity.check()


def test_c2_where_the_child_tells_a_succeeded_pod_alone_changes_nothing() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0, phase=PodPhase.SUCCEEDED))

    assert capacity.outstanding("one") == (3,)


def test_c2_a_frozen_reservation_stays_what_it_is() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.freeze("one")

    capacity.want("one", 0, 0, 0)
    capacity.pod_gone("x")
    capacity.pod_seen(pod("y", "a", of="one", item=0, index=0))
    assert capacity.expire("one") == 0
    assert capacity.outstanding("one") == (2,)
    capacity.check()
    capacity.release("one")
    assert fits(capacity, pods(3))
    capacity.check()


def test_c2_pods_that_are_bound_before_the_reservation_cover_it_from_the_start() -> None:
    capacity = cluster(node("a", "3"))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0, attempt=1))
    hold(capacity, "one", pods(3), attempt=1)

    assert capacity.outstanding("one") == (2,)
    assert free(capacity, "a")[0] == ("memory", 16 << 30)


def test_c2_a_pod_of_an_earlier_attempt_is_use_but_covers_nothing() -> None:
    capacity = cluster(node("a", "3"))
    capacity.pod_seen(pod("old", "a", of="one", item=0, index=0, attempt=1))
    hold(capacity, "one", pods(2), attempt=2)
    assert capacity.outstanding("one") == (2,)
    assert not fits(capacity, pods(1))

    capacity.pod_seen(pod("new", "a", of="one", item=0, index=0, attempt=2))
    assert capacity.outstanding("one") == (1,)
    assert capacity.pod_counts("one") == PodCounts(running=1)
    capacity.check()


def test_release_gives_back_what_is_reserved_and_leaves_what_is_used() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(3))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.release("one")

    assert free(capacity, "a")[0] == ("cpu", 3000)
    capacity.check()
    hold(capacity, "one", pods(3), attempt=2)
    assert capacity.outstanding("one") == (2,), "a pod of unknown attempt covers any"


# -- C3 ------------------------------------------------------------------------------------------

HEAD = pods(1, "2", item=1, index=0)
WORKERS = pods(2, "1", item=1, index=1)
OTHER = pods(1, "1", item=2, index=0)


@pytest.mark.parametrize(
    ("cpu", "item", "index", "expected"),
    [
        pytest.param("1", 1, 1, (1, 1, 1), id="its label"),
        pytest.param("7", 1, 0, (0, 2, 1), id="its label, whatever it requests"),
        pytest.param("7", 2, 5, (1, 2, 0), id="the only set of its item"),
        pytest.param("1", 1, 5, (1, 1, 1), id="the set of its item with the equal request"),
        pytest.param("2", -1, -1, (0, 2, 1), id="no label: the set with the equal request"),
        pytest.param("1", -1, -1, (1, 1, 1), id="several: the lowest item and index"),
        pytest.param("7", 1, 5, (1, 2, 1), id="no set of its item is equal"),
        pytest.param("7", -1, -1, (1, 2, 1), id="none is equal"),
        pytest.param("2", 9, 0, (0, 2, 1), id="an item without sets: an equal request"),
    ],
)
def test_c3_whose_pod_it_is(cpu: str, item: int, index: int, expected: tuple[int, ...]) -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, WORKERS, OTHER)
    capacity.pod_seen(pod("x", "a", cpu, of="one", item=item, index=index))

    assert capacity.outstanding("one") == expected
    assert capacity.pod_counts("one") == PodCounts(running=1)
    capacity.check()


def test_c3_pods_without_labels_fill_one_set_after_the_other_bound_or_not() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, WORKERS, OTHER)
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", of="one"))
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", "a", of="one"))

    assert capacity.outstanding("one") == (1, 0, 0)


def test_c3_a_label_that_arrives_later_moves_the_pod() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, WORKERS, OTHER)
    capacity.pod_seen(pod("x", "a", of="one"))
    assert capacity.outstanding("one") == (1, 1, 1)

    capacity.pod_seen(pod("x", "a", of="one", item=2, index=0))
    assert capacity.outstanding("one") == (1, 2, 0)
    capacity.check()


def test_c3_an_owner_that_becomes_known_later_moves_the_pod() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", pods(2))
    capacity.pod_seen(pod("x", "a"))
    assert capacity.outstanding("one") == (2,)
    capacity.pod_seen(pod("x", "a", of="one"))
    assert capacity.outstanding("one") == (1,)
    assert capacity.would_fit_emptied(capacity.shape((pods(20),)))
    capacity.pod_seen(pod("x", "a"))
    assert capacity.outstanding("one") == (2,)
    assert not capacity.would_fit_emptied(capacity.shape((pods(20),)))
    capacity.check()


def test_pods_are_counted_by_phase_whatever_set_they_belong_to() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, attempt=2)
    phases = [*PodPhase, PodPhase.RUNNING]
    for i, phase in enumerate(phases):
        capacity.pod_seen(pod(f"x{i}", "a", "7", of="one", phase=phase, attempt=2))
    capacity.pod_seen(pod("old", "a", of="one", attempt=1))

    assert capacity.pod_counts("one") == PodCounts(1, 2, 1, 1)
    capacity.pod_gone("x1")
    assert capacity.pod_counts("one") == PodCounts(1, 1, 1, 1)


# -- C4 ------------------------------------------------------------------------------------------


def test_c4_pods_that_nobody_ever_made_are_given_up() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5))
    capacity.pod_seen(pod("bound", "a", of="one", item=0, index=0))
    capacity.pod_seen(pod("pending", of="one", item=0, index=0))

    assert capacity.expire("one") == 3
    assert capacity.outstanding("one") == (1,)
    assert capacity.expire("one") == 0
    capacity.check()


def test_c4_what_is_given_up_does_not_come_back_but_what_was_seen_does() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5))
    for i in range(2):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))
    assert capacity.expire("one") == 3

    capacity.want("one", 0, 0, 5)
    assert capacity.outstanding("one") == (0,)
    capacity.pod_gone("x0")
    assert capacity.outstanding("one") == (1,)
    for i in range(2, 6):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))
    assert capacity.outstanding("one") == (0,)
    capacity.check()


def test_c4_only_what_the_child_still_wants_can_be_given_up() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5))
    capacity.want("one", 0, 0, 2)

    assert capacity.expire("one") == 2
    capacity.want("one", 0, 0, 5)
    assert capacity.outstanding("one") == (0,)


def test_c4_after_expiry_succeeded_pods_still_lower_the_wish() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5, counts_pods=True))
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))
    assert capacity.expire("one") == 2
    for i in range(3):
        done = pod(f"x{i}", "a", of="one", item=0, index=0, phase=PodPhase.SUCCEEDED)
        capacity.pod_seen(done)
        assert capacity.outstanding("one") == (0,)


# -- C6 ------------------------------------------------------------------------------------------


def test_c6_own_pods_on_a_node_that_is_gone_are_reserved_again() -> None:
    capacity = cluster(node("a", "1"), node("b", "1"))
    hold(capacity, "one", pods(1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.node_gone("a")
    assert capacity.outstanding("one") == (1,)
    capacity.check()

    capacity.rehome()
    assert reserved(capacity) == {"b": wants("1", pods="1")}
    capacity.node_seen(node("a", "1"))
    assert capacity.outstanding("one") == (0,)
    assert fits(capacity, pods(1))
    capacity.check()


def test_c6_own_pods_on_a_node_that_is_not_ready_are_reserved_again() -> None:
    capacity = cluster(node("a", "1"), node("b", "1"))
    hold(capacity, "one", pods(1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.node_seen(node("a", "1", ready=False))
    assert capacity.outstanding("one") == (1,)
    capacity.node_seen(node("a", "1"))
    assert capacity.outstanding("one") == (0,)
    capacity.check()


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
    capacity.check()

    capacity.rehome()
    assert reserved(capacity) == {"b": wants("1", pods="1")}
    assert capacity.totals().adrift == ()
    capacity.check()


def test_c6_slots_stay_where_a_changed_node_still_admits_them() -> None:
    capacity = cluster(node("a", "2"), node("b", "2"))
    hold(capacity, "one", pods(2))
    before = reserved(capacity)
    for name in "ab":
        capacity.node_seen(node(name, "2", labels={"new": "label"}))
        capacity.node_seen(node(name, "3", labels={"new": "label"}))
    capacity.check()

    assert reserved(capacity) == before


def test_c6_the_latest_dispatch_gives_way_when_a_node_is_overdrawn() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "older", pods(2))
    hold(capacity, "newer", pods(2))
    capacity.node_seen(node("b", "1"))
    capacity.pod_seen(pod("foreign", "a", "1"))
    capacity.check()

    capacity.rehome()
    assert capacity.outstanding("newer") == (2,)
    assert reserved(capacity) == {"a": wants("3", pods="3"), "b": wants("1", pods="1")}
    capacity.check()


def test_c6_only_slots_that_take_what_is_overdrawn_give_way() -> None:
    capacity = cluster(node("a", "4", gpu=2))
    hold(capacity, "gpu", pods(1, "1", gpu=2))
    hold(capacity, "cpu", pods(1, "1"))
    capacity.node_seen(node("a", "4", gpu=0))
    capacity.rehome()

    assert capacity.totals().adrift == wants("1", gpu=2, pods="1")
    assert reserved(capacity) == {"a": wants("1", pods="1")}
    capacity.check()


def test_c6_older_dispatches_find_a_home_first() -> None:
    capacity = cluster()
    adopt(capacity, "first", pods(1))
    adopt(capacity, "second", pods(1))
    capacity.node_seen(node("a", "1"))
    capacity.rehome()

    capacity.release("second")
    assert reserved(capacity) == {"a": wants("1", pods="1")}
    capacity.release("first")
    assert reserved(capacity) == {}


def test_c6_what_is_adrift_finds_a_home_before_the_queue_does() -> None:
    capacity = cluster(node("a", "1"))
    adopt(capacity, "one", pods(2))
    capacity.rehome()
    capacity.node_seen(node("b", "1"))
    assert not fits(capacity, pods(1))
    capacity.rehome()

    assert not fits(capacity, pods(1))
    assert sorted(reserved(capacity)) == ["a", "b"]
    assert capacity.totals().adrift == ()


def test_c6_the_queue_may_not_take_bit_by_bit_what_somebody_adrift_waits_for() -> None:
    """The sum leaves room for one small pod, but not on the node the large one waits for."""
    capacity = cluster(node("a", "4"), node("b", "2"), node("c", "1"))
    capacity.pod_seen(pod("foreign", "a", "1"))
    adopt(capacity, "large", pods(1, "4"))
    capacity.rehome()
    assert capacity.totals().adrift == wants("4", pods="1")
    hold(capacity, "small", pods(1, "1"))
    assert not fits(capacity, pods(2, "1")), "3 + 2 + 1 less 4 adrift less 1 is 1"

    assert "a" not in reserved(capacity)
    capacity.pod_gone("foreign")
    capacity.rehome()
    assert reserved(capacity)["a"] == wants("4", pods="1")
    capacity.check()


def test_c6_what_is_adrift_weighs_on_those_only_who_share_nodes_with_it() -> None:
    capacity = cluster(node("a", "4", labels={"zone": "a"}), node("b", "4", labels={"zone": "b"}))
    adopt(capacity, "lost", pods(2, "4", where=on(zone="a")))
    adopt(capacity, "nowhere", pods(9, "4", where=on(zone="c")))
    capacity.rehome()

    assert fits(capacity, pods(4, where=on(zone="b")))
    assert not fits(capacity, pods(1, where=on(zone="a")))
    assert not fits(capacity, pods(1)), "4 free, 4 adrift that could come to zone a"


def test_c6_nodes_that_are_set_aside_no_longer_wake_those_who_wait() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    capacity.pod_seen(pod("f", "a", "3"))
    capacity.pod_seen(pod("g", "b", "3"))
    adopt(capacity, "lost", pods(1, "2", "16Gi"))
    capacity.rehome()
    shape = capacity.shape((pods(2, "1"),))
    assert capacity.refusal(shape) is not None
    before = shape.rises()

    capacity.release("lost")
    capacity.rehome()
    assert shape.rises() > before
    assert capacity.refusal(shape) is None


def test_adoption_is_adrift_until_the_next_pass() -> None:
    capacity = cluster(node("a", "4"))
    adopt(capacity, "one", pods(2), pods(1, item=1))
    assert capacity.outstanding("one") == (2, 1)
    assert capacity.totals().adrift == wants("3", pods="3")

    capacity.rehome()
    assert capacity.totals().adrift == ()
    assert reserved(capacity) == {"a": wants("3", pods="3")}


def test_a_cap_counts_own_pods_and_slots_when_a_home_is_looked_for() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    hold(capacity, "one", pods(2, cap=1))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    capacity.node_gone("b")
    capacity.rehome()

    assert capacity.totals().adrift == wants("1", pods="1")
    capacity.node_seen(node("c", "4"))
    capacity.rehome()
    assert reserved(capacity) == {"c": wants("1", pods="1")}


# -- DaemonSets ----------------------------------------------------------------------------------


def test_a_daemon_set_reserves_one_pod_on_every_admitted_node() -> None:
    capacity = cluster(node("a"), node("b"), node("c", cordoned=True))
    hold(capacity, "one", pods(0, per_node=True), pods(2, "3", item=1))

    assert capacity.outstanding("one") == (2, 2)
    assert reserved(capacity) == {"a": wants("4", pods="2"), "b": wants("4", pods="2")}


def test_a_node_that_joins_later_is_not_reserved_for_a_daemon_set() -> None:
    capacity = cluster(node("a"))
    hold(capacity, "one", pods(0, per_node=True))
    capacity.node_seen(node("b"))
    capacity.rehome()
    capacity.pod_seen(pod("x", "b", of="one", item=0, index=0))

    assert capacity.outstanding("one") == (0,), "its pods are charged when bound"
    capacity.check()


def test_two_equal_daemon_sets_of_one_gang_come_to_every_node_both() -> None:
    capacity = cluster(node("a"), node("b"))
    hold(capacity, "one", pods(0, per_node=True), pods(0, per_node=True, item=1))
    assert reserved(capacity) == {"a": wants("2", pods="2"), "b": wants("2", pods="2")}

    capacity.node_gone("b")
    capacity.node_seen(node("c"))
    capacity.rehome()
    assert reserved(capacity) == {"a": wants("2", pods="2"), "c": wants("2", pods="2")}


def test_a_refused_daemon_set_may_fit_when_a_node_leaves() -> None:
    capacity = cluster(node("a"), node("b", "500m"))
    shape = capacity.shape((pods(0, per_node=True),))
    assert capacity.refusal(shape) is not None
    before = shape.rises()

    capacity.node_gone("b")
    assert shape.rises() > before
    assert capacity.refusal(shape) is None


def test_a_daemon_set_whose_pods_are_there_already_needs_no_second_one() -> None:
    capacity = cluster(node("a"), node("b"))
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    hold(capacity, "one", pods(0, per_node=True))

    assert reserved(capacity) == {"b": wants("1", pods="1")}


# -- report --------------------------------------------------------------------------------------


def test_the_report_sorts_nodes_by_name_and_clamps_the_sum_of_what_is_free() -> None:
    capacity = cluster(node("b", "2", "0", gpu=1), node("a", "1", "0"))
    capacity.pod_seen(pod("x", "a", "3"))
    hold(capacity, "one", pods(1, "1", gpu=1))
    adopt(capacity, "two", pods(1, "9"))
    report = capacity.totals()

    assert [n.name for n in report.nodes] == ["a", "b"]
    assert report.nodes[0].free == (("cpu", -2000), ("pods", 109))
    assert report.totals.allocatable == wants("3", gpu=1, pods="220")
    assert report.totals.used == wants("3", pods="1")
    assert report.totals.reserved == wants("1", gpu=1, pods="1")
    assert report.totals.free == wants("1", pods="218")
    assert report.adrift == wants("9", pods="1")
    assert dict(report.nodes[1].reserved)[GPU] == 1
