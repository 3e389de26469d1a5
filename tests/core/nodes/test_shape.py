"""Shapes: equal gangs are of equal shape, and what has no holder is forgotten."""

import pytest

from mcad.core.capacity import Capacity
from mcad.core.fit import queueing_hints, shape_cache
from mcad.core.nodes import node_events
from mcad.core.nodes.resources import resources, total, with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.state.settings import Settings
from mcad.core.state.violations import InvariantViolated, check
from tests.core.builders import cluster, needs, node, on, pod, pods, waiting, wants


def pools_of(capacity: Capacity) -> int:
    return len(capacity._ledger.pools())


def test_unused_pools_are_dropped_and_used_ones_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shape_cache, "POOLS_KEPT_MIN", 4)
    capacity = Capacity(Settings())
    capacity._memory._pools_max = 4
    capacity.node_seen(node("a", labels={"zone": "z0"}))
    first = waiting(capacity, pods(1, where=on(zone="z0")))
    held = (pods(1, "2", where=on(zone="z0", other="")),)
    capacity.adopt("held", 1, held)
    for i in range(100):
        capacity.refusal(capacity.shape((pods(1, where=on(zone=f"z{i}")),)))
    capacity.refusal(capacity.shape((pods(1, where=on(last="")),)))

    assert pools_of(capacity) <= 8
    assert capacity.refusal(first) is None
    capacity.node_seen(node("b", labels={"zone": "z0", "other": ""}))
    capacity.place_unplaced()
    assert capacity.report.unplaced() == ()


def test_a_shape_that_comes_back_after_it_was_dropped_is_as_good_as_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shape_cache, "POOLS_KEPT_MIN", 1)
    capacity = cluster(node("a", labels={"zone": "z0"}))
    capacity._memory._pools_max = 1
    for _ in range(3):
        for i in range(4):
            shape = capacity.shape((pods(4, where=on(zone=f"z{i}")),))
            assert (capacity.refusal(shape) is None) is (i == 0)


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


def test_a_shape_is_requeued_by_its_own_nodes_only_and_never_by_a_fall() -> None:
    capacity = cluster(node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}))
    for name in ("a", "b"):
        capacity.pod_seen(pod(f"full-{name}", name, "4"))
    a = waiting(capacity, pods(1, where=on(zone="a")))
    b = waiting(capacity, pods(1, where=on(zone="b")))
    for shape in (a, b):
        assert capacity.refusal(shape) is not None

    capacity.pod_seen(pod("x", "a"))
    assert capacity.take_requeued() == []
    capacity.pod_gone("x")
    assert capacity.take_requeued() == []
    capacity.pod_gone("full-a")
    assert capacity.take_requeued() == [a]


def test_a_shape_that_no_node_admits_is_requeued_when_one_does() -> None:
    capacity = cluster(node("a", "2"))
    shape = waiting(capacity, pods(1, "1"), pods(1, "1", item=1, where=on(zone="b")))
    assert capacity.refusal(shape) is not None

    capacity.node_seen(node("a", "8"))
    assert capacity.take_requeued() == []
    capacity.node_seen(node("b", "2", labels={"zone": "b"}))
    assert capacity.take_requeued() == [shape]


def test_a_sum_over_pools_that_share_no_node_is_requeued_when_it_suffices() -> None:
    capacity = cluster(node("a", "2", labels={"zone": "a"}), node("b", "2", labels={"zone": "b"}))
    in_both = [pods(3, item=i, where=on(zone=zone)) for i, zone in enumerate("ab")]
    shape = waiting(capacity, *in_both)
    assert capacity.refusal(shape) is not None

    capacity.node_seen(node("a", "3", labels={"zone": "a"}))
    assert capacity.take_requeued() == []
    capacity.node_seen(node("b", "3", labels={"zone": "b"}))
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_a_failed_search_is_requeued_when_any_node_rises() -> None:
    capacity = cluster(node("a", "5"), node("b", "5"))
    shape = waiting(capacity, pods(2, "3"), pods(1, "4", item=1))
    assert capacity.refusal(shape) is not None

    capacity.pod_seen(pod("x", "a"))
    assert capacity.take_requeued() == []
    capacity.pod_gone("x")
    assert capacity.take_requeued() == [shape]


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


def test_news_of_a_node_leave_with_it() -> None:
    """Classes that only reservations hold are never asked, so nothing would take their news."""
    capacity = cluster(node("a"))
    gang = (pods(1, "3"),)
    shape = waiting(capacity, *gang)
    assert capacity.assume("one", 1, shape, gang) is None
    assert capacity.refusal(shape) is not None
    capacity.forget(shape)
    for i in range(9):
        capacity.node_seen(node(f"n{i}"))
        capacity.node_gone(f"n{i}")

    (pods_of_one,) = capacity._memory.classes()
    assert pods_of_one.pool.news.since(0) == []


