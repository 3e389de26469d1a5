"""Verdicts: what fits, why something does not, with which figures, and what is remembered."""

from unittest import mock

import pytest

from mcad.core.capacity import Capacity
from mcad.core.fit import exact, fit, greedy
from mcad.core.nodes import pod_class
from mcad.core.state.model import Node, PodSet
from mcad.core.state.refusal import Shortage
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.builders import (
    GPU,
    cluster,
    figures,
    hold,
    needs,
    node,
    on,
    pod,
    pods,
    refusal,
    refused,
    waiting,
)

KIND = WaitingReason


@pytest.mark.parametrize("sets", [(), (pods(0),), (pods(0, per_node=True),)], ids=len)
def test_a_gang_without_pods_needs_nothing_not_even_a_node(sets: tuple[PodSet, ...]) -> None:
    """What fits otherwise is compared with brute force (``test_fit_brute_force``)."""
    assert refusal(cluster(), *sets) is None


@pytest.mark.parametrize(
    ("nodes", "sets", "kind", "named", "missing"),
    [
        pytest.param([], [pods(1)], KIND.NO_NODE, 0, 1, id="no node at all"),
        pytest.param([node(ready=False)], [pods(1)], KIND.NO_NODE, 0, 1, id="none is ready"),
        pytest.param(
            [node(labels={"zone": "a"})],
            [pods(1), pods(2, item=1, where=on(zone="b"))],
            KIND.NO_NODE,
            1,
            2,
            id="the second set has no node",
        ),
        pytest.param([node()], [pods(1, "5")], KIND.TOO_LARGE, 0, 1, id="larger than the node"),
        pytest.param(
            [node("a", "8", gpu=0), node("b", "2", gpu=4)],
            [pods(1, "4", gpu=2)],
            KIND.TOO_LARGE,
            0,
            1,
            id="one node has the CPUs, another the GPUs",
        ),
        pytest.param([node()], [pods(5)], KIND.INSUFFICIENT, -1, 0, id="the sum is short"),
        pytest.param([node(pods=2)], [pods(3, "0")], KIND.INSUFFICIENT, -1, 0, id="pods slots"),
        pytest.param(
            [node("a", "3"), node("b", "3")], [pods(3, "2")], KIND.FRAGMENTED, 0, 1, id="in halves"
        ),
        pytest.param(
            [node("a"), node("b")], [pods(3, cap=1)], KIND.FRAGMENTED, 0, 1, id="one per node"
        ),
        pytest.param(
            [node("a"), node("b")],
            [pods(5, cap=1), pods(3, cap=1, item=1)],
            KIND.FRAGMENTED,
            0,
            3,
            id="both sets are short, the first is named with all its pods that have no slot",
        ),
        pytest.param(
            [node("a", labels={"z": "a"}), node("b", "8", labels={"z": "b"})],
            [pods(5, where=on(z="a")), pods(1, item=1, where=on(z="b"))],
            KIND.INSUFFICIENT,
            0,
            1,
            id="the sum of all suffices, that of the set's own nodes does not",
        ),
        pytest.param(
            [node("a", "5"), node("b", "5")],
            [pods(2, "3"), pods(2, "2.5", item=1)],
            KIND.INSUFFICIENT,
            -1,
            0,
            id="each set fits alone, both together are too much",
        ),
        pytest.param(
            [node("a", "3"), node("b", "4")],
            [pods(1, "4"), pods(2, "1", item=1, cap=1)],
            KIND.FRAGMENTED,
            -1,
            1,
            id="the large one leaves a single node for two that may not share one",
        ),
        pytest.param(
            [node("a", "5"), node("b", "5")],
            [pods(2, "3"), pods(1, "4", item=1)],
            KIND.FRAGMENTED,
            -1,
            1,
            id="each set fits alone, the sum suffices, together there is no way",
        ),
        pytest.param(
            [node("a", "1"), node("b", "4")],
            [pods(0, "2", per_node=True)],
            KIND.FRAGMENTED,
            0,
            1,
            id="a DaemonSet lacks one node",
        ),
        pytest.param(
            [node("a")], [pods(0, "5", per_node=True)], KIND.TOO_LARGE, 0, 1, id="DaemonSet, large"
        ),
    ],
)
def test_why_it_does_not_fit(
    nodes: list[Node], sets: list[PodSet], kind: WaitingReason, named: int, missing: int
) -> None:
    found = refused(cluster(*nodes), *sets)
    assert (found.reason, found.item, found.missing) == (kind, named, missing)


