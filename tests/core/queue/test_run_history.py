"""Run times by shape: bounded, the same in whatever order they are told, exact quantiles."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.nodes.shape import Shape
from mcad.core.queue.run_history import RUNS_MAX, RUNS_MIN, SHAPES_MAX, History
from mcad.core.state.model import PodPhase, Workload
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.running.test_health import RESTARTS, Restart


def shape(milli: int = 100) -> Shape:
    return Shape.of(workload("a", milli).sets)


def told(*runs: tuple[int, int]) -> History:
    history = History()
    for ended, ran in runs:
        history.note(shape(), ended - ran, ended)
    return history


def test_nothing_is_concluded_from_few() -> None:
    runs = [(at, 10) for at in range(100, 100 + RUNS_MIN)]
    assert told(*runs[1:]).quantile(shape(), 50) == 0
    assert told(*runs).quantile(shape(), 50) == 10
    assert told(*runs).quantile(shape(200), 50) == 0  # of another shape nothing is known


def test_a_quantile_is_of_those_that_ran_for_longer() -> None:
    history = told(*((1000 + n, n) for n in range(1, 21)))
    assert [history.quantile(shape(), p) for p in (1, 5, 6, 10, 50, 90, 100)] == [
        *(1, 1, 2, 2, 10, 18, 20)
    ]
    assert history.quantile(shape(), 10, over=10) == 11
    assert history.quantile(shape(), 90, over=10) == 19
    assert history.quantile(shape(), 90, over=15) == 20
    assert history.quantile(shape(), 90, over=16) == 0  # four did


@given(
    st.lists(st.integers(1, 50), min_size=RUNS_MIN, max_size=RUNS_MAX),
    st.integers(1, 100),
    st.integers(0, 40),
)
def test_a_quantile_is_the_shortest_time_that_is_enough(
    ran: list[int], percent: int, over: int
) -> None:
    found = told(*((1000 + n, time) for n, time in enumerate(ran))).quantile(shape(), percent, over)
    longer = [time for time in ran if time > over]
    if len(longer) < RUNS_MIN:
        assert found == 0
        return
    share = Fraction(percent, 100)
    enough = [t for t in longer if Fraction(sum(x <= t for x in longer), len(longer)) >= share]
    assert found == min(enough)


@given(st.permutations([(1000 + n, n + 1) for n in range(RUNS_MAX + 6)]))
def test_the_last_ones_count_in_whatever_order_they_are_told(runs: list[tuple[int, int]]) -> None:
    late = sorted(runs)[6:]
    for percent in (10, 50, 90):
        assert told(*runs).quantile(shape(), percent) == told(*late).quantile(shape(), percent)


def test_shapes_of_which_nothing_was_heard_for_long_are_forgotten() -> None:
    history = History()
    for n in range(RUNS_MIN):
        history.note(shape(1), 0, 10 + n)
        history.note(shape(2), 0, 10 + n)
    for milli in range(3, SHAPES_MAX + 1):
        history.note(shape(milli), 0, 20)
    history.note(shape(1), 0, 10)
    history.note(shape(9_999), 0, 20)
    assert len(history) == SHAPES_MAX
    assert history.quantile(shape(1), 100) == 14
    assert history.quantile(shape(2), 100) == 0


# -- of the dispatcher -------------------------------------------------------------------------


def finishing(name: str, **changes: object) -> Workload:
    work = workload(name, 100, **changes)
    items = tuple(replace(item, completion=("succeeded",)) for item in work.items)
    return replace(work, items=items)


@RESTARTS
def test_runs_to_completion_are_remembered_and_found_again(restart: Restart) -> None:
    bench = Bench(PATIENT, nodes=[node()])
    for n in range(RUNS_MIN):
        bench.start(finishing(f"a{n}"))
        bench.bind(f"a{n}-0")
        bench.advance(60 * (n + 1))
        bench.change(f"a{n}-0", phase=PodPhase.SUCCEEDED)
        bench.settle()
        assert bench.state(f"a{n}") == "Completed"
    restart(bench)
    bench.settle()
    history = bench.dispatcher.cluster.history
    known = [history.quantile(shape(), p) // SECOND for p in (20, 60, 100)]
    assert known == [60, 180, 300]


@pytest.mark.parametrize("limit", [60])
def test_a_stopped_run_says_nothing_of_the_run_time(limit: int) -> None:
    bench = Bench(PATIENT, nodes=[node()])
    bench.start(*(finishing(f"a{n}", run_limit=limit * SECOND) for n in range(RUNS_MIN)))
    for ref in list(bench.things):
        bench.bind(ref.name)
    bench.advance(limit + 1)
    assert bench.state("a0") == "Failed"
    assert len(bench.dispatcher.cluster.history) == 0
