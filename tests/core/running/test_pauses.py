"""An AppWrapper that gives back room that none of its pods has used gets it again after a pause.

Else one could keep others out with pods that never come: hold the room for as long as it is
reserved, give it back in any way there is, and ask for it again.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.state.answer import Answer
from mcad.core.state.model import PodPhase
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests import budget
from tests.core.bench import Bench, node, workload

SHORT = 290  # seconds: just less than what ends the reservation of pods that are not created
LONGEST = 300  # seconds: pauses grow up to this


def on_a_node(name: str = "a", *milli: int) -> Bench:
    return Bench(Settings(), nodes=[node(milli=1000)]).start(workload(name, *(milli or (800,))))


def toggle(bench: Bench) -> None:
    """Suspended, taken back and resumed, all in no time."""
    for suspended in (True, False):
        bench.edit("uid-a", suspended=suspended)
        bench.settle()


def pause(bench: Bench) -> int:
    """How many seconds pass until it is dispatched again."""
    attempt, seconds = bench.entry("a").attempt, 0
    while bench.entry("a").attempt == attempt:
        bench.advance(1)
        seconds += 1
    return seconds


def test_a_pause_follows_a_suspension_without_pods_and_doubles() -> None:
    bench = on_a_node()
    toggle(bench)
    assert bench.entry("a").attempt == 2, "once is no offence"
    pauses = []
    for _ in range(7):
        bench.advance(SHORT)
        toggle(bench)
        assert bench.condition("a", "Backoff") == (
            True,
            "PlacementBackoff",
            "It was taken back before all of its pods had nodes; it queues again after a pause.",
        )
        pauses.append(pause(bench))
    assert pauses == [10, 20, 40, 80, 160, 300, 300]


def test_others_go_during_the_pause() -> None:
    bench = on_a_node()
    toggle(bench)
    bench.start(workload("b", 800))
    toggle(bench)
    assert bench.order == ["a", "a", "b"]


def test_an_appwrapper_with_pods_is_resumed_at_once() -> None:
    bench = on_a_node()
    for attempt in range(2, 6):
        bench.bind("a-0")
        bench.settle()
        toggle(bench)
        assert bench.entry("a").attempt == attempt
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)  # it came, whatever has become of it
    bench.settle()
    toggle(bench)
    assert bench.entry("a").attempt == 6


def test_pods_that_came_in_the_end_are_all_forgiven() -> None:
    bench = on_a_node()
    toggle(bench)
    for expected in (10, 20):
        toggle(bench)
        assert pause(bench) == expected
    bench.bind("a-0")
    bench.settle()
    toggle(bench)
    toggle(bench)
    assert bench.entry("a").attempt == 6
    toggle(bench)
    assert pause(bench) == 10


def test_one_pod_of_many_is_not_enough() -> None:
    bench = on_a_node("a", 100, 700)
    for expected in (0, 10, 20):
        bench.bind("a-0")
        bench.settle()
        toggle(bench)
        assert pause(bench) == expected if expected else bench.entry("a").attempt == 2


def test_what_was_given_up_before_counts_as_well() -> None:
    """C4 has ended the reservation; with the next attempt there would be another one."""
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 400)
    bench.start(replace(work, sets=(replace(work.sets[0], replicas=2, counts_pods=True),)))
    bench.advance(LONGEST + 1)
    toggle(bench)
    toggle(bench)
    assert pause(bench) == 10


@pytest.mark.parametrize("changes", [{"priority": 3}, {"payload": "another"}, {"suspended": True}])
def test_no_edit_ends_a_pause(changes: dict[str, object]) -> None:
    bench = on_a_node()
    bench.advance(LONGEST + 1)
    for _ in range(3):
        bench.edit("uid-a", **changes)
        bench.edit("uid-a", suspended=False)
        bench.advance(2)
    assert (bench.entry("a").attempt, pause(bench)) == (1, 3)


BUSY = Answer(503, "ServiceUnavailable", "come back later")
EDITS = ({"priority": 3}, {"priority": 4}, {"payload": "x"}, {"payload": "y"})
ACTS = st.one_of(
    st.just(("toggle", {})),
    st.tuples(st.just("edit"), st.sampled_from(EDITS)),
    st.tuples(st.just("busy"), st.sampled_from((1, 8, 40))),
    st.tuples(st.just("wait"), st.sampled_from((0.1, 3, 11, 59, SHORT, LONGEST + 1))),
)


@given(acts=st.lists(ACTS, min_size=5, max_size=40))
@settings(max_examples=budget.examples(60), deadline=None)
def test_nothing_that_a_user_does_gets_round_the_pauses(acts: list[tuple[str, Any]]) -> None:
    """So many attempts without pods take the pauses between them at least."""
    bench = on_a_node("a", 400, 400)
    begun = bench.now
    for act, what in acts:
        match act:
            case "toggle":
                toggle(bench)
            case "edit":
                bench.edit("uid-a", **what)
            case "busy":
                bench.refusals.clear()
                bench.refuse("CreateItem", *[BUSY] * what)
            case "wait":
                bench.advance(what)
        bench.settle()
    pauses = [min(LONGEST, 10 * 2**n) for n in range(bench.entry("a").attempt - 2)]
    assert bench.now - begun >= sum(pauses) * SECOND


@pytest.mark.parametrize("crash", [False, True], ids=["not restarted", "restarted"])
@pytest.mark.parametrize("cause", ["no node", "refused"])
def test_a_restart_does_not_end_a_pause(*, cause: str, crash: bool) -> None:
    bench = Bench(Settings(), nodes=[node(milli=1000)])
    if cause == "refused":
        bench.refuse("CreateItem", *[Answer(403, "Forbidden", "exceeded quota")] * 4)
    bench.start(workload("a", 800))
    while bench.state("a") == "Running" or not bench.condition("a", "Backoff"):
        bench.advance(1)
    assert bench.entry("a").attempt == 1
    bench.advance(4)
    if crash:
        bench.crash()
    bench.advance(3)
    writes = bench.writes.total()
    assert (bench.entry("a").attempt, bench.state("a")) == (1, "Pending")
    bench.advance(1)
    assert bench.writes.total() == writes, "and what is on record is not written again"
    bench.advance(3)
    assert (bench.entry("a").attempt, bench.state("a")) == (2, "Running")
