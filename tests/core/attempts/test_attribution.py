"""The AppWrapper of each pod (protocol C3), and how long a pod that never comes is awaited (C4)."""

import pytest

from mcad.core.state.model import PodCounts, PodPhase, Wanted
from tests.core.builders import cluster, expire, hold, node, pod, pods

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
    assert capacity.gangs.outstanding("one") == expected
    assert capacity.pods.counts("one") == PodCounts(running=1)
    capacity.check()


def test_c3_pods_without_labels_fill_one_set_after_the_other_bound_or_not() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, WORKERS, OTHER)
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", of="one"))
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", "a", of="one"))
    assert capacity.gangs.outstanding("one") == (1, 0, 0)


def test_c3_a_label_that_arrives_later_moves_the_pod() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, WORKERS, OTHER)
    capacity.pod_seen(pod("x", "a", of="one"))
    assert capacity.gangs.outstanding("one") == (1, 1, 1)

    capacity.pod_seen(pod("x", "a", of="one", item=2, index=0))
    assert capacity.gangs.outstanding("one") == (1, 2, 0)
    capacity.check()


def test_c3_an_owner_that_becomes_known_later_moves_the_pod() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", pods(2))
    capacity.pod_seen(pod("x", "a"))
    assert capacity.gangs.outstanding("one") == (2,)
    capacity.pod_seen(pod("x", "a", of="one"))
    assert capacity.gangs.outstanding("one") == (1,)
    assert capacity.would_fit_emptied(capacity.shape((pods(20),)))
    capacity.pod_seen(pod("x", "a"))
    assert capacity.gangs.outstanding("one") == (2,)
    assert not capacity.would_fit_emptied(capacity.shape((pods(20),)))
    capacity.check()


def test_pods_are_counted_by_phase_whatever_set_they_belong_to() -> None:
    capacity = cluster(node("a", "20"))
    hold(capacity, "one", HEAD, attempt=2)
    phases = [*PodPhase, PodPhase.RUNNING]
    for i, phase in enumerate(phases):
        capacity.pod_seen(pod(f"x{i}", "a", "7", of="one", phase=phase, attempt=2))
    capacity.pod_seen(pod("old", "a", of="one", attempt=1))
    assert capacity.pods.counts("one") == PodCounts(1, 3, 1, 1)  # the unknown one runs
    capacity.pod_gone("x1")
    assert capacity.pods.counts("one") == PodCounts(1, 2, 1, 1)


# -- C4 ------------------------------------------------------------------------------------------


def test_c4_pods_that_were_never_created_are_given_up() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5))
    capacity.pod_seen(pod("bound", "a", of="one", item=0, index=0))
    capacity.pod_seen(pod("pending", of="one", item=0, index=0))
    assert expire(capacity, "one") == 3
    assert capacity.gangs.outstanding("one") == (1,)
    assert expire(capacity, "one") == 0
    capacity.check()


def test_c4_what_is_given_up_does_not_come_back_but_what_was_seen_does() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5))
    for i in range(2):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))
    assert expire(capacity, "one") == 3

    capacity.gangs.want("one", 0, 0, Wanted(5))
    assert capacity.gangs.outstanding("one") == (0,)
    capacity.pod_gone("x0")
    assert capacity.gangs.outstanding("one") == (1,)
    for i in range(2, 6):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))
    assert capacity.gangs.outstanding("one") == (0,)
    capacity.check()


def test_c4_only_what_the_child_still_wants_can_be_given_up() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5))
    capacity.gangs.want("one", 0, 0, Wanted(2))
    assert expire(capacity, "one") == 2
    capacity.gangs.want("one", 0, 0, Wanted(5))
    assert capacity.gangs.outstanding("one") == (0,)


def test_c4_after_expiry_succeeded_pods_still_lower_the_wish() -> None:
    capacity = cluster(node("a", "10"))
    hold(capacity, "one", pods(5, counts_pods=True))
    for i in range(3):
        capacity.pod_seen(pod(f"x{i}", "a", of="one", item=0, index=0))
    assert expire(capacity, "one") == 2
    for i in range(3):
        done = pod(f"x{i}", "a", of="one", item=0, index=0, phase=PodPhase.SUCCEEDED)
        capacity.pod_seen(done)
        assert capacity.gangs.outstanding("one") == (0,)
