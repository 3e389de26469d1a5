"""The exact search for mixed gangs by itself, without greed before it."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcad.core.capacity import Capacity
from mcad.core.fit.exact import KnownChoices, Need, Place, Verdict, exact
from mcad.core.nodes.columns import slots
from mcad.core.nodes.ledger import Row
from mcad.core.nodes.resources import Books
from mcad.core.state.model import Node, PodSet
from mcad.core.state.work_bounds import EXACT_WORK_MAX
from tests import budget
from tests.core import strategies
from tests.core.builders import cluster, fits_by_brute_force, hosts_of, node, pod, pods

AMPLE = 1_000_000


class Search:
    """A gang in a capacity, and what is free on the nodes there."""

    def __init__(self, capacity: Capacity, sets: tuple[PodSet, ...]) -> None:
        parts = capacity._memory.hold(capacity.shape(sets)).parts
        self.needs = [Need(i, one.pods, one.replicas, one.apart) for i, one in enumerate(parts)]
        self.names = sorted({name for one in parts for name, _ in one.pods.request})
        self.rows = list(capacity._ledger.rows.values())
        self.free = [row.free for row in self.rows]

    def run(self, budget: int = AMPLE, known: KnownChoices | None = None) -> Verdict:
        places = [self._place(*each) for each in zip(self.rows, self.free, strict=True)]
        verdict = exact(self.needs, places, self.names, budget, known)
        if verdict.plan is not None:
            self._check(verdict.plan)
        return verdict

    def _place(self, row: Row, free: Books) -> Place:
        there = (
            slots(free, one.pods.request, one.pods.cap) if one.pods.admitted_by(row) else 0
            for one in self.needs
        )
        return Place(row.at, tuple(free.get(name, 0) for name in self.names), tuple(there))

    def _check(self, plan: Sequence[tuple[int, int, int]]) -> None:
        """Every pod has a place, every place takes its pods, one line per part and node."""
        placed: Counter[int] = Counter()
        rows = {row.at: (row, dict(free)) for row, free in zip(self.rows, self.free, strict=True)}
        for part, at, times in plan:
            (row, free), need = rows[at], self.needs[part]
            assert need.pods.admitted_by(row)
            assert 0 < times <= slots(free, need.pods.request, need.pods.cap)
            for name, n in need.pods.request:
                free[name] -= n * times
            placed[part] += times
            beside = {other for other, there, _ in plan if there == at and other != part}
            assert beside.isdisjoint(need.apart)
        assert placed == Counter({need.part: need.replicas for need in self.needs})
        lines = [(part, at) for part, at, _ in plan]
        assert len(lines) == len(dict.fromkeys(lines))


def search(nodes: list[Node], sets: tuple[PodSet, ...], budget: int = AMPLE) -> Verdict:
    return Search(cluster(*nodes), sets).run(budget)


@settings(max_examples=budget.examples(150))
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


@settings(max_examples=budget.examples(300))
@given(strategies.tight(), st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=4))
def test_what_is_known_of_nodes_from_searches_before_makes_no_difference(
    found: tuple[dict[str, Node], tuple[PodSet, ...]], changes: list[tuple[int, int]]
) -> None:
    nodes, sets = found
    one, known = Search(cluster(*nodes.values()), sets), KnownChoices()
    for number, cpu in [(0, 0), *changes]:
        one.free[number % len(one.free)]["cpu"] += 1000 * cpu
        alone = one.run()
        after_others = one.run(known=known)
        assert alone.plan == after_others.plan
        assert after_others.work <= alone.work


def test_the_budget_is_counted_and_never_exceeded_by_much() -> None:
    nodes = [node(f"n{i}", f"{7 + i % 3}") for i in range(30)]
    sets = (pods(20, "3"), pods(40, "2", item=1), pods(16, "2500m", item=2))
    unbounded = search(nodes, sets)
    for steps in (0, 10, 100, 1000):
        verdict = search(nodes, sets, steps)
        assert not verdict.decided
        assert verdict.plan is None
        assert steps < verdict.work <= steps + unbounded.work

    assert unbounded.decided
    assert search(nodes, sets, unbounded.work).decided


def test_a_debt_of_what_is_not_asked_for_takes_nothing() -> None:
    """The second node lacks memory, for which the second set does not ask."""
    capacity = cluster(node("a", "1", "1Gi"), node("b", "1", "1Gi"))
    asked = Search(capacity, (pods(1, "1", "1Gi"), pods(1, "1", item=1)))
    asked.free[1] = {**asked.free[1], "memory": -1}
    assert sorted(asked.run().plan or ()) == [(0, 0, 1), (1, 1, 1)]


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
    assert Search(overcommitted, fits).run().plan is not None


def test_a_head_and_its_workers_are_decided_on_thousands_of_nodes_within_the_budget() -> None:
    """The shape that matters most: one large pod and many others, every node almost full."""
    nodes = [node(f"n{i}", f"{3 + i % 4}") for i in range(2000)]
    workers = sum((3 + i % 4) // 3 for i in range(2000))
    head = pods(1, "5", item=1)

    for replicas, fits in ((workers - 1, True), (workers, False)):
        verdict = search(nodes, (pods(replicas, "3"), head), EXACT_WORK_MAX)
        assert verdict.decided
        assert (verdict.plan is not None) is fits
