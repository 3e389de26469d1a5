"""A borrower waits for an AppWrapper that asks within its share, and not for ever."""

from __future__ import annotations

import pytest

from mcad.core.events import NodeSeen
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.preemption.test_search import of
from tests.core.quotas import teams

LENDING = replace(PATIENT, protect_after=0)


def lent(settings: Settings, **changes: object) -> Bench:
    """Red has both nodes, of which one is its share; blue waits for the other one, and then a small
    one of red, which would fit at once."""
    bench = Bench(settings, nodes=[node("n1"), node("n2")])
    bench.share(*teams(2000, red=1000, blue=1000))
    for name in "ab":
        bench.submit(of("red", workload(name, 600, **changes))).settle()
    bench.submit(of("blue", workload("w", 900))).settle()
    bench.submit(of("red", workload("small", 300)))
    bench.advance(30)
    return bench


def freed(settings: Settings) -> Bench:
    """Red has more than its share, and the next of red came before the first of blue."""
    bench = Bench(settings, nodes=[node()])
    bench.share(*teams(1000, red=400, blue=600))
    bench.submit(of("red", workload("a", 500)), of("red", workload("b", 500))).settle()
    bench.submit(of("red", workload("next", 400))).settle()
    bench.submit(of("blue", workload("w", 400)))
    bench.delete("uid-a").settle()
    return bench


def test_a_team_that_has_its_share_goes_after_one_that_has_not() -> None:
    assert freed(LENDING).order == ["a", "b", "w"]


@pytest.mark.parametrize("changes", [{"reclaim": False}, {"policy": Policy.STRICT_FIFO}])
def test_the_order_is_that_of_arrival_if_it_is_strict_or_nothing_is_reclaimed(
    changes: dict[str, object],
) -> None:
    assert freed(replace(LENDING, **changes)).order == ["a", "b", "next"]


def test_what_would_be_reclaimed_in_minutes_is_not_borrowed() -> None:
    bench = lent(LENDING)
    assert bench.order == ["a", "b"]
    told = bench.condition("small", "Backoff")
    assert told is not None
    assert "It would borrow room that another AppWrapper waits for within its share." in told[2]
    bench.advance(400)
    assert bench.order == ["a", "b", "w", "small"]  # red has no more than its share then
    assert bench.entry("small").eviction is None


def test_one_that_had_no_room_before_waits_like_any_other() -> None:
    bench = lent(LENDING)
    bench.submit(of("red", workload("next", 500))).settle()
    bench.feed(NodeSeen(node("n3", 600)))
    bench.advance(60)
    assert bench.order == ["a", "b"]
    refusal = bench.dispatcher.cluster.waiting.queue.refusal_of(bench.entry("next"))
    assert refusal is not None
    assert refusal.reason is WaitingReason.LENDING


def test_an_owner_that_gets_nothing_back_keeps_borrowers_waiting_for_minutes_only() -> None:
    bench = lent(LENDING, never_preempted=True)
    assert bench.order == ["a", "b"]
    bench.advance((LENDING.min_run_time + LENDING.backoff) / SECOND)
    assert bench.order == ["a", "b", "small"]
    assert lent(replace(LENDING, reclaim=False)).order == bench.order, "at once"


QUICK = replace(LENDING, min_run_time=30 * SECOND, backoff=6 * SECOND)
LONGEST = 36


def backlogged(settings: Settings, borrowers: int = 3) -> Bench:
    """Red's gangs of two nodes end each other's wait every 25 s, and of three nodes one is idle."""
    bench = Bench(settings, nodes=[node(f"n{number}") for number in range(3)])
    bench.share(*teams(6000, red=5000, blue=0))
    bench.submit(of("red", workload("r00", 900, 900))).settle()
    bench.submit(
        *(of("red", workload(f"r{number:02}", 900, 900)) for number in range(1, 40))
    ).settle()
    bench.submit(*(of("blue", workload(f"b{number}", 900)) for number in range(borrowers)))
    bench.settle()
    return bench


def gangs_of_red(bench: Bench, count: int) -> None:
    for _ in range(count):
        bench.advance(25)
        running = [name for name in bench.order if f"uid-{name}" in bench.works and name[0] == "r"]
        bench.delete(f"uid-{running[0]}").settle()


def borrowers(bench: Bench) -> list[str]:
    return [name for name in bench.order if name[0] == "b"]


def test_a_backlog_of_the_owner_keeps_no_borrower_waiting_anew_with_each_head() -> None:
    bench = backlogged(QUICK)
    bench.advance(LONGEST - 12)
    assert not borrowers(bench), "the owner goes first for as long as it could be served"
    gangs_of_red(bench, 1)
    assert borrowers(bench) == ["b0"]
    for ended in ("b0", "b1"):
        bench.delete(f"uid-{ended}")
        bench.advance(1)
    assert borrowers(bench) == ["b0", "b1", "b2"], "they have waited as long as the first one"


def test_a_borrower_that_comes_later_waits_for_as_long_as_the_first() -> None:
    bench = backlogged(QUICK)
    gangs_of_red(bench, 2)
    bench.submit(of("blue", workload("blate", 900)))
    for ended in ("b0", "b1", "b2"):
        bench.delete(f"uid-{ended}")
        bench.advance(1)
    assert borrowers(bench) == ["b0", "b1", "b2"]
    gangs_of_red(bench, 1)
    assert borrowers(bench) == ["b0", "b1", "b2"]
    gangs_of_red(bench, 1)
    assert borrowers(bench) == ["b0", "b1", "b2", "blate"]
