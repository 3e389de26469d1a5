"""A gang that fits waits for the pods of another one to be bound, where they could take each
other's nodes: for a moment, in order, and without a word in its status."""

from __future__ import annotations

import pytest

from mcad.core.cycle import admit
from mcad.core.events import PodGone, PodSeen
from mcad.core.state.model import Constraint, Workload
from mcad.core.state.reasons import ConditionType
from mcad.core.state.records import replace
from mcad.core.state.settings import Fit
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.builders import pod

WAITING = replace(PATIENT, binding_wait=5 * SECOND)


def scarce(**changes: object) -> Bench:
    """One whole node, one with a little less, and a small pod that was dispatched and is not bound
    yet; the large one behind it needs the whole node."""
    settings = replace(WAITING, **changes)
    bench = Bench(settings, nodes=[node("part", 900), node("whole", 1000)])
    return bench.start(workload("small", 100)).start(workload("large", 1000))


def test_the_large_pod_waits_until_the_small_one_is_bound() -> None:
    bench = scarce()
    assert bench.order == ["small"]
    bench.bind("small-0", "part").settle()
    assert bench.order == ["small", "large"]


def test_gangs_of_one_pass_wait_for_each_other() -> None:
    nodes = [node("part", 900), node("whole", 1000), node("side", 300)]
    bench = Bench(WAITING, nodes=nodes).start(workload("aside", 300)).bind("aside-0", "side")
    bench.start(*(workload(name, milli) for name, milli in (("small", 100), ("large", 1000))))
    assert bench.order == ["aside", "small"]


def test_it_waits_no_longer_than_the_limit() -> None:
    bench = scarce()
    bench.advance(4.9)
    assert bench.order == ["small"]
    bench.advance(0.2)
    assert bench.order == ["small", "large"]


def test_it_waits_no_longer_however_many_go_ahead_of_it() -> None:
    bench = scarce()
    for number in range(2):
        bench.advance(2)
        bench.start(workload(f"urgent-{number}", 100, priority=1))
    assert bench.order == ["small", "urgent-0", "urgent-1"]
    bench.advance(1.1)
    assert bench.order[3:] == ["large"]


def test_without_a_limit_no_gang_waits() -> None:
    assert scarce(binding_wait=0).order == ["small", "large"]


def test_where_only_sums_count_no_gang_waits() -> None:
    assert scarce(fit=Fit.AGGREGATE).order == ["small", "large"]


def test_a_wait_of_a_moment_is_not_written() -> None:
    bench = scarce()
    writes = bench.writes.total()
    assert "uid-large" not in bench.status
    (row,) = [one for one in bench.queue() if one.name == "large"]
    assert (row.waits_for, row.why) == (
        "binding",
        "Pods that were dispatched a moment ago are bound first.",
    )
    assert bench.writes.total() == writes


def test_no_later_one_takes_the_room_of_one_that_waits() -> None:
    bench = scarce()
    bench.start(workload("tiny", 50))
    assert bench.order == ["small"], "it fits and could be bound, but it came later"
    bench.bind("small-0", "part").settle()
    assert bench.order[:2] == ["small", "large"]


def chosen(name: str, milli: int, pool: str) -> Workload:
    """One pod on the nodes of a pool."""
    made = workload(name, milli)
    where = Constraint((("pool", pool),))
    return replace(made, sets=tuple(replace(one, constraint=where) for one in made.sets))


def pools() -> Bench:
    """The same in a pool, and a node in a pool of its own."""
    labels = ("part", 900, "a"), ("whole", 1000, "a"), ("own", 500, "b")
    nodes = [node(name, milli, labels=(("pool", pool),)) for name, milli, pool in labels]
    return Bench(WAITING, nodes=nodes).start(chosen("small", 100, "a"))