def test_figures_are_those_of_the_whole_gang_the_binding_resource_first() -> None:
    capacity = cluster(node("a", "4", "16Gi", gpu=2), node("b", "4", "16Gi"))
    capacity.pod_seen(pod("x", "a", "1", gpu=1))

    found = refused(capacity, pods(2, "2", "1Gi", gpu=1), pods(10, "500m", "1Gi", item=1))
    assert found.binding == GPU
    assert found.shortages[0] == Shortage(GPU, 2, 1)
    assert sorted(figures(found)) == [
        ("cpu", 9000, 7000),
        ("memory", 12 << 30, 32 << 30),
        (GPU, 2, 1),
        ("pods", 12, 219),
    ]
    assert [s.missing for s in found.shortages] == [1, 2000, 0, 0]


def test_what_is_short_of_less_than_a_millionth_is_short() -> None:
    """All of the CPU is asked for, and of the memory one byte more than there is."""
    tera = 1 << 40
    found = refused(cluster(node("a", "1", str(tera - 1))), pods(1, "1", str(tera)))
    two = refused(cluster(node("a", "2", str(2 * tera - 1))), pods(2, "1", str(tera)))

    assert figures(found)[0] == ("memory", tera, tera - 1)
    assert figures(two)[0] == ("memory", 2 * tera, 2 * tera - 1)
    assert (found.reason, two.reason) == (KIND.TOO_LARGE, KIND.INSUFFICIENT)


def test_each_of_many_nodes_counts_once_while_the_books_grow() -> None:
    capacity = cluster()
    for number in range(200):
        capacity.node_seen(node(f"n{number}", "1"))
        if number % 40 == 0:
            assert refusal(capacity, pods(number + 1)) is None
            assert refusal(capacity, pods(number + 2)) is not None
    capacity.check()
    assert refusal(capacity, pods(200)) is None


def test_an_overcommitted_node_lends_nothing() -> None:
    capacity = cluster(node("a", "4"), node("b", "4"))
    capacity.pod_seen(pod("x", "a", "10"))

    assert refusal(capacity, pods(4)) is None
    assert ("cpu", 5000, 4000) in figures(refusal(capacity, pods(5)))


def _crossing(cpu: str) -> Capacity:
    """Each zone and each kind has two nodes, one of which they share: neither tells what both have
    together."""
    return cluster(
        node("a", cpu, labels={"zone": "a", "kind": "y"}),
        node("ax", cpu, labels={"zone": "a", "kind": "x"}),
        node("x", cpu, labels={"zone": "b", "kind": "x"}),
    )


@pytest.mark.parametrize(
    ("replicas", "kind"),
    [(5, None), (6, None), (7, KIND.INSUFFICIENT), (8, KIND.INSUFFICIENT)],
)
def test_the_sum_for_sets_whose_nodes_overlap_counts_shared_nodes_once(
    replicas: int, kind: WaitingReason | None
) -> None:
    in_a = pods(6, "1", where=on(zone="a"))
    of_x = pods(replicas, "1", item=1, where=on(kind="x"))
    capacity = _crossing("4")
    found = refusal(capacity, in_a, of_x)

    assert (found.reason if found else None) == kind
    if found is not None:
        assert figures(found)[0] == ("cpu", (6 + replicas) * 1000, 12000)


