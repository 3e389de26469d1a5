"""Moments between two steps, each of which a plausible fault once passed every other test."""

from __future__ import annotations

from mcad.core.commands import CreateItem, DeleteItem, DeleteStray, WriteStatus
from mcad.core.eligibility import precedence
from mcad.core.events import (
    AppWrapperSeen,
    ChildSeen,
    Holder,
    ItemCreated,
    ItemInspected,
    KindWatched,
    NodeSeen,
    StatusWritten,
)
from mcad.core.observed import objects
from mcad.core.state.answer import Answer
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Child,
    DispatchPhase,
    DispatchRecord,
    Next,
    Persisted,
    Wanted,
    Workload,
)
from mcad.core.state.records import replace
from mcad.core.state.reservation import EVICTIONS, Reservation, ReservationReason
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.units import SECOND
from tests.core.attempts.test_protocol import INVALID, QUOTA, UNKNOWN
from tests.core.bench import PATIENT, START, Bench, Thing, node, workload


def begun(*milli: int, **changes: object) -> Bench:
    """The intent is written, and the first create is under way."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", *milli, **changes))
    bench.decide()
    bench.execute(bench.pending.pop(0))
    return bench


def creates(bench: Bench) -> list[int]:
    return [one.item for one in bench.pending if isinstance(one, CreateItem)]


# -- creation ------------------------------------------------------------------------------------


def test_nothing_more_is_created_once_a_deletion_timestamp_is_seen() -> None:
    bench = begun(1, 1)
    first = bench.pending.pop(0)
    bench.edit("uid-a", deleting=True)
    bench.execute(first)
    bench.advance(30)
    assert bench.created["uid-a", 1, 1] == 0
    assert creates(bench) == []


def test_refusals_of_admission_count_anew_after_a_dispatch() -> None:
    bench = Bench(nodes=[node()])
    bench.refuse("CreateItem", *[QUOTA] * 4 * 5)  # a 403 is borne three times, then it counts
    bench.submit(workload("a", 1))
    bench.settle()
    bench.advance(1500)
    assert bench.state("a") == "Running"
    bench.bind("a-0")
    bench.edit("uid-a", suspended=True)
    bench.advance(10)
    bench.refuse("CreateItem", *[QUOTA] * 4 * 2)
    bench.edit("uid-a", suspended=False)
    bench.advance(1500)
    assert bench.state("a") == "Running"


def test_each_item_has_the_whole_admission_grace() -> None:
    bench = begun(1, 1, tolerance=FaultTolerance(admission_grace=60 * SECOND))
    bench.now += 50 * SECOND
    bench.execute(bench.pending.pop(0))  # item 0 takes that long
    bench.refuse("CreateItem", *[UNKNOWN] * 9)
    bench.advance(40)
    bench.refusals.clear()
    bench.advance(16)
    assert bench.created["uid-a", 1, 1] == 1
    assert bench.entry("a").attempt == 1


def held(attempt: int, *, terminating: bool = False) -> Bench:
    """Its first item's name has an object of its own that no watch has told of."""
    bench = begun(1)
    ref = bench.works["uid-a"].items[0].ref
    child = Child("known", ref, "uid-a", attempt, 0, terminating=terminating)
    bench.things[ref] = Thing(child, ())
    bench.execute(bench.pending.pop(0))
    while bench.pending:
        bench.execute(bench.pending.pop(0))
    return bench


def test_an_object_of_an_older_attempt_is_waited_for_and_not_taken() -> None:
    bench = held(0)
    assert bench.entry("a").phase is Phase.CREATING
    assert bench.entry("a").creation.created == {}


def test_a_terminating_object_of_the_present_attempt_is_waited_for_and_not_taken() -> None:
    """The bench's live GET does not tell of that, so the answer is given by hand."""
    bench = begun(1)
    create = bench.pending.pop(0)
    bench.refuse("CreateItem", Answer(409, "AlreadyExists", "already exists"))
    bench.execute(create)
    inspect = bench.pending.pop(0)
    holder = Holder("x", "uid-a", True, True, "a", 1, True)
    bench.feed(ItemInspected("uid-a", 1, inspect.item, holder))
    assert bench.entry("a").phase is Phase.CREATING
    assert bench.entry("a").creation.created == {}