def test_however_many_wait_those_with_other_nodes_start() -> None:
    bench = pools().submit(*(chosen(f"large-{n}", 901 + n, "a") for n in range(80)))
    bench.start(chosen("own", 500, "b"))
    assert bench.order == ["small", "own"]


def test_the_walk_gets_to_the_last_although_those_that_wait_are_judged_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admit, "WORK_PER_PASS", 40)
    bench = pools().submit(*(chosen(f"large-{n}", 901 + n, "a") for n in range(40)))
    bench.submit(chosen("late", 50, "a"), chosen("own", 500, "b"))
    for _ in range(100):
        bench.decide()
        while bench.pending:
            bench.execute(bench.pending.pop(0))
    assert bench.order == ["small", "own"], "a later one takes nothing from those that wait"
    bench.bind("small-0", "part")
    for _ in range(10):
        bench.decide()
        while bench.pending:
            bench.execute(bench.pending.pop(0))
    assert bench.order[:3] == ["small", "own", "large-0"]


def test_a_higher_priority_is_not_held_by_a_lower_one_that_waits() -> None:
    bench = scarce()
    bench.start(workload("small-too", 100, priority=5))
    assert bench.order == ["small", "small-too"]


def test_the_clock_begins_anew_in_another_wait() -> None:
    bench = scarce()
    bench.bind("small-0", "part").settle()
    bench.edit("uid-large", suspended=True).advance(60)
    bench.start(workload("next", 100))
    bench.edit("uid-large", suspended=False).advance(4.9)
    assert bench.order == ["small", "large", "next"]
    bench.advance(0.2)
    assert bench.order == ["small", "large", "next", "large"]


def test_a_restart_does_not_end_the_wait() -> None:
    """The record of the attempt says when it was dispatched."""
    bench = scarce()
    bench.crash().settle()
    assert bench.order == ["small"]
    bench.advance(5.1)
    assert bench.order == ["small", "large"]


def test_what_was_dispatched_long_before_a_restart_is_not_in_flight() -> None:
    bench = Bench(WAITING, nodes=[node("part", 900), node("whole", 1000)])
    bench.start(workload("small", 100)).advance(6)
    bench.crash().start(workload("large", 1000))
    assert bench.order == ["small", "large"]


def dispatched_in_turn(limit: int) -> list[str]:
    """What is kept of six AppWrappers that are dispatched three seconds after each other."""
    bench = Bench(replace(WAITING, binding_wait=limit * SECOND), nodes=[node()])
    for number in range(6):
        bench.start(workload(f"a{number}", 100)).advance(3)
    return list(bench.dispatcher.cluster.walk.in_flight)


def test_dispatches_that_are_older_than_the_limit_are_forgotten() -> None:
    assert dispatched_in_turn(5) == ["uid-a4", "uid-a5"]


def test_without_a_limit_no_dispatch_is_kept() -> None:
    assert dispatched_in_turn(0) == []


@pytest.mark.parametrize("node_of_small", ["part", "whole"])
def test_what_is_refused_after_a_wait_is_reported(node_of_small: str) -> None:
    """All of its class: only the first of them has a node, if any."""
    bench = scarce().start(*(workload(f"large-{number}", 1000) for number in range(4)))
    bench.bind("small-0", node_of_small).settle()
    bench.advance(60)
    waiting = [row.name for row in bench.queue()]
    assert len(waiting) == (4 if node_of_small == "part" else 5)
    assert all(bench.condition(name, ConditionType.BACKOFF) is not None for name in waiting)


def test_another_wait_begins_after_a_refusal() -> None:
    bench = scarce()
    bench.feed(PodSeen(pod("stray", "whole", "500m")))
    bench.bind("small-0", "part").settle()
    bench.advance(60)
    assert bench.order == ["small"], "it was refused"
    bench.submit(workload("next", 100, priority=1))
    bench.settle()
    bench.feed(PodGone("stray"))
    bench.settle()
    bench.advance(4)
    assert bench.order == ["small", "next"]