def test_nodes_that_overlap_may_have_the_sum_and_not_the_slots() -> None:
    found = refused(
        _crossing("3"),
        pods(3, "2", where=on(zone="a", kind="y")),
        pods(1, "1", item=1, where=on(kind="x")),
    )
    assert (found.reason, found.item) == (KIND.INSUFFICIENT, 0)
    sets = pods(2, "2", where=on(zone="a")), pods(2, "2", item=1, where=on(kind="x"))
    found = refused(_crossing("3"), *sets)
    assert (found.reason, found.item) == (KIND.FRAGMENTED, -1)
    assert figures(found)[0] == ("cpu", 8000, 9000)


def test_sets_that_share_no_node_are_placed_independently() -> None:
    """Were they searched together, the states would be too many."""
    capacity = cluster(*(node(f"n{i}", "5", labels={"zone": "abc"[i % 3]}) for i in range(60)))
    sets = tuple(pods(40, "2", item=i, where=on(zone="abc"[i])) for i in range(3))

    assert refusal(capacity, *sets) is None
    assert refusal(capacity, *sets[:2], pods(41, "2", item=2, where=on(zone="c"))) is not None


def test_too_large_compares_one_pod_with_the_largest_node() -> None:
    found = refusal(cluster(node("a", "4"), node("b", "8")), pods(3, "9"))

    assert figures(found)[0] == ("cpu", 9000, 8000)


def test_a_resource_that_no_node_has_is_no_matter_of_size() -> None:
    found = refusal(cluster(node("a", "4")), pods(1, "9", gpu=1))
    assert found.reason is KIND.TOO_LARGE
    assert found.message == (
        "No node that admits its pods has it: nvidia.com/gpu: 1 requested, 0 available, 1 missing. "
        "cpu: 9 requested, 4 available, 5 missing. Devices that only dynamic resource allocation "
        "serves (extendedResourceName of a DeviceClass) are not supported. "
        "No place for 1 pod of item 0."
    )
    large = refusal(cluster(node("a", "4", gpu=1)), pods(1, "9", gpu=1))
    assert large.message.startswith("One pod is larger than any node that admits it. cpu: 9 ")


def test_too_large_is_said_even_if_the_sum_is_short_as_well() -> None:
    found = refused(cluster(node("a", "4")), pods(1), pods(3, "9", item=1))
    assert (found.reason, found.item) == (KIND.TOO_LARGE, 1)


def test_a_node_that_is_only_busy_makes_nothing_too_large() -> None:
    capacity = cluster(node("a", "4"))
    capacity.pod_seen(pod("x", "a", "1"))
    found = refused(capacity, pods(1, "4"))
    assert found.reason is KIND.INSUFFICIENT


def test_predicates_that_are_not_looked_at_are_named_once() -> None:
    sets = [pods(9, unmodelled=("topologySpread",)), pods(1, item=1, unmodelled=("podAffinity",))]
    found = refused(cluster(node()), *sets, pods(1, item=2, unmodelled=("topologySpread",)))
    assert found.unmodelled == ("topologySpread", "podAffinity")


def test_a_refusal_by_a_set_names_its_own_place_in_the_manifest() -> None:
    capacity = cluster(node("a", "3"), node("b", "3"))
    one = refusal(capacity, pods(3, "2", item=0, index=1))
    other = refusal(capacity, pods(3, "2", item=4, index=2))

    assert one is not None
    assert other is not None
    assert (one.item, one.index, other.item, other.index) == (0, 1, 4, 2)


def test_sets_of_equal_pods_are_one_part_of_the_gang() -> None:
    """Sixteen bare pods as sixteen items are 2^16 states if they are not known to be equal."""
    capacity = cluster(*(node(f"n{i}", "5") for i in range(8)))
    singles = [pods(1, "2", item=i) for i in range(16)]
    shape = capacity.shape(tuple(singles))

    assert len(shape.alike) == 1
    assert capacity.refusal(shape) is None
    found = refused(capacity, *singles, pods(1, "2", item=16))
    assert (found.reason, found.missing) == (KIND.FRAGMENTED, 1)


# -- memory --------------------------------------------------------------------------------------


