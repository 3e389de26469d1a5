"""What a restart must neither repeat nor overlook. Found on the real control plane."""

import pytest
from msgspec.structs import replace

from mcad.core.events import Answer, AppWrapperSeen
from mcad.core.lifecycle import Phase
from mcad.core.model import (
    Child,
    DispatchPhase,
    DispatchRecord,
    Persisted,
    PodPhase,
    Problem,
    ProblemKind,
)
from mcad.core.units import SECOND
from tests.core.bench import START, Bench, Thing, cpu, node, workload

WRONG = Problem(ProblemKind.INVALID, "spec.x", "is wrong; mend it.")


def test_a_restart_does_not_repeat_the_warning_about_a_faulty_manifest() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, problem=WRONG))
    bench.settle()
    told = bench.condition("a", "Backoff")
    bench.events.clear()
    bench.crash()
    bench.settle()

    assert bench.events == []
    assert bench.condition("a", "Backoff") == told


def test_another_fault_after_a_restart_is_told() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, problem=WRONG))
    bench.settle()
    bench.events.clear()
    bench.edit("uid-a", problem=Problem(ProblemKind.INVALID, "spec.y", "is worse."))
    bench.crash()
    bench.settle()

    assert [event.note for event in bench.events] == ["spec.y: is worse."]
    assert bench.condition("a", "Backoff") == (True, "InvalidAppWrapper", "spec.y: is worse.")


def test_what_was_suspended_while_nobody_looked_is_taken_back_after_the_restart() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.settle()
    assert bench.state("a") == "Running"
    bench.pending.clear()
    old = bench.works["uid-a"]
    bench.works["uid-a"] = workload("a", 1, suspended=True, generation=old.generation + 1)
    bench.crash()
    bench.settle()
    bench.advance(10)

    assert bench.state("a") == "Pending"
    assert bench.names() == []


def test_what_is_suspended_during_its_creation_is_taken_back() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, 1))
    bench.decide()
    for _ in range(2):  # intent, item 0
        bench.execute(bench.pending.pop(0))
    bench.edit("uid-a", suspended=True)
    bench.settle()
    bench.advance(10)

    assert bench.state("a") == "Pending"
    assert bench.names() == []


def test_an_older_one_whose_first_status_was_lost_stays_before_the_younger_ones() -> None:
    """Reports are written late, and a crash loses some: not to be on record is not to be new."""
    bench = Bench(nodes=[node(milli=0)])
    late = START + 5 * SECOND
    seen = Persisted("Pending", late + 200_000)
    listed = [
        workload("lost", 100),
        workload("seen", 100, created=late, persisted=seen),
        workload("new", 100, created=late),
    ]
    for work in listed:
        bench.feed(AppWrapperSeen(work, listed=True))

    assert bench.entry("lost").first_seen == START
    assert bench.entry("seen").first_seen == late + 200_000
    assert bench.entry("new").first_seen == late + 200_001


def test_a_first_seen_time_of_the_future_moves_nobody_else() -> None:
    """Another controller's clock may have been wrong."""
    bench = Bench(nodes=[node(milli=0)])
    strange = Persisted("Pending", START + 10**6 * SECOND)
    listed = [workload("strange", 100, persisted=strange), workload("a", 100), workload("b", 100)]
    for work in listed:
        bench.feed(AppWrapperSeen(work, listed=True))

    assert [bench.entry(name).first_seen for name in ("a", "b")] == [START, START + 1]


def test_what_ran_before_the_restart_is_taken_back_in_full() -> None:
    """All items are deleted, not only the first; or the teardown would wait for the others."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, 1, 1))
    bench.settle()
    bench.crash()
    bench.settle()
    bench.edit("uid-a", suspended=True)
    bench.settle()

    assert bench.names() == []
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.RELEASED


def test_what_another_leader_dispatched_is_taken_back_in_full_if_it_does_not_fit() -> None:
    bench = Bench(nodes=[node(milli=0)])
    work = workload("a", 1, 1)
    bench.submit(work)
    bench.settle()
    inventory = tuple(item.ref for item in work.items)
    record = DispatchRecord(1, 7, DispatchPhase.DISPATCHED, work.payload, inventory, START)
    for number, ref in enumerate(inventory):
        bench.things[ref] = Thing(Child(f"obj-{number}", ref, "uid-a", 1, number), cpu(1, 1))
    bench.status["uid-a"] = replace(bench.status["uid-a"], dispatch=record)
    bench.edit("uid-a")
    bench.settle()

    assert bench.names() == []
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.RELEASED


def test_those_that_the_watch_tells_late_keep_their_order() -> None:
    """A second or more after its creation, under load: the offset within the second is used up."""
    bench = Bench(nodes=[node(milli=0)])
    bench.now = START + 2 * SECOND
    names = [f"late-{number}" for number in range(9, -1, -1)]
    bench.submit(*(workload(name, 100) for name in names), workload("next", 1, created=bench.now))
    seen = [bench.entry(name).first_seen for name in (*names, "next")]

    assert seen == sorted(set(seen))
    assert all(one < START + SECOND for one in seen[:-1])


@pytest.mark.parametrize("state", ["Running", "Completed", "Pending"])
def test_an_edit_that_nobody_saw_is_acknowledged_after_a_restart(state: str) -> None:
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 5000 if state == "Pending" else 100)
    flagged = replace(work.items[0], completion=("succeeded",))
    bench.submit(replace(work, items=(flagged,)))
    bench.settle()
    if state == "Completed":
        bench.bind("a-0")
        bench.change("a-0", phase=PodPhase.SUCCEEDED)
        bench.settle()
    assert bench.state("a") == state
    bench.works["uid-a"] = replace(bench.works["uid-a"], generation=7)
    bench.crash()
    bench.settle()
    assert bench.status["uid-a"].observed_generation == 7
    writes = bench.writes.total()
    bench.crash()
    bench.settle()
    assert bench.writes.total() == writes


def test_what_another_controller_has_finished_is_not_written() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, persisted=Persisted("Completed", START)))
    bench.settle()
    assert bench.writes.total() == 0


def test_who_is_deleted_before_it_is_taken_up_leaves_no_trace() -> None:
    """Not even for one of its uid: a list that was wrong may tell of the same one again."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.refuse("CreateItem", *[Answer(429, "TooManyRequests", "later")] * 9)
    bench.advance(1)
    assert bench.entry("a").phase is Phase.CREATING
    bench.crash()
    bench.delete("uid-a")
    bench.submit(workload("a", 100, suspended=True))
    bench.settle()
    assert bench.entry("a").phase is Phase.WAITING
    assert not bench.dispatcher.world.capacity.holds("uid-a")