def test_when_too_many_nodes_rose_to_name_them_every_shape_concerned_is_requeued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_events, "NEWS_MAX", 0)
    monkeypatch.setattr(queueing_hints, "CHECKS_MAX", 0)
    capacity = cluster(node("a", "3"), node("b", "3"))
    shape = waiting(capacity, pods(3, "2"))
    assert capacity.refusal(shape) is not None

    capacity.node_seen(node("a", "3500m"))
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is not None


def test_when_all_nodes_rise_a_little_no_shape_is_requeued_or_looks_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queueing_hints, "CHECKS_MAX", 0)
    names = [f"n{i}" for i in range(40)]
    capacity = cluster(*(node(name, "3") for name in names))
    shape = waiting(capacity, pods(41, "2"))
    assert capacity.refusal(shape) is not None

    for name in names:
        capacity.node_seen(node(name, "3500m"))
    assert capacity.take_requeued() == []
    capacity.node_seen(node(names[0], "4"))
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_the_smallest_requests_hear_of_nodes_that_rose_and_the_others_are_requeued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_events, "NEWS_MAX", 2)
    monkeypatch.setattr(queueing_hints, "CHECKS_MAX", 0)
    capacity = cluster(node("a", "11"), node("b", "11"))
    shapes = [waiting(capacity, pods(number, size)) for number, size in ((7, "3"), (5, "4"))]
    assert all(capacity.refusal(shape) is not None for shape in shapes)

    for name in ("a", "b"):
        capacity.node_seen(node(name, "11500m"))
    assert capacity.take_requeued() == [shapes[1]]


def test_a_report_that_none_waits_for_any_more_does_not_stand_for_a_later_one() -> None:
    capacity = cluster(*(node(name, "3") for name in "abc"))
    before = [waiting(capacity, pods(4, size)) for size in ("2100m", "2200m")]
    assert all(capacity.refusal(shape) is not None for shape in before)
    capacity.node_seen(node("d", "2"))
    for name in "abc":
        capacity.node_seen(node(name, "3200m"))
    news = capacity._memory.remembered(before[0]).pools[0].news
    for _ in range(9):
        if news.is_reported:
            assert capacity.take_requeued(1) == []
    assert not news.is_reported
    for shape in before:
        capacity.forget(shape)
    assert capacity.take_requeued(1) == []
    shape = waiting(capacity, pods(4, "2900m"))
    assert capacity.refusal(shape) is not None

    capacity.node_seen(node("d", "4"))
    found = []
    while capacity.has_news:
        found += capacity.take_requeued(1)
    assert found == [shape]


def test_a_shape_of_two_pools_is_requeued_even_if_only_the_narrower_one_does() -> None:
    """Zone a was all there was, so its sum was that of everything; then zone b appears."""
    capacity = cluster(node("a", labels={"zone": "a"}), node("a2", labels={"zone": "a"}))
    in_b = on((needs("zone", "NotIn", "c"), needs("zone", "NotIn", "a")))
    shape = waiting(capacity, pods(5, where=on(zone="a")), pods(4, item=1, where=in_b))
    capacity.node_seen(node("b", "3", labels={"zone": "b"}))
    capacity.node_gone("b")
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.node_seen(node("b", "4", labels={"zone": "b"}))
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_a_sum_that_covered_all_nodes_covers_them_no_more_when_others_join() -> None:
    capacity = cluster(node("a", labels={"zone": "a"}))
    not_c = on((needs("zone", "NotIn", "c"),))
    shape = waiting(capacity, pods(4, where=on(zone="a")), pods(4, item=1, where=not_c))
    narrow = waiting(capacity, pods(4, where=not_c), pods(4, item=1, where=on(zone="a")))
    assert capacity.refusal(shape) is not None
    assert capacity.refusal(narrow) is not None

    capacity.node_seen(node("b", labels={"zone": "b"}))
    assert capacity.take_requeued() == [shape, narrow]
    assert capacity.refusal(shape) is None
    assert capacity.refusal(narrow) is None


def test_a_shape_sleeps_while_what_it_lacks_is_still_too_little() -> None:
    capacity = cluster(node("a"))
    capacity.pod_seen(pod("x", "a", "2"))
    capacity.pod_seen(pod("y", "a", "2"))
    shape = waiting(capacity, pods(3))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.pod_gone("x")
    assert capacity.take_requeued() == []
    capacity.pod_gone("y")
    assert capacity.take_requeued() == [shape]


def test_a_shape_sleeps_while_its_pods_still_find_too_few_slots() -> None:
    capacity = cluster(node("a", "3"), node("b", "3"))
    shape = waiting(capacity, pods(3, "2"))
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.node_seen(node("b", "3500m"))
    assert capacity.take_requeued() == []
    capacity.node_seen(node("b", "4"))
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_room_that_an_overcommitted_node_still_does_not_have_is_no_rise() -> None:
    capacity = cluster(node("a"))
    capacity.pod_seen(pod("x", "a", "9"))
    capacity.pod_seen(pod("y", "a", "3"))
    assert capacity.refusal(waiting(capacity, pods(1, "1", "1Gi"))) is not None

    capacity.pod_seen(pod("y", "a", "2"))
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