def test_retry_after_is_honoured() -> None:
    bench = begun(1)
    bench.refuse("CreateItem", Answer(429, "TooManyRequests", "busy", retry_after=40 * SECOND))
    bench.advance(35)
    assert bench.created["uid-a", 1, 0] == 0
    bench.advance(10)
    assert bench.created["uid-a", 1, 0] == 1


# -- teardown ------------------------------------------------------------------------------------


def test_room_that_is_not_bound_yet_stays_reserved_until_the_teardown_is_over() -> None:
    """A live object that wants fewer pods while it goes gives back nothing (P4)."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 900))
    bench.settle()
    bench.stubborn.add("a-0")
    bench.edit("uid-a", suspended=True)
    bench.submit(workload("b", 900))
    bench.settle()
    [(ref, thing)] = bench.things.items()
    bench.feed(ChildSeen(replace(thing.child, wants=(Wanted(0),))))
    bench.advance(10)
    assert bench.order == ["a"]
    bench.remove(ref)
    bench.advance(10)
    assert bench.order == ["a", "b"]


def test_force_is_used_in_every_teardown_that_needs_it() -> None:
    tolerance = FaultTolerance(forceful_deletion_grace=60 * SECOND)
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, tolerance=tolerance))
    told = []
    for _ in range(2):
        bench.edit("uid-a", suspended=False)
        bench.advance(30)
        bench.stubborn.add("a-0")
        bench.edit("uid-a", suspended=True)
        bench.advance(100)
        bench.stubborn.clear()
        told.append(sum("by force" in event.note for event in bench.events))
    assert told == [1, 2]


def test_what_was_created_late_is_swept_when_the_teardown_is_over() -> None:
    bench = Bench(nodes=[node()])
    bench.start(workload("a", 1, run_limit=10 * SECOND)).bind("a-0").settle()
    bench.now += 11 * SECOND
    bench.decide()
    while bench.entry("a").phase is not Phase.SETTLING:
        bench.execute(bench.pending.pop(0))
    ref = bench.works["uid-a"].items[0].ref
    bench.feed(ChildSeen(Child("late", ref, "uid-a", 1, 0)))
    bench.decide()
    bench.execute(bench.pending.pop(0))
    bench.decide()
    assert [one.object_uid for one in bench.pending if isinstance(one, DeleteStray)] == ["late"]


def test_an_item_whose_create_is_answered_during_the_teardown_is_deleted() -> None:
    bench = begun(1, 1)
    bench.pending.clear()
    bench.refuse("CreateItem", INVALID)
    bench.feed(ItemCreated("uid-a", 1, 0, "o-0"))
    bench.execute(bench.pending.pop(0))  # item 1 is refused
    while bench.entry("a").phase is not Phase.DELETING:
        bench.execute(bench.pending.pop(0))
    before = sum(isinstance(one, DeleteItem) for one in bench.pending)
    bench.feed(ItemCreated("uid-a", 1, 1, "o-1"))
    assert sum(isinstance(one, DeleteItem) for one in bench.pending) == before + 1


def test_an_object_of_an_older_attempt_tells_nothing_of_the_present_one() -> None:
    bench = begun(1)
    bench.settle()
    cluster, entry = bench.dispatcher.cluster, bench.entry("a")
    (child,) = cluster.objects.of(entry)
    objects.apply(cluster, entry, replace(child, uid="older", attempt=entry.attempt - 1))
    assert entry.creation.created == {0: child.uid}


def test_what_others_were_evicted_for_is_not_taken_by_a_higher_priority() -> None:
    bench = Bench(nodes=[node(milli=0)])
    bench.submit(workload("owner", 1), workload("urgent", 1, priority=5))
    bench.settle()
    owner, urgent = bench.entry("owner"), bench.entry("urgent")
    until = bench.now + SECOND
    for reason in ReservationReason:
        owner.reservation = Reservation(reason, bench.now, until)
        assert precedence.outranks(urgent, owner) == (reason not in EVICTIONS)
        assert not precedence.outranks(owner, owner)


# -- after a restart -----------------------------------------------------------------------------


def record(phase: DispatchPhase, **changes: object) -> DispatchRecord:
    ref = workload("a", 1).items[0].ref
    made = DispatchRecord(1, 1, phase, "sha-a", (ref,), START, START)
    return replace(made, **changes)


def restarted(found: DispatchRecord, state: str) -> Bench:
    bench = Bench(PATIENT, nodes=[node()])
    bench.submit(workload("a", 1, persisted=Persisted(state, START, dispatch=found)))
    return bench


def test_an_eviction_that_is_over_reserves_nothing() -> None:
    """The victim has ended for good since; and an eviction of long ago is over too."""
    recent = record(
        DispatchPhase.RELEASED,
        entered=START,
        next=Next.QUEUED,
        preemptor="uid-w",
        reason="Preempted",
    )
    assert list(restarted(recent, "Pending").dispatcher.cluster.reservations.preemptors) == [
        "uid-w"
    ]
    ended = replace(recent, next=Next.FAILED)
    assert not restarted(ended, "Failed").dispatcher.cluster.reservations.preemptors
    old = replace(recent, entered=START - 3600 * SECOND)
    assert not restarted(old, "Pending").dispatcher.cluster.reservations.preemptors


def test_a_kind_that_cannot_be_watched_is_not_absent() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.feed(KindWatched("", "pods", watched=False, message="no right"))
    found = record(DispatchPhase.DISPATCHED)
    work = workload("a", 700, persisted=Persisted("Running", START, dispatch=found))
    bench.submit(work)
    bench.advance(5)
    assert bench.dispatcher.cluster.capacity.gangs.outstanding("uid-a") == (1,)


def test_after_an_unconfirmed_teardown_a_create_may_still_be_committed() -> None:
    bench = restarted(
        record(DispatchPhase.UNDEPLOYING, confirmed=0, entered=START, reason="Suspended"), "Pending"
    )
    bench.advance(70)
    assert bench.entry("a").phase is Phase.VERIFYING
    bench.advance(10)
    assert bench.entry("a").attempt == 2


def stored(bench: Bench, name: str, **changes: object) -> Workload:
    """The AppWrapper with these parts of its status stored by another writer."""
    known = Persisted("Pending", bench.entry(name).first_seen)
    return replace(bench.works[f"uid-{name}"], persisted=replace(known, **changes))


def test_an_intent_of_another_leader_is_taken_up_while_it_waits() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("big", 900), workload("a", 900))
    bench.settle()
    found = record(DispatchPhase.CREATING, confirmed=0)
    bench.feed(AppWrapperSeen(stored(bench, "a", dispatch=found)))
    assert bench.entry("a").attempt == 1
    assert bench.entry("a").phase is not Phase.WAITING


def test_of_the_same_attempt_the_later_phase_is_taken_over() -> None:
    """The first list told of the past."""
    bench = restarted(record(DispatchPhase.DISPATCHED), "Running")
    assert bench.entry("a").phase is Phase.RUNNING
    ended = record(DispatchPhase.RELEASED, entered=bench.now, next=Next.FAILED)
    bench.feed(AppWrapperSeen(stored(bench, "a", state="Failed", dispatch=ended)))
    bench.settle()
    assert bench.entry("a").phase is Phase.FAILED
    assert not bench.dispatcher.cluster.capacity.gangs.exists("uid-a")


def test_an_earlier_phase_of_the_same_attempt_is_repaired() -> None:
    bench = restarted(record(DispatchPhase.DISPATCHED), "Running")
    before = record(DispatchPhase.CREATING, confirmed=0)
    bench.feed(AppWrapperSeen(stored(bench, "a", dispatch=before)))
    bench.decide()
    assert bench.entry("a").phase is Phase.RUNNING
    written = [one for one in bench.pending if isinstance(one, WriteStatus)]
    assert [one.status.dispatch.phase for one in written] == [DispatchPhase.DISPATCHED]


def test_what_is_stored_as_completed_was_so_before_the_first_look() -> None:
    bench = restarted(record(DispatchPhase.DISPATCHED), "Running")
    found = bench.entry("a").dispatch
    bench.feed(AppWrapperSeen(stored(bench, "a", state="Completed", dispatch=found)))
    assert bench.entry("a").phase is Phase.COMPLETED


def test_the_place_in_line_that_is_stored_counts() -> None:
    """The list was older than its first status."""
    bench = Bench(nodes=[node(milli=1)])
    bench.submit(workload("a", 2))
    bench.feed(AppWrapperSeen(stored(bench, "a", first_seen=START - SECOND)))
    assert bench.entry("a").first_seen == START - SECOND


def test_an_answer_to_an_earlier_write_says_nothing_of_the_one_after_a_take_over() -> None:
    bench = restarted(record(DispatchPhase.DISPATCHED), "Running")
    bench.edit("uid-a", suspended=True)
    bench.decide()
    [earlier] = [one for one in bench.pending if isinstance(one, WriteStatus)]
    assert bench.entry("a").phase is Phase.UNDEPLOYING
    ended = record(DispatchPhase.RELEASED, entered=bench.now, next=Next.QUEUED)
    saved = stored(bench, "a", dispatch=ended)
    bench.feed(AppWrapperSeen(replace(saved, suspended=False)))
    bench.decide()
    assert bench.entry("a").phase is Phase.INTENDING
    bench.feed(StatusWritten("uid-a", earlier.serial))
    assert bench.entry("a").phase is Phase.INTENDING


def test_a_foreign_write_to_the_record_is_repaired() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.settle()
    mine = bench.status["uid-a"]
    bench.status["uid-a"] = replace(mine, dispatch=replace(mine.dispatch, attempt=7))
    bench.feed(AppWrapperSeen(bench.observed("uid-a")))
    bench.settle()
    assert bench.status["uid-a"].dispatch == mine.dispatch


def test_a_late_arrival_stays_within_its_second() -> None:
    bench = Bench(nodes=[node()])
    created = bench.now // SECOND * SECOND - 5 * SECOND
    bench.submit(workload("a", 1, created=created))
    assert bench.entry("a").first_seen < created + SECOND


def test_the_inventory_is_not_swept_while_it_is_asked_to_go() -> None:
    """Between the intent of a teardown and its deletions nothing is a stray."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.settle()
    bench.edit("uid-a", suspended=True)
    bench.decide()
    assert bench.entry("a").phase is Phase.UNDEPLOYING
    [thing] = bench.things.values()
    bench.feed(ChildSeen(thing.child))
    bench.decide()
    assert not [one for one in bench.pending if isinstance(one, DeleteStray)]


# -- status writes -------------------------------------------------------------------------------


def test_the_answer_to_a_write_that_was_superseded_moves_nothing() -> None:
    """Two writes of one AppWrapper are under way; only the later one has the intent in it."""
    bench = Bench(nodes=[node(milli=0)])
    bench.submit(workload("a", 100))
    bench.decide()
    [report] = [one for one in bench.pending if isinstance(one, WriteStatus)]
    bench.feed(NodeSeen(node(milli=1000)))
    bench.decide()
    intent = bench.pending[-1]
    assert isinstance(intent, WriteStatus)
    assert bench.entry("a").phase is Phase.INTENDING
    bench.feed(StatusWritten("uid-a", report.serial))
    assert creates(bench) == []
    bench.feed(StatusWritten("uid-a", intent.serial))
    assert creates(bench) == [0]
