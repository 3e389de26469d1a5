"""What a restart must neither repeat nor overlook. Found on the real control plane."""

import pytest
from msgspec.structs import replace

from mcad.core.dispatcher import Dispatcher
from mcad.core.events import AppWrapperSeen, NodeSeen
from mcad.core.state.answer import Answer
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Cascade,
    Child,
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Persisted,
    PodPhase,
    Problem,
)
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import START, Bench, Thing, cpu, node, workload

WRONG = Problem(WaitingReason.INVALID, "spec.x", "is wrong; mend it.")


def test_a_restart_does_not_repeat_the_warning_about_a_faulty_manifest() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, problem=WRONG))
    told = bench.condition("a", "Backoff")
    bench.events.clear()
    bench.restart()
    assert bench.events == []
    assert bench.condition("a", "Backoff") == told


def test_another_fault_after_a_restart_is_told() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, problem=WRONG))
    bench.events.clear()
    bench.edit("uid-a", problem=Problem(WaitingReason.INVALID, "spec.y", "is worse."))
    bench.restart()
    assert [event.note for event in bench.events] == ["spec.y: is worse."]
    assert bench.condition("a", "Backoff") == (True, "InvalidAppWrapper", "spec.y: is worse.")


def test_a_suspension_without_a_dispatcher_takes_effect_after_the_restart() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    assert bench.state("a") == "Running"
    bench.pending.clear()
    old = bench.works["uid-a"]
    bench.works["uid-a"] = workload("a", 1, suspended=True, generation=old.generation + 1)
    bench.crash()
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


def test_a_first_seen_time_of_the_future_moves_no_other() -> None:
    """Another controller's clock may have been wrong."""
    bench = Bench(nodes=[node(milli=0)])
    strange = Persisted("Pending", START + 10**6 * SECOND)
    listed = [workload("strange", 100, persisted=strange), workload("a", 100), workload("b", 100)]
    for work in listed:
        bench.feed(AppWrapperSeen(work, listed=True))
    assert [bench.entry(name).first_seen for name in ("a", "b")] == [START, START + 1]


def test_what_ran_before_the_restart_is_taken_back_in_full() -> None:
    """All items are deleted, not only the first; or the teardown would wait for the others."""
    bench = Bench(nodes=[node()]).start(workload("a", 1, 1, 1))
    bench.restart()
    bench.edit("uid-a", suspended=True)
    bench.settle()
    assert bench.names() == []
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.RELEASED


def test_what_another_leader_dispatched_is_taken_back_in_full_if_it_does_not_fit() -> None:
    bench = Bench(nodes=[node(milli=0)])
    work = workload("a", 1, 1)
    bench.start(work)
    inventory = tuple(item.ref for item in work.items)
    record = DispatchRecord(1, 7, DispatchPhase.DISPATCHED, work.payload, inventory, START)
    for number, ref in enumerate(inventory):
        bench.things[ref] = Thing(Child(f"obj-{number}", ref, "uid-a", 1, number), cpu(1, 1))
    bench.status["uid-a"] = replace(bench.status["uid-a"], dispatch=record)
    bench.edit("uid-a")
    bench.settle()
    assert bench.names() == []
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.RELEASED


def test_what_another_leader_dispatched_and_is_being_deleted_keeps_its_orphans() -> None:
    """It does not fit, but its user has decided already what becomes of its objects."""
    bench = Bench(nodes=[node(milli=0)])
    work = workload("a", 1, deleting=True, cascade=Cascade.ORPHAN)
    inventory = tuple(item.ref for item in work.items)
    record = DispatchRecord(1, 7, DispatchPhase.DISPATCHED, work.payload, inventory, START)
    bench.decide()
    child = Child("obj", inventory[0], "uid-a", 1, 0)
    bench.things[inventory[0]] = Thing(child, cpu(1, 1))
    bench.observe(inventory[0])
    bench.start(replace(work, persisted=Persisted("Running", START, dispatch=record)))
    assert bench.names() == ["a-0"]
    assert bench.entry("a").phase is Phase.RUNNING


def test_what_was_dispatched_first_finds_its_place_first_after_a_restart() -> None:
    """The watch tells of ``a`` first, and ``b`` is older."""
    bench = Bench(nodes=[node("n1"), node("n2")]).start(workload("b", 900))
    bench.start(workload("a", 900))
    bench.nodes.pop()
    bench.crash()
    bench.decide()

    capacity = bench.dispatcher.cluster.capacity
    assert (capacity.gangs.unplaced("uid-a"), capacity.gangs.unplaced("uid-b")) == (1, 0)


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
def test_an_unseen_edit_is_acknowledged_after_a_restart(state: str) -> None:
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 5000 if state == "Pending" else 100)
    flagged = replace(work.items[0], completion=("succeeded",))
    bench.start(replace(work, items=(flagged,)))
    if state == "Completed":
        bench.bind("a-0")
        bench.change("a-0", phase=PodPhase.SUCCEEDED)
        bench.settle()
    assert bench.state("a") == state
    bench.works["uid-a"] = replace(bench.works["uid-a"], generation=7)
    bench.restart()
    assert bench.status["uid-a"].observed_generation == 7
    writes = bench.writes.total()
    bench.restart()
    assert bench.writes.total() == writes


