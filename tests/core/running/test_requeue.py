"""What ends an attempt of MCAD's dialect while it runs: too few pods, or too long a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.running.requeue import next_wait
from mcad.core.state.model import PodPhase, Workload
from mcad.core.state.run_policy import Growth, Requeuing
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload
from tests.core.running.test_health import RESTARTS, Restart

NEVER_PLACED = Settings(placement_timeout=0, backoff=20 * SECOND)


def wrapper(name: str, *milli: int, **changes: object) -> Workload:
    """Half of its pods have to run."""
    base = workload(name, *milli, min_available=(len(milli) + 1) // 2)
    return replace(base, requeuing=Requeuing(wait=120 * SECOND), **changes)


def dispatched(*works: Workload) -> Bench:
    return Bench(NEVER_PLACED, nodes=[node()]).start(*works)


@RESTARTS
def test_with_too_few_pods_it_queues_again(restart: Restart) -> None:
    bench = dispatched(wrapper("a", 100, 100, 100))
    bench.bind("a-0")
    bench.advance(60)
    restart(bench)
    bench.advance(57)
    assert bench.state("a") == "Running"
    bench.advance(5)
    assert bench.state("a") == "Pending"
    assert bench.condition("a", "PreemptCandidate") == (
        True,
        "MinPodsNotRunning",
        "Insufficient number of Running and Completed pods, minimum=2, running=1, completed=0.",
    )
    assert bench.condition("a", "Backoff")[:2] == (True, "PreemptionTriggered")
    assert bench.names() == []
    view = bench.status["uid-a"]
    assert (view.requeueings, view.requeueing_wait) == (1, 120 * SECOND)
    bench.advance(15)
    assert bench.state("a") == "Pending"
    bench.advance(10)
    assert bench.state("a") == "Running"


@RESTARTS
def test_with_enough_pods_it_stays_and_its_wait_begins_when_they_are_lost(
    restart: Restart,
) -> None:
    bench = dispatched(wrapper("a", 100, 100, 100))
    bench.bind("a-0")
    bench.bind("a-1")
    bench.advance(10_000)
    assert bench.state("a") == "Running"
    assert bench.condition("a", "Running") == (True, "PodsRunning", "")
    bench.change("a-1", phase=PodPhase.FAILED)
    bench.advance(60)
    restart(bench)
    bench.advance(57)
    assert bench.state("a") == "Running"
    bench.advance(5)
    assert bench.state("a") == "Pending"


@RESTARTS
def test_it_queues_again_when_the_backoff_is_over(restart: Restart) -> None:
    bench = dispatched(wrapper("a", 100, 100, 100))
    bench.advance(121)
    assert (bench.state("a"), bench.entry("a").attempt) == ("Pending", 1)
    bench.advance(9)
    restart(bench)
    bench.advance(8)
    assert (bench.state("a"), bench.entry("a").attempt) == ("Pending", 1)
    bench.advance(5)
    assert (bench.state("a"), bench.entry("a").attempt) == ("Running", 2)


def test_succeeded_pods_count() -> None:
    bench = dispatched(wrapper("a", 100, 100, 100))
    bench.bind("a-0")
    bench.change("a-1", phase=PodPhase.SUCCEEDED)
    bench.advance(10_000)
    assert bench.state("a") == "Running"


def test_without_a_minimum_nothing_is_looked_at() -> None:
    bench = dispatched(replace(wrapper("a", 100), min_available=0))
    bench.advance(10_000)
    assert (bench.state("a"), bench.condition("a", "Running")) == ("Running", None)


def test_after_too_many_requeues_it_is_given_up() -> None:
    rule = Requeuing(wait=60 * SECOND, growth=Growth.NONE, times_max=2)
    bench = dispatched(replace(wrapper("a", 1000), requeuing=rule))
    bench.advance(1000)
    assert bench.state("a") == "Deleted"
    assert bench.status["uid-a"].requeueings == 2
    assert bench.names() == []
    writes = bench.writes.total()
    bench.crash()
    bench.advance(10_000)
    assert (bench.state("a"), bench.writes.total()) == ("Deleted", writes)


@pytest.mark.parametrize(
    ("growth", "bound", "waits"),
    [
        (Growth.EXPONENTIAL, 0, [100, 100, 200, 400, 800]),
        (Growth.EXPONENTIAL, 300, [100, 100, 200, 300, 300]),
        (Growth.LINEAR, 0, [100, 100, 200, 300, 400]),
        (Growth.NONE, 0, [100, 100, 100, 100, 100]),
    ],
)
def test_the_wait_grows_as_mcads_did(growth: Growth, bound: int, waits: list[int]) -> None:
    rule = Requeuing(wait=100, growth=growth, wait_max=bound)
    seen, wait = [rule.wait], 0
    for _ in waits[1:]:
        wait = next_wait(rule, wait)
        seen.append(wait)
    assert seen == waits


@RESTARTS
def test_it_fails_when_its_time_is_over(restart: Restart) -> None:
    bench = dispatched(workload("a", 100, run_limit=600 * SECOND))
    bench.bind("a-0")
    bench.advance(300)
    restart(bench)
    bench.advance(297)
    assert bench.state("a") == "Running"
    bench.advance(5)
    message = "Dispatch deadline exceeded. allowed to run for 600 seconds"
    assert bench.state("a") == "Failed"
    assert bench.condition("a", "Failed") == (True, "DispatchDeadlineExceeded", message)
    assert bench.condition("a", "PreemptCandidate") == (True, "DispatchDeadlineExceeded", message)
    assert bench.names() == []


def test_what_is_finished_in_time_is_completed() -> None:
    work = workload("a", 100, run_limit=600 * SECOND)
    flagged = tuple(replace(item, completion=("succeeded",)) for item in work.items)
    bench = dispatched(replace(work, items=flagged))
    bench.bind("a-0")
    bench.advance(590)
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.advance(1000)
    assert bench.state("a") == "Completed"


# -- what dispatchDuration.limit counts ----------------------------------------------------------


def limited(seconds: int = 100, **changes: object) -> Bench:
    return Bench(nodes=[node()]).start(workload("a", 100, run_limit=seconds * SECOND, **changes))


def test_time_in_which_it_was_suspended_does_not_count() -> None:
    bench = limited()
    bench.bind("a-0")
    bench.advance(50)
    bench.edit("uid-a", suspended=True)
    bench.advance(500)
    bench.edit("uid-a", suspended=False)
    bench.advance(10)
    assert bench.state("a") == "Running"
    bench.bind("a-0")
    bench.advance(80)
    assert bench.state("a") == "Running"
    bench.advance(20)
    assert bench.state("a") == "Failed"


def test_an_attempt_that_never_had_a_node_does_not_fail() -> None:
    bench = limited()
    bench.advance(120)
    assert [event.note for event in bench.events if event.reason == "TakenBack"] == [
        "Without a node for 100 s: a-0."
    ]
    assert (bench.state("a"), bench.entry("a").attempt) == ("Running", 2)
    bench.bind("a-0")
    bench.advance(80)
    assert bench.state("a") == "Running"
    bench.advance(40)
    assert bench.state("a") == "Failed"


@pytest.mark.parametrize("restarted", [False, True])
def test_time_of_attempts_with_too_few_running_pods_adds_up(restarted: bool) -> None:
    bench = limited(300, min_available=1, requeuing=Requeuing(wait=100 * SECOND))
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.PENDING)  # it does not run on its node
    bench.advance(180)
    assert (bench.state("a"), bench.entry("a").attempt) == ("Running", 2)
    bench.bind("a-0")
    bench.settle()
    if restarted:
        bench.crash()
    bench.advance(190)
    assert bench.state("a") == "Running"
    bench.advance(20)
    assert bench.state("a") == "Failed", "100 s of the first attempt and 200 of the second"


def test_neither_a_long_teardown_nor_a_suspension_changes_the_time_that_is_used_up() -> None:
    bench = limited(300, min_available=1, requeuing=Requeuing(wait=100 * SECOND))
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.PENDING)
    bench.stubborn.add("a-0")
    bench.advance(600)  # 100 s of room, and a pod that does not go
    assert bench.status["uid-a"].dispatch.reason == "MinPodsNotRunning"
    bench.stubborn.clear()
    bench.remove(next(iter(bench.things)))
    bench.advance(60)
    bench.bind("a-0")
    bench.advance(50)
    bench.edit("uid-a", suspended=True)
    bench.advance(100)
    bench.edit("uid-a", suspended=False)
    bench.advance(10)
    bench.bind("a-0")
    bench.advance(150)
    assert bench.state("a") == "Running"
    bench.advance(60)
    assert bench.state("a") == "Failed"


@RESTARTS
def test_time_before_all_pods_have_nodes_does_not_count_and_is_on_record(restart: Restart) -> None:
    """kube-scheduler may put other pods where there was room: then the workload has not run."""
    bench = limited(100)
    bench.advance(70)
    bench.bind("a-0")
    bench.settle()
    restart(bench)
    bench.advance(90)
    assert bench.state("a") == "Running"
    bench.advance(20)
    assert bench.state("a") == "Failed"


def test_a_restart_before_all_pods_have_nodes_changes_nothing() -> None:
    bench = limited(100)
    bench.advance(50)
    bench.crash()
    bench.advance(20)
    bench.bind("a-0")
    bench.advance(90)
    assert bench.state("a") == "Running"
    bench.advance(20)
    assert bench.state("a") == "Failed"


def test_it_is_written_only_if_it_took_long() -> None:
    bench = limited(100)
    bench.advance(3)
    bench.bind("a-0")
    bench.advance(3)
    assert bench.status["uid-a"].dispatch.limit_since == 0
    bench.advance(100)
    assert bench.state("a") == "Failed", "and these seconds count"


def test_it_counts_from_the_confirmation_where_starts_are_promised() -> None:
    bench = Bench(nodes=[node()], settings=Settings(policy=Policy.BACKFILL))
    bench.start(workload("a", 100, run_limit=100 * SECOND))
    bench.advance(70)
    bench.bind("a-0")
    bench.advance(40)
    assert bench.state("a") == "Failed"
