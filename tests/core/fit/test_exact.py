"""The exact search for mixed gangs by itself, without greed before it."""

from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcad.core.capacity import Capacity
from mcad.core.fit import exact as exact_search
from mcad.core.fit.exact import KnownChoices, Need, Verdict, exact
from mcad.core.nodes.pod_signature import slots
from mcad.core.nodes.pools import Plan, Row
from mcad.core.nodes.resources import Books
from mcad.core.state.model import Node, PodSet
from mcad.core.state.work_bounds import EXACT_WORK_MAX
from tests.core import strategies
from tests.core.builders import cluster, fits_by_brute_force, hosts_of, node, pod, pods

AMPLE = 1_000_000


def search(nodes: list[Node], sets: tuple[PodSet, ...], budget: int = AMPLE) -> Verdict:
    return search_in(cluster(*nodes), sets, budget)


def search_in(capacity: Capacity, sets: tuple[PodSet, ...], budget: int = AMPLE) -> Verdict:
    shape = capacity._memory.hold(capacity.shape(sets))
    needs = [Need(i, part.pods, part.replicas, part.apart) for i, part in enumerate(shape.parts)]
    rows = {rank: row for part in shape.parts for rank, row in part.pods.pool.rows.items()}
    verdict = exact(needs, [rows[rank] for rank in sorted(rows)], _free, budget)
    if verdict.plan is not None:
        _check_plan(verdict.plan, needs)
    return verdict


def _free(row: Row) -> Books:
    return row.free


def _check_plan(plan: Plan, needs: list[Need]) -> None:
    """Every pod has a place, every place takes its pods, one line per part and node."""
    placed: Counter[int] = Counter()
    left: dict[int, Books] = {}
    for part, row, times in plan:
        pod_class = needs[part].pods
        free = left.setdefault(row.rank, dict(row.free))
        assert row.rank in pod_class.pool.rows
        assert 0 < times <= slots(free, pod_class.request, pod_class.cap)
        for name, n in pod_class.request:
            free[name] -= n * times
        placed[part] += times
        assert not any(row is other and each in needs[part].apart for each, other, _ in plan)
    assert placed == Counter({need.part: need.replicas for need in needs})
    lines = [(part, row.rank) for part, row, _ in plan]
    assert len(lines) == len(dict.fromkeys(lines))


@settings(max_examples=150)
@given(strategies.tight())
def test_it_finds_a_placement_if_and_only_if_there_is_one(
    found: tuple[dict[str, Node], tuple[PodSet, ...]],
) -> None:
    nodes, sets = found
    expected = fits_by_brute_force(hosts_of(nodes.values()), sets)
    verdict = search(list(nodes.values()), sets)

    event(f"{len(sets)} sets, fits: {expected}")
    assert verdict.decided
    assert (verdict.plan is not None) is expected


@settings(max_examples=300)
@given(strategies.tight(), st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=4))
def test_what_is_known_of_nodes_from_searches_before_makes_no_difference(
    found: tuple[dict[str, Node], tuple[PodSet, ...]], changes: list[tuple[int, int]]
) -> None:
    nodes, sets = found
    capacity = cluster(*nodes.values())
    parts = capacity._memory.hold(capacity.shape(sets)).parts
    needs = [Need(i, part.pods, part.replicas) for i, part in enumerate(parts)]
    rows = list({rank: row for part in parts for rank, row in part.pods.pool.rows.items()}.values())
    free, known = {row.rank: dict(row.free) for row in rows}, KnownChoices()
    for number, cpu in [(0, 0), *changes]:
        free[rows[number % len(rows)].rank]["cpu"] += 1000 * cpu
        alone = exact(needs, rows, lambda row: free[row.rank], AMPLE)
        after_others = exact(needs, rows, lambda row: free[row.rank], AMPLE, known)
        assert alone.plan == after_others.plan
        assert after_others.work <= alone.work


def test_the_budget_is_counted_and_never_exceeded_by_much() -> None:
    nodes = [node(f"n{i}", f"{7 + i % 3}") for i in range(30)]
    sets = (pods(20, "3"), pods(40, "2", item=1), pods(16, "2500m", item=2))
    unbounded = search(nodes, sets)
    for budget in (0, 10, 100, 1000):
        verdict = search(nodes, sets, budget)
        assert not verdict.decided
        assert verdict.plan is None
        assert budget < verdict.work <= budget + unbounded.work

    assert unbounded.decided
    assert search(nodes, sets, unbounded.work).decided


def test_too_many_states_are_not_even_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = (pods(3, "1"), pods(3, "2", item=1), pods(9, "3", item=2))
    monkeypatch.setattr(exact_search, "EXACT_STATES_MAX", 15)
    assert search([node("a", "99")], sets) == Verdict(None, decided=False, work=0)
    monkeypatch.setattr(exact_search, "EXACT_STATES_MAX", 16)
    assert search([node("a", "99")], sets).plan is not None


@pytest.mark.parametrize("free", ["8", "11"])
def test_three_sets_that_ask_for_more_than_their_nodes_have_are_not_searched_for(free: str) -> None:
    """Of 11 CPUs pods of 4 use 8. An overcommitted node takes nothing from the others."""
    nodes = [node(f"n{i}", free) for i in range(20)]
    sets = (pods(16, "4"), pods(16, "4", "1Mi", item=1), pods(9, "8", item=2))

    refused = search(nodes, sets)
    assert refused == Verdict(None, decided=True, work=len(nodes))
    overcommitted = cluster(*nodes, node("small", "1"))
    overcommitted.pod_seen(pod("p", "small", "900"))
    fits = (pods(16, "4"), pods(16, "4", "1Mi", item=1), pods(3, "8", item=2))
    assert search_in(overcommitted, fits).plan is not None


def test_a_head_and_its_workers_are_decided_on_thousands_of_nodes_within_the_budget() -> None:
    """The shape that matters most: one large pod and many others, every node almost full."""
    nodes = [node(f"n{i}", f"{3 + i % 4}") for i in range(2000)]
    workers = sum((3 + i % 4) // 3 for i in range(2000))
    head = pods(1, "5", item=1)

    for replicas, fits in ((workers - 1, True), (workers, False)):
        verdict = search(nodes, (pods(replicas, "3"), head), EXACT_WORK_MAX)
        assert verdict.decided
        assert (verdict.plan is not None) is fits