def test_what_another_controller_has_finished_is_not_written() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, persisted=Persisted("Completed", START)))
    assert bench.writes.total() == 0


def test_an_appwrapper_deleted_before_it_is_taken_up_leaves_no_trace() -> None:
    """Not even for one of its uid: a list that was wrong may tell of the same one again."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.refuse("CreateItem", *[Answer(429, "TooManyRequests", "later")] * 9)
    bench.advance(1)
    assert bench.entry("a").phase is Phase.CREATING
    bench.crash()
    bench.delete("uid-a")
    bench.start(workload("a", 100, suspended=True))
    assert bench.entry("a").phase is Phase.WAITING
    assert not bench.dispatcher.cluster.capacity.gangs.exists("uid-a")


# -- records of other versions -------------------------------------------------------------------


def stuck() -> Bench:
    """A teardown under way, of a pod that does not go before it is forced to, after ten minutes."""
    tolerance = FaultTolerance(forceful_deletion_grace=600 * SECOND)
    bench = Bench(nodes=[node()]).start(workload("a", 1, tolerance=tolerance))
    bench.stubborn.add("a-0")
    bench.edit("uid-a", suspended=True)
    bench.settle()
    return bench


def without_times(bench: Bench) -> None:
    """What is persisted says no time, as the first version did of some."""
    for uid, view in bench.status.items():
        record = view.dispatch
        if record is not None:
            record = replace(record, since=0, confirmed=0, entered=0)
        conditions = tuple(replace(one, changed=0, updated=0) for one in view.conditions)
        bench.status[uid] = replace(view, dispatch=record, conditions=conditions)


def test_a_teardown_without_a_time_is_not_forced_at_once() -> None:
    bench = stuck()
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.UNDEPLOYING
    without_times(bench)
    bench.crash()
    bench.advance(500)
    assert bench.writes["force"] == 0
    bench.advance(200)
    assert bench.writes["force"] == 1


def test_what_runs_without_a_time_goes_on() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, run_limit=3600 * SECOND))
    bench.start(workload("b", 1, dialect=Dialect.V1BETA2))
    bench.bind("a-0")
    bench.bind("b-0")
    without_times(bench)
    bench.crash()
    bench.advance(3000)
    assert [bench.state("a"), bench.state("b")] == ["Running", "Running"]
    assert bench.entry("a").attempt == 1


def test_what_is_completed_without_a_time_is_kept_for_its_time() -> None:
    tolerance = FaultTolerance(success_ttl=600 * SECOND)
    bench = Bench(nodes=[node()])
    bench.start(workload("a", 1, dialect=Dialect.V1BETA2, tolerance=tolerance))
    bench.change("a-0", node="n1", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert bench.state("a") == "Completed"
    without_times(bench)
    bench.crash()
    bench.advance(500)
    assert bench.names() == ["a-0"]
    bench.advance(200)
    assert bench.names() == []


def test_a_record_that_is_not_understood_is_left_alone_until_it_is_gone() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 100))
    bench.bind("a-0")
    before = dict(bench.writes)
    later = Persisted("Running", START, unreadable="phase 'migrating'")
    bench.pending, bench.wishes = [], []
    bench.dispatcher = Dispatcher(bench.settings)
    for event in (NodeSeen(node()), AppWrapperSeen(replace(bench.works["uid-a"], persisted=later))):
        bench.feed(event)
    for ref in list(bench.things):
        bench.observe(ref)
    bench.events.clear()
    bench.advance(700)
    assert dict(bench.writes) == before, "nothing is written, created or deleted"
    assert bench.names() == ["a-0"]
    bench.feed(AppWrapperSeen(bench.observed("uid-a")))  # the version that knows it has gone on
    bench.advance(10)
    assert bench.entry("a").phase is Phase.RUNNING
    bench.dispatcher.cluster.admission.check()


def test_it_says_what_is_not_understood_and_what_to_do() -> None:
    bench = Bench(nodes=[node()])
    bench.start(workload("a", 1, persisted=Persisted("Running", START, unreadable="format 2")))
    (note,) = [event.note for event in bench.events if event.reason == "LeftAlone"]
    assert "does not understand (format 2)" in note
    assert "kubectl patch --subresource=status" in note


def with_times_to_come(bench: Bench, by: int) -> None:
    """The wall clock is set back by ``by`` microseconds while no dispatcher runs."""
    for uid, view in bench.status.items():
        record = view.dispatch
        if record is not None:
            times = {
                name: at and at + by
                for name in ("since", "confirmed", "entered")
                if (at := getattr(record, name)) is not None
            }
            record = replace(record, **times)
        conditions = tuple(replace(one, changed=one.changed + by) for one in view.conditions)
        bench.status[uid] = replace(view, dispatch=record, conditions=conditions)


def test_a_wall_clock_that_is_set_back_prolongs_no_teardown() -> None:
    bench = stuck()
    with_times_to_come(bench, 3600 * SECOND)
    bench.crash()
    bench.advance(500)
    assert bench.writes["force"] == 0
    bench.advance(200)
    assert bench.writes["force"] == 1