def test_a_set_that_was_short_is_short_no_more_when_a_node_has_grown() -> None:
    capacity = cluster(node("a", "6"), *(node(name, "3") for name in "bcd"))
    shape = capacity.shape((pods(2, "3"), pods(2, "4", item=1)))
    found = refused(capacity, *shape.sets)
    assert (found.reason, found.item, found.missing) == (KIND.FRAGMENTED, 1, 1)

    capacity.node_seen(node("c", "5"))
    assert capacity.refusal(shape) is None
    for name in "ad":
        capacity.pod_seen(pod(f"x{name}", name, "2"))
    found = refused(capacity, *shape.sets)
    assert (found.reason, found.item) == (KIND.INSUFFICIENT, -1)


def test_a_verdict_stands_when_a_pod_is_bound_where_it_was_assumed() -> None:
    capacity = cluster(node("a", "4"))
    hold(capacity, "one", pods(1))
    shape = waiting(capacity, pods(1))
    assert capacity.refusal(shape) is None
    before = capacity.steps
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    assert capacity.refusal(shape) is None
    assert capacity.steps == before, "a verdict that is known is no work"

    capacity.pod_gone("x")
    capacity.gangs.release("one")
    assert capacity.refusal(shape) is None
    assert capacity.steps > before


def test_a_node_that_stays_overcommitted_gains_no_room_when_its_debt_gets_smaller() -> None:
    capacity = cluster(node("a", "1"))
    capacity.pod_seen(pod("resized", "a", "4"))
    assert capacity.refusal(shape := waiting(capacity, pods(1))) is not None
    assert capacity.take_requeued() == []
    for cpu in ("3", "1"):
        capacity.pod_seen(pod("resized", "a", cpu))
        assert not capacity.has_news

    capacity.pod_seen(pod("resized", "a", "500m"))
    assert capacity.has_news
    assert capacity.take_requeued() == []
    capacity.pod_gone("resized")
    assert capacity.take_requeued() == [shape]


def test_what_was_found_for_one_gang_is_not_given_to_another() -> None:
    capacity = cluster(node("a", "5"), node("b", "5"))
    mixed = capacity.shape((pods(1, "4"), pods(1, "5", item=1)))
    single = (pods(2, "5"),)
    assert capacity.refusal(mixed) is None

    assert capacity.assume("one", 1, capacity.shape(single), single) is None
    assert capacity.gangs.outstanding("one") == (2,)


def test_a_failed_search_is_not_repeated_until_something_rises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = []
    monkeypatch.setattr(fit, "pack", lambda *a: searches.append(1) or greedy.pack(*a))  # type: ignore[func-returns-value]
    capacity = cluster(node("a", "5"), node("b", "5"))
    shape = waiting(capacity, pods(2, "3"), pods(1, "4", item=1))

    assert [capacity.refusal(shape) is None for _ in range(3)] == [False] * 3
    assert len(searches) == 1
    capacity.pod_seen(pod("x", "a", "500m"))
    assert capacity.refusal(shape) is not None
    assert len(searches) == 1
    capacity.node_seen(node("c", "4"))
    assert capacity.refusal(shape) is None
    assert len(searches) == 2


def test_a_sum_that_suffices_again_where_no_pod_fits_is_short_no_more() -> None:
    """A GPU comes free on a node without CPU: no set gains a slot, so no search is due."""
    capacity = cluster(node("a", "2", gpu=1), node("b", "1", gpu=1))
    for name, cpu, gpu in (("cpu", "1", 0), ("gpu", "0", 1)):
        capacity.pod_seen(pod(name, "b", cpu, gpu=gpu))
    shape = waiting(capacity, pods(1, gpu=1), pods(1, "500m", gpu=1, item=1))
    before = capacity.refusal(shape)
    capacity.pod_gone("gpu")
    after = capacity.refusal(shape)

    assert figures(before)[0] == (GPU, 2, 1)
    assert after is not None
    assert after.reason is KIND.FRAGMENTED
    assert figures(after)[0] == (GPU, 2, 2)


def test_a_search_beyond_its_budget_is_undecided_and_said_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(greedy, "EXACT_WORK_MAX", 3)
    monkeypatch.setattr(fit, "EXACT_WORK_MAX", 3)
    found = refused(cluster(node("a", "5"), node("b", "5")), pods(2, "3"), pods(1, "4", item=1))
    assert (found.reason, found.item) == (KIND.UNDECIDED, -1)


