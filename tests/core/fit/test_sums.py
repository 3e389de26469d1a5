"""Where only sums count: ``fit: aggregate``, and nodes as they would be if AppWrappers left."""

import pytest

from mcad.core.fit import fit
from mcad.core.state.model import Node, PodSet
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.builders import (
    AGGREGATE,
    cluster,
    node,
    on,
    pod,
    pods,
    refusal,
    taint,
    waiting,
    wants,
)

KIND = WaitingReason


# -- aggregate -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "sets", "fits"),
    [
        pytest.param([node("a", "3"), node("b", "3")], [pods(3, "2")], True, id="in halves"),
        pytest.param([node("a", "3"), node("b", "3")], [pods(1, "5")], True, id="in two pieces"),
        pytest.param([node("a", taints=[taint("t")])], [pods(4)], True, id="taints do not matter"),
        pytest.param([node("a")], [pods(1, where=on(z="z"))], True, id="nor do labels"),
        pytest.param([node("a")], [pods(5)], False, id="the sum does"),
        pytest.param(
            [node("a", cordoned=True)], [pods(1)], False, id="cordoned nodes do not count"
        ),
        pytest.param([node("a", ready=False)], [pods(1)], False, id="nor do those not ready"),
        pytest.param([], [pods(1)], False, id="without nodes there is no sum"),
    ],
)
def test_aggregate_is_mcads_plain_sum(nodes: list[Node], sets: list[PodSet], fits: bool) -> None:
    found = refusal(cluster(*nodes, settings=AGGREGATE), *sets)

    assert (found is None) is fits
    assert found is None or found.reason is KIND.INSUFFICIENT


def test_in_aggregate_what_has_no_node_weighs_on_the_sum() -> None:
    capacity = cluster(node("a", "3"), node("b", "3"), settings=AGGREGATE)
    gang = (pods(3, "2"),)

    assert capacity.assume("one", 1, capacity.shape(gang), gang) is None
    assert capacity.report.unplaced() == wants("2", pods="1")
    assert refusal(capacity, pods(1, "1")) is not None
    capacity.gangs.release("one")
    assert refusal(capacity, pods(6, "1")) is None


def test_in_aggregate_a_release_of_what_has_no_node_is_a_rise() -> None:
    capacity = cluster(node("a", "3"), node("b", "3"), settings=AGGREGATE)
    shape = waiting(capacity, gang := pods(1, "5"))
    assert capacity.assume("one", 1, shape, (gang,)) is None
    assert capacity.refusal(shape) is not None
    assert capacity.take_requeued() == []

    capacity.gangs.release("one")
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


# -- emptied -------------------------------------------------------------------------------------


def test_emptied_nodes_keep_foreign_pods_but_neither_ours_nor_reservations() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    gang = (pods(2, "1"),)
    capacity.pod_seen(pod("foreign", "a", "1"))
    capacity.pod_seen(pod("ours", "b", "4", of="other"))
    assert capacity.assume("one", 1, capacity.shape(gang), gang) is None

    assert capacity.refusal(capacity.shape((pods(7),))) is not None
    assert capacity.would_fit_emptied(capacity.shape((pods(7),)))
    assert not capacity.would_fit_emptied(capacity.shape((pods(8),)))
    capacity.pod_gone("foreign")
    assert capacity.would_fit_emptied(capacity.shape((pods(8),)))


def test_emptied_the_answer_for_a_gang_that_waits_changes_with_foreign_pods() -> None:
    capacity = cluster(node("a", "4"))
    shape = waiting(capacity, pods(4))
    assert capacity.would_fit_emptied(shape)
    for _ in range(2):
        capacity.pod_seen(pod("foreign", "a"))
        assert not capacity.would_fit_emptied(shape)
        capacity.pod_gone("foreign")
        assert capacity.would_fit_emptied(shape)


def test_emptied_a_daemon_set_has_to_fit_on_a_node_that_joins_too() -> None:
    capacity = cluster(node("a"))
    shape = capacity.shape((pods(0, "2", per_node=True),))
    assert capacity.would_fit_emptied(shape)
    capacity.node_seen(node("b", "1"))
    assert not capacity.would_fit_emptied(shape)


def test_emptied_what_a_pass_had_no_time_for_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Greed puts the large pod on b, where none of the others fits beside it."""
    capacity = cluster(node("a", "7"), node("b", "6"))
    shape = capacity.shape((pods(1, "4"), pods(3, "3", item=1)))
    capacity.remember(shape)
    with monkeypatch.context() as patch:
        patch.setattr(fit, "EXACT_WORK_PER_PASS_MAX", 0)
        capacity.place_unplaced()
        assert not capacity.would_fit_emptied(shape)
        assert not capacity.knows_emptied(shape)

    capacity.place_unplaced()
    assert capacity.would_fit_emptied(shape)


def test_emptied_in_aggregate_is_a_sum_too() -> None:
    capacity = cluster(node("a", "5"), node("b", "5"), settings=AGGREGATE)
    capacity.pod_seen(pod("ours", "a", "5", of="other"))

    assert capacity.would_fit_emptied(capacity.shape((pods(1, "10"),)))
    assert not capacity.would_fit_emptied(capacity.shape((pods(1, "11"),)))