@pytest.mark.parametrize(("states", "kind"), [(1, KIND.UNDECIDED), (2, KIND.FRAGMENTED)])
def test_a_search_of_too_many_states_is_not_even_begun(
    monkeypatch: pytest.MonkeyPatch, states: int, kind: WaitingReason
) -> None:
    monkeypatch.setattr(exact, "EXACT_STATES_MAX", states)
    with mock.patch.object(greedy, "_places", wraps=greedy._places) as places:
        found = refused(cluster(node("a", "5"), node("b", "5")), pods(2, "3"), pods(1, "4", item=1))
    assert (found.reason, places.call_count) == (kind, states - 1)


def test_what_the_budget_of_a_pass_did_not_suffice_for_is_asked_again_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fit, "EXACT_WORK_PER_PASS_MAX", 10)
    capacity = cluster(node("a", "5"), node("b", "5"))
    shapes = [waiting(capacity, pods(2, "3"), pods(1, size, item=1)) for size in ("3.5", "4")]
    capacity.place_unplaced()
    kinds = [capacity.refusal(shape).reason for shape in shapes]  # type: ignore[union-attr]
    assert capacity.take_requeued() == []
    capacity.place_unplaced()

    assert kinds == [KIND.FRAGMENTED, KIND.UNDECIDED]
    assert capacity.take_requeued() == [shapes[1]]
    assert capacity.refusal(shapes[1]).reason is KIND.FRAGMENTED  # type: ignore[union-attr]


def test_an_unusable_term_is_no_reason_to_fail() -> None:
    found = refusal(cluster(node()), pods(1, where=on((needs("x", "Gt", "y"),))))

    assert found is not None
    assert found.reason is KIND.NO_NODE


def test_a_question_has_the_answer_of_the_cycle() -> None:
    capacity = cluster(*(node(f"n{i}", "4", labels={"n": str(i)}) for i in range(3)))
    hold(capacity, "a", pods(1, "2", where=on(n="0")))
    hold(capacity, "lost", pods(1, "4", where=on(n="2")))
    capacity.node_gone("n2")
    capacity.place_unplaced()
    asked = {
        "fits": (pods(1, "4", where=on(n="1")),),
        "in sum": (pods(9, "1"),),
        "alone": (pods(2, "3"),),
        "together": (pods(1, "3"), pods(1, "2500m", item=1)),
        "no node": (pods(1, "1", where=on(n="9")),),
    }
    shapes = {name: waiting(capacity, *sets) for name, sets in asked.items()}
    before = {name: capacity.questions().refusal(shape) for name, shape in shapes.items()}

    assert before == {name: capacity.refusal(shape) for name, shape in shapes.items()}
    assert [name for name, refused in before.items() if refused is None] == ["fits"]
    unplaced = cluster(node("n1", "4"), node("n2", "4"))
    hold(unplaced, "lost", pods(2, "3"))
    unplaced.node_gone("n2")
    unplaced.place_unplaced()
    assert unplaced.questions().refusal(waiting(unplaced, pods(1, "1"))) is not None


@pytest.mark.parametrize("rises", [1, 100])
def test_a_smaller_gang_of_equal_pods_keeps_no_larger_one_from_what_rises(
    rises: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether what rises is added to the bound of their slots, or the bound is estimated anew."""
    monkeypatch.setattr(pod_class, "RISES_MAX", rises)
    names = [f"n{number:03}" for number in range(50)]
    capacity = cluster(*map(node, names))
    for name in names:
        capacity.pod_seen(pod(f"on-{name}", name, "1"))
    shape = waiting(capacity, pods(60, "2"))
    assert capacity.refusal(shape) is not None
    hold(capacity, "small", pods(5, "2"))
    assert capacity.take_requeued() == [], "nothing rose"
    for name in names[:25]:
        capacity.pod_gone(f"on-{name}")
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None
