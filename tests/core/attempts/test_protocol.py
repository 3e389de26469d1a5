"""The rules of the protocol, one by one, on the bench; named after them."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from mcad.core.attempts import orphans
from mcad.core.attempts.create import Meaning, classify
from mcad.core.commands import CreateItem, DeleteStray, LookForRemains, WriteStatus
from mcad.core.events import (
    AppWrapperGone,
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    ItemCreated,
    ItemInspected,
    ItemRefused,
    Leading,
)
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import READS_PER_SECOND
from mcad.core.state.lifecycle import TABLE, InvalidTransitionError, Phase, Signal, transition
from mcad.core.state.model import (
    Child,
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Item,
    Next,
    ObjectRef,
    Persisted,
    PodPhase,
    Workload,
)
from mcad.core.state.units import SECOND
from tests.core.bench import START, Bench, Thing, node, workload

UNKNOWN = Answer(0, "RequestTimeout", "no answer")
QUOTA = Answer(403, "Forbidden", "exceeded quota: pods=0")
FORBIDDEN = Answer(403, "Forbidden", "RBAC: no such right")
NO_FAULT_OF_THE_MANIFEST = (301, 302, 307, 308, 401, 404, 405, 406, 408, 410, 413, 415, 431, 451)
INVALID = Answer(422, "Invalid", "spec.containers: Required value")


def test_p1_the_intent_lists_every_item_in_order() -> None:
    bench = Bench(nodes=[node()])
    bench.begin(workload("a", 1, 2, 3))
    record = bench.status["uid-a"].dispatch
    assert record.phase is DispatchPhase.CREATING
    assert [ref.name for ref in record.inventory] == ["a-0", "a-1", "a-2"]
    assert (record.attempt, record.epoch, record.payload) == (1, 1, "sha-a")


def test_p2_items_are_created_strictly_in_order() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, 2, 3))
    bench.decide()
    seen = []
    while bench.pending:
        command = bench.pending.pop(0)
        if isinstance(command, CreateItem):
            seen.append(command.item)
        bench.execute(command)
    assert seen == [0, 1, 2]


def test_p2_an_earlier_item_that_was_deleted_is_not_created_again() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, 1, 1))
    bench.decide()
    for _ in range(3):  # intent, item 0, item 1
        bench.execute(bench.pending.pop(0))
    bench.remove(bench.works["uid-a"].items[0].ref)
    bench.restart()
    assert bench.created["uid-a", 1, 0] == 1
    assert bench.state("a") == "Failed", "without one of its pods it can do nothing"


def test_p3_the_confirmation_says_dispatched() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.DISPATCHED
    assert bench.status["uid-a"].dispatch.confirmed > 0


def test_p4_a_teardown_is_recorded_then_deletes_then_looks_then_settles() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, 1))
    bench.edit("uid-a", suspended=True)
    trail = []
    bench.decide()
    while bench.pending:
        command = bench.pending.pop(0)
        if isinstance(command, WriteStatus):
            trail.append(command.status.dispatch.phase.value)
        else:
            trail.append(type(command).__name__)
        bench.execute(command)
    assert trail == ["undeploying", "DeleteItem", "DeleteItem", "LookForRemains", "released"]
    assert bench.condition("a", "Dispatched")[:2] == (False, "Suspended")


def test_p4_the_next_intent_waits_until_nothing_is_left() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    stuck = bench.works["uid-a"].items[0].ref
    bench.things[stuck].finalizers = ("example.com/keep",)
    bench.edit("uid-a", suspended=True)
    bench.decide()
    bench.edit("uid-a", suspended=False)
    bench.advance(60)
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.UNDEPLOYING
    assert bench.created["uid-a", 2, 0] == 0
    bench.remove(stuck)
    bench.settle()
    assert bench.created["uid-a", 2, 0] == 1


def test_p5_an_unknown_outcome_is_settled_by_repeating_the_create() -> None:
    bench = Bench(nodes=[node()])
    bench.begin(workload("a", 1))
    bench.apply(bench.pending.pop(0))  # applied, and the answer got lost
    bench.feed(_refused(0))
    bench.advance(5)
    bench.settle()
    assert bench.state("a") == "Running"
    assert bench.created["uid-a", 1, 0] == 1


def test_p4_nothing_is_released_while_a_create_without_an_answer_may_be_committed() -> None:
    """The repeated create succeeds and is deleted, and then the first one is committed (ADR 7)."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 300, 300))
    bench.refuse("CreateItem", UNKNOWN)
    bench.decide()
    bench.execute(bench.pending.pop(0))  # the intent
    bench.execute(bench.pending.pop(0))  # item 0, whose outcome is unknown
    bench.now += SECOND
    bench.decide()
    bench.execute(bench.pending.pop(0))  # once more, and it is created
    assert bench.names() == ["a-0"]
    bench.refuse("CreateItem", INVALID)
    bench.start(workload("b", 900))
    bench.advance(70)
    assert (bench.order, bench.names()) == (["a"], [])
    bench.advance(6)
    assert (bench.order, bench.state("a")) == (["a", "b"], "Failed")


def test_p4_a_create_that_turns_out_to_have_been_committed_is_no_longer_in_doubt() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.begin(workload("a", 300, 300))  # the intent
    bench.apply(bench.pending.pop(0))  # item 0 is created, and the answer gets lost
    bench.feed(_refused(0))
    bench.refuse("CreateItem", INVALID)
    bench.advance(1)
    bench.start(workload("b", 900))
    assert bench.order == ["a", "b"]


def test_p4_nor_while_a_predecessors_may_be() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.begin(workload("a", 900))  # the intent; the create is under way
    bench.crash()
    bench.refuse("CreateItem", INVALID)
    bench.start(workload("b", 900))
    bench.advance(74)
    assert bench.order == []
    bench.advance(2)
    assert bench.order == ["b"]
    assert bench.state("a") == "Failed"


def test_p6_a_name_held_by_a_stranger_fails_and_names_the_holder() -> None:
    bench = Bench(nodes=[node()])
    ref = workload("a", 1).items[0].ref
    bench.works["uid-other"] = workload("other")  # exists by live GET
    bench.things[ref] = Thing(Child("theirs", ref, "uid-other", 1, 0), ())
    bench.start(workload("a", 1))
    assert bench.state("a") == "Failed"
    assert "exists already and belongs to" in bench.condition("a", "Failed")[2]
    assert bench.names() == ["a-0"]


def test_p6_a_name_on_its_way_out_is_waited_for() -> None:
    bench = Bench(nodes=[node()])
    ref = workload("a", 1).items[0].ref
    bench.things[ref] = Thing(Child("old", ref, "uid-deleted-long-ago", 1, 0), ())
    bench.start(workload("a", 1))
    assert bench.entry("a").phase is Phase.CREATING
    del bench.things[ref]
    bench.advance(5)
    assert bench.state("a") == "Running"


def renamed() -> tuple[Bench, ObjectRef]:
    """An AppWrapper that runs in its second attempt, and where its item was in the first one."""
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    other = workload("b", 1)
    bench.edit("uid-a", suspended=True, items=other.items, payload="sha-other")
    bench.advance(20)
    bench.edit("uid-a", suspended=False)
    bench.advance(20)
    assert (bench.names(), bench.entry("a").attempt) == (["b-0"], 2)
    return bench, workload("a", 1).items[0].ref


def test_p7_the_sweep_deletes_what_no_recorded_attempt_accounts_for() -> None:
    bench, ref = renamed()
    bench.feed(ChildSeen(Child("late", ref, "uid-a", 1, 0)))
    bench.decide()
    assert [c.object_uid for c in bench.pending if isinstance(c, DeleteStray)] == ["late"]


def test_p7_the_sweep_goes_on_in_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "SWEPT_PER_PASS", 1)
    bench, ref = renamed()
    for uid in ("late", "later"):
        bench.feed(ChildSeen(Child(uid, ref, "uid-a", 1, 0)))
    found = [0]
    for _ in range(6):
        bench.decide()
        found.append(sum(isinstance(one, DeleteStray) for one in bench.pending))
    assert found[-1] == 2
    assert all(after - before <= 1 for before, after in pairwise(found))


@pytest.mark.parametrize(("answer", "pause_s"), [(FORBIDDEN, 60), (UNKNOWN, 15)])
def test_p7_a_stray_that_cannot_be_deleted_is_asked_again_slowly(
    answer: Answer, pause_s: int
) -> None:
    bench, ref = renamed()
    bench.things[ref] = Thing(Child("late", ref, "uid-a", 1, 0), ())
    bench.refuse("DeleteStray", answer, answer)
    bench.observe(ref)
    bench.advance(2 * pause_s - 1)
    assert ref in bench.things
    assert bench.refusals["DeleteStray"] == []
    bench.advance(2)
    assert ref not in bench.things


def test_p7_the_sweep_deletes_what_comes_when_everything_is_deleted() -> None:
    """A late create of the attempt that is being taken back: nothing else would delete it."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 300, 300))
    bench.refuse("CreateItem", INVALID)
    bench.decide()
    while not isinstance(bench.pending[0], LookForRemains):
        bench.execute(bench.pending.pop(0))
    ref = bench.works["uid-a"].items[0].ref
    bench.things[ref] = Thing(Child("late", ref, "uid-a", 1, 0), ())
    bench.observe(ref)
    bench.advance(10)
    assert bench.names() == []
    assert bench.state("a") == "Failed"


def test_p7_the_sweep_deletes_what_comes_while_other_deletions_are_under_way() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 300, 300, 300))
    bench.decide()
    for _ in range(3):  # the intent and two items
        bench.execute(bench.pending.pop(0))
    bench.refuse("CreateItem", INVALID)
    bench.execute(bench.pending.pop(0))
    bench.execute(bench.pending.pop(0))  # the teardown is recorded
    bench.execute(bench.pending.pop(0))  # item 0 is deleted
    ref = bench.works["uid-a"].items[0].ref
    bench.things[ref] = Thing(Child("late", ref, "uid-a", 1, 0), ())
    bench.observe(ref)
    bench.decide()
    bench.settle()  # and now item 1
    bench.advance(10)
    assert bench.names() == []
    assert bench.state("a") == "Failed"
    assert bench.writes["delete"] == 3  # nothing is deleted twice; item 2 may have been created


def test_p7_the_sweep_touches_nothing_without_our_labels() -> None:
    bench, ref = renamed()
    bench.feed(ChildSeen(Child("late", ref, "uid-a", 0, -1, labelled=False)))
    bench.decide()
    assert bench.pending == []


def test_p8_a_payload_that_changed_after_the_intent_is_never_created() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, 1))
    bench.decide()
    for _ in range(2):
        bench.execute(bench.pending.pop(0))
    bench.edit("uid-a", payload="changed")
    bench.settle()

    record = bench.status["uid-a"].dispatch
    assert (record.attempt, record.payload) == (2, "changed")
    assert bench.created["uid-a", 1, 1] + bench.created["uid-a", 1, 0] <= 2
    assert bench.state("a") == "Running"
    assert {t.child.attempt for t in bench.things.values()} == {2}


def test_p9_a_deleted_appwrapper_holds_its_room_until_its_children_are_gone() -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 900))
    held = dict(bench.things)
    for thing in held.values():
        thing.finalizers = ("example.com/keep",)
    del bench.works["uid-a"]
    bench.feed(AppWrapperGone("uid-a"))
    bench.start(workload("b", 900))
    assert bench.order == ["a"]
    for ref in held:
        bench.remove(ref)
    bench.settle()
    assert bench.order == ["a", "b"]


def test_p9_a_tombstone_does_not_outlive_its_grace() -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 900))
    for thing in bench.things.values():
        thing.finalizers = ("example.com/keep",)
    del bench.works["uid-a"]
    bench.feed(AppWrapperGone("uid-a"))
    bench.start(workload("b", 900))
    bench.advance(599)
    assert bench.order == ["a"]
    bench.advance(2)
    assert bench.order == ["a", "b"]


def _deleted_while_creating(answer: Answer | None) -> Bench:
    """``a`` is deleted after the answer to its only create, or before it; ``b`` wants its room."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.begin(workload("a", 900))
    create = bench.pending.pop(0)
    if answer is not None:
        bench.refuse("CreateItem", answer)
        bench.execute(create)
    bench.delete("uid-a")
    bench.start(workload("b", 900))
    return bench


@pytest.mark.parametrize("answer", [FORBIDDEN, Answer(429, "TooManyRequests", "later")])
def test_p9_a_create_that_was_refused_holds_no_room(answer: Answer) -> None:
    assert _deleted_while_creating(answer).order == ["b"]


@pytest.mark.parametrize("answer", [UNKNOWN, Answer(500, "InternalError", "etcd timed out")])
def test_p9_an_unknown_create_holds_room_for_as_long_as_it_may_be_committed(answer: Answer) -> None:
    bench = _deleted_while_creating(answer)
    bench.advance(74)
    assert bench.order == []
    bench.advance(2)
    assert bench.order == ["b"]


def test_p9_the_answer_to_a_create_under_way_ends_the_tombstone_or_its_doubt_does() -> None:
    bench = _deleted_while_creating(None)
    assert bench.order == []
    bench.feed(_refused(0, Answer(404, "NotFound", "no such namespace")))
    bench.settle()
    assert bench.order == ["b"]

    bench = _deleted_while_creating(None)
    bench.advance(20)
    bench.feed(_refused(0))
    bench.advance(74)
    assert bench.order == []
    bench.advance(2)
    assert bench.order == ["b"]


def test_p9_a_create_that_turns_out_to_be_committed_holds_room_until_it_is_collected() -> None:
    bench = _deleted_while_creating(None)
    bench.feed(ItemCreated("uid-a", 1, 0, "obj-late"))
    ref = ObjectRef("", "v1", "pods", "Pod", "default", "a-0")
    bench.feed(ChildSeen(Child("obj-late", ref, "uid-a", 1, 0)))
    bench.advance(500)
    assert bench.order == []
    bench.feed(ChildGone("obj-late"))
    bench.settle()
    assert bench.order == ["b"]


def test_p9_what_no_watch_has_told_is_looked_for() -> None:
    """A watch may have had a gap in which the object came and went."""
    bench = _deleted_while_creating(None)
    bench.feed(ItemCreated("uid-a", 1, 0, "obj-unseen"))
    bench.settle()
    assert bench.order == []
    bench.advance(31)
    assert bench.order == ["b"]


def test_p9_an_appwrapper_that_is_being_deleted_is_not_dispatched() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, deleting=True))
    assert dict(bench.writes) == {}


def test_p11_reservations_of_a_predecessor_stand_before_the_first_decision() -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 900))
    bench.start(workload("b", 900))
    bench.restart()
    assert bench.order == ["a"]
    assert bench.created["uid-a", 1, 0] == 1


@pytest.mark.parametrize(("lease", "epoch"), [(None, 2), (1, 2), (2, 2), (7, 7)])
def test_p12_the_epoch_is_that_of_the_lease_or_above_every_one_found(
    lease: int | None, epoch: int
) -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    bench.crash()
    if lease is not None:
        bench.feed(Leading(lease))
    bench.start(workload("b", 1))
    assert bench.status["uid-a"].dispatch.epoch == 1
    assert bench.status["uid-b"].dispatch.epoch == epoch


@pytest.mark.parametrize("fits", [True, False], ids=["fits: honoured", "does not: torn down"])
def test_p12_an_intent_of_another_leader_after_the_barrier(fits: bool) -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("mine", 900 if not fits else 100))
    bench.start(workload("theirs", 500, suspended=True))
    work = replace(bench.works["uid-theirs"], suspended=False)
    bench.works["uid-theirs"] = work
    record = DispatchRecord(
        1, 9, DispatchPhase.CREATING, work.payload, tuple(i.ref for i in work.items), START
    )
    bench.feed(AppWrapperSeen(replace(work, persisted=Persisted("Pending", START, (), record))))
    bench.settle()
    assert (bench.state("theirs") == "Running") is fits
    assert ("theirs-0" in bench.names()) is fits


def _first_seen_late(bench: Bench, work: Workload, phase: DispatchPhase) -> None:
    """The list of its namespace was held back; another leader had recorded an attempt, and what
    that has made is there, whatever the watches tell."""
    bench.works[work.uid] = work
    inventory = tuple(item.ref for item in work.items)
    if phase is DispatchPhase.DISPATCHED:
        for number, ref in enumerate(inventory):
            bench.things[ref] = Thing(
                Child(f"uid-{ref.name}", ref, work.uid, 1, number), work.sets[number].request
            )
    record = DispatchRecord(1, 1, phase, work.payload, inventory, START, entered=bench.now)
    bench.feed(AppWrapperSeen(replace(work, persisted=Persisted("Running", START, (), record))))


@pytest.mark.parametrize("phase", [DispatchPhase.CREATING, DispatchPhase.DISPATCHED])
@pytest.mark.parametrize("fits", [True, False], ids=["fits: adopted", "does not: torn down"])
def test_p12_an_attempt_first_seen_after_the_barrier(fits: bool, phase: DispatchPhase) -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("mine", 100 if fits else 900))
    bench.bind("mine-0")
    _first_seen_late(bench, workload("theirs", 500), phase)
    bench.advance(100)
    assert (bench.entry("theirs").phase is Phase.RUNNING) is fits
    assert bench.entry("mine").phase is Phase.RUNNING
    unplaced = bench.dispatcher.cluster.capacity.report.unplaced()
    assert unplaced == (), "nothing is promised that does not exist"


@pytest.mark.parametrize("dialect", [Dialect.V1BETA1, Dialect.V1BETA2])
def test_an_item_that_no_watch_has_told_of_is_read_before_it_counts_as_missing(
    dialect: Dialect,
) -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.settle()
    work = workload("late", 500, dialect=dialect)
    _first_seen_late(bench, work, DispatchPhase.DISPATCHED)
    bench.advance(40)
    assert bench.entry("late").phase is Phase.RUNNING
    assert 6 <= bench.writes["inspect"] <= 10, "every five seconds"
    bench.feed(ItemInspected(work.uid, 1, 0, None, Answer(503, "ServiceUnavailable", "later")))
    bench.feed(ItemInspected(work.uid, 0, 0, None))
    bench.settle()
    assert bench.entry("late").phase is Phase.RUNNING, "neither of these says that it is gone"
    del bench.things[work.items[0].ref]
    bench.advance(6)
    assert bench.state("late") == "Failed"


@pytest.mark.parametrize("dialect", [Dialect.V1BETA1, Dialect.V1BETA2])
def test_an_item_that_is_deleted_is_missed_at_once_and_without_a_read(dialect: Dialect) -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 500, dialect=dialect))
    bench.bind("a-0")
    bench.remove(bench.works["uid-a"].items[0].ref)
    bench.settle()
    assert bench.writes["inspect"] == 0
    assert bench.state("a") == "Failed"


def test_an_item_without_pods_is_not_needed_in_v1beta1() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 500)
    extra = Item(ObjectRef("", "v1", "configmaps", "ConfigMap", "default", "settings"))
    bench.start(replace(work, items=(*work.items, extra)))
    bench.remove(extra.ref)
    bench.settle()
    assert bench.state("a") == "Running"


def test_reads_of_items_are_bounded() -> None:
    """A stale list of a kind, and 100 items that it has not."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.settle()
    for number in range(100):
        _first_seen_late(bench, workload(f"a{number}", 1), DispatchPhase.DISPATCHED)
    bench.settle()
    assert bench.writes["inspect"] == READS_PER_SECOND
    bench.advance(3)
    assert bench.writes["inspect"] == 100
    bench.advance(20)
    assert all(bench.entry(f"a{number}").phase is Phase.RUNNING for number in range(100))


@pytest.mark.parametrize("fits", [True, False], ids=["fits: kept", "does not: queues"])
def test_p12_a_pause_first_seen_after_the_barrier(fits: bool) -> None:
    """It keeps the room of a reset, which we may have given away."""
    bench = Bench(nodes=[node(milli=1000)]).start(workload("mine", 100 if fits else 900))
    bench.bind("mine-0")
    work = workload("theirs", 500, dialect=Dialect.V1BETA2)
    _first_seen_late(bench, work, DispatchPhase.PAUSED)
    bench.settle()

    expected = Phase.PAUSING if fits else Phase.WAITING
    assert bench.entry("theirs").phase is expected
    assert bench.dispatcher.cluster.capacity.gangs.exists("uid-theirs") is fits
    assert bench.dispatcher.cluster.capacity.report.unplaced() == ()


def test_p9_a_pause_that_is_deleted_before_its_room_was_taken_leaves_nothing() -> None:
    """The leader hears of it and of its end before its first decision."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.settle()
    _first_seen_late(bench, workload("a", 500, dialect=Dialect.V1BETA2), DispatchPhase.PAUSED)
    bench.delete("uid-a")
    bench.advance(600)
    assert "uid-a" not in bench.dispatcher.cluster.entries
    bench.dispatcher.cluster.admission.check()
    assert not bench.dispatcher.cluster.capacity.gangs.uids()


def test_p12_what_runs_already_is_not_taken_down_for_room_that_it_has() -> None:
    """Its pods are bound: that it would not fit a second time says nothing."""
    bench = Bench(nodes=[node(milli=1000)]).start(workload("mine", 100))
    bench.bind("mine-0")
    work = workload("theirs", 500, 400)
    work = replace(work, sets=(work.sets[0], replace(work.sets[1], per_node=True)))
    for number, item in enumerate(work.items):
        child = Child(f"t{number}", item.ref, work.uid, 1, number)
        bench.things[item.ref] = Thing(child, work.sets[number].request)
        bench.bind(item.ref.name)
    _first_seen_late(bench, work, DispatchPhase.DISPATCHED)
    bench.settle()
    assert bench.entry("theirs").phase is Phase.RUNNING
    assert len(bench.names()) == 3


def test_p12_what_has_ended_wants_no_room() -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("mine", 900))
    work = workload("theirs", 500)
    child = Child("t0", work.items[0].ref, work.uid, 1, 0)
    bench.things[work.items[0].ref] = Thing(child, work.sets[0].request, "n1", PodPhase.SUCCEEDED)
    bench.observe(work.items[0].ref)
    _first_seen_late(bench, work, DispatchPhase.DISPATCHED)
    bench.settle()
    assert bench.entry("theirs").phase is Phase.RUNNING


@pytest.mark.parametrize("fits", [True, False], ids=["fits: honoured", "does not: torn down"])
def test_p12_an_intent_that_was_committed_after_the_barrier_of_a_later_epoch(fits: bool) -> None:
    """The later leader has not heard of it, and is killed: the third one finds both on record."""
    bench = Bench(nodes=[node(milli=1000)])
    theirs = workload("theirs", 500)
    bench.begin(theirs)
    late = bench.status.pop("uid-theirs")
    assert late.dispatch.phase is DispatchPhase.CREATING
    bench.works["uid-theirs"] = replace(theirs, suspended=True)
    bench.crash()
    bench.feed(Leading(7))
    bench.start(workload("mine", 100 if fits else 900))
    assert bench.status["uid-mine"].dispatch.epoch > late.dispatch.epoch
    bench.works["uid-theirs"], bench.status["uid-theirs"] = theirs, late
    bench.crash()
    bench.advance(100)
    assert bench.entry("mine").phase is Phase.RUNNING
    assert (bench.entry("theirs").phase is Phase.RUNNING) is fits


def test_p12_a_late_intent_that_gives_way_may_still_have_a_create_under_way() -> None:
    """Its room, if there is any, is not given away before that is out of the question (ADR 7)."""
    bench = Bench(nodes=[node(milli=1000)]).start(workload("mine", 900))
    _first_seen_late(bench, workload("theirs", 500), DispatchPhase.CREATING)
    bench.advance(74)
    assert bench.entry("theirs").phase is Phase.VERIFYING
    bench.advance(2)
    assert bench.entry("theirs").phase is Phase.WAITING


def test_p12_what_an_earlier_attempt_finished_says_nothing_of_a_late_one() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 500)
    work = replace(work, items=(replace(work.items[0], completion=("done",)),))
    bench.start(work)
    bench.entry("a").run.finished.add(0)  # its condition was met while it was taken back
    bench.edit("uid-a", suspended=True)
    bench.settle()
    inventory = tuple(item.ref for item in work.items)
    record = DispatchRecord(2, 1, DispatchPhase.CREATING, work.payload, inventory, START)
    bench.works["uid-a"] = work
    bench.feed(AppWrapperSeen(replace(work, persisted=Persisted("Pending", START, (), record))))
    bench.settle()
    assert bench.entry("a").attempt == 2
    assert bench.state("a") == "Running", "not RunningHoldCompletion"


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (UNKNOWN, Meaning.RETRY),
        (Answer(429, "TooManyRequests", ""), Meaning.RETRY),
        (Answer(503, "ServiceUnavailable", ""), Meaning.RETRY),
        (Answer(409, "AlreadyExists", ""), Meaning.INSPECT),
        (Answer(409, "Conflict", ""), Meaning.RETRY),
        (QUOTA, Meaning.REVIEW),
        (Answer(403, "NamespaceTerminating", ""), Meaning.FAIL),
        (INVALID, Meaning.FAIL),
        (Answer(400, "BadRequest", ""), Meaning.FAIL),
        *((Answer(code, "", ""), Meaning.RETRY) for code in NO_FAULT_OF_THE_MANIFEST),
    ],
)
def test_what_an_answer_to_a_create_means(answer: Answer, meaning: Meaning) -> None:
    assert classify(answer) is meaning


def test_422_fails_with_the_servers_words_and_leaves_nothing_behind() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, 1))
    bench.refuse("CreateItem", INVALID)
    bench.settle()
    assert bench.state("a") == "Failed"
    assert bench.names() == []
    status, reason, message = bench.condition("a", "Failed")
    assert (status, reason) == (True, "ItemCreationFailure.")
    assert message == "default/a-0 creation failure: spec.containers: Required value"
    bench.crash()
    bench.advance(3600)
    assert bench.state("a") == "Failed"  # terminal


def test_403_with_the_right_to_create_is_tried_again_after_a_pause_and_then_given_up() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("CreateItem", *[QUOTA] * 4 * 6)  # in each attempt, 3 are borne (bounds.py)
    bench.advance(5)
    assert bench.state("a") == "Pending"
    assert bench.condition("a", "Backoff")[1] == "CreationBackoff"
    bench.advance(3600)
    assert bench.state("a") == "Failed"
    assert bench.status["uid-a"].dispatch.attempt == 6
    assert bench.status["uid-a"].dispatch.next is Next.FAILED


@pytest.mark.parametrize(
    ("code", "times", "after"), [(503, 4, 30), *((code, 1, 1) for code in NO_FAULT_OF_THE_MANIFEST)]
)
def test_what_says_nothing_about_the_manifest_is_repeated_in_place(
    code: int, times: int, after: int
) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("CreateItem", *[Answer(code, "", "words")] * times)
    bench.advance(after)
    assert bench.state("a") == "Running"
    assert bench.status["uid-a"].dispatch.attempt == 1


@pytest.mark.parametrize("code", NO_FAULT_OF_THE_MANIFEST)
def test_what_says_nothing_about_the_manifest_never_ends_an_appwrapper(code: int) -> None:
    """For two hours, and it says so; the pauses grow."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("CreateItem", *[Answer(code, "Odd", "words")] * 10_000)
    bench.advance(7200)
    asked = 10_000 - len(bench.refusals["CreateItem"])
    assert asked < 400
    while bench.condition("a", "Backoff") is None or not bench.condition("a", "Backoff")[0]:
        bench.advance(10)
    assert bench.condition("a", "Backoff")[1:] == (
        "CreationBackoff",
        f"default/a-0 creation failure: {code} Odd: words. Not caused by the manifest; retrying.",
    )
    bench.refusals.clear()
    bench.advance(301)
    assert bench.state("a") == "Running"


def test_trouble_with_the_server_does_not_count_as_a_refusal_by_quota() -> None:
    """Five attempts that came to nothing, and then a quota: that is the first refusal of six."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("CreateItem", *[Answer(503, "ServiceUnavailable", "later")] * 10_000)
    bench.settle()
    while bench.entry("a").past.in_vain < 6:
        bench.advance(10)
    bench.refusals["CreateItem"] = [QUOTA] * 4
    bench.advance(800)
    assert bench.state("a") == "Running"


def test_a_conflict_at_the_intent_judges_anew() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("WriteStatus", Answer(409, "Conflict", "changed"))
    bench.settle()
    assert bench.state("a") == "Running"
    assert bench.status["uid-a"].dispatch.attempt == 1


def test_a_status_write_whose_outcome_is_unknown_is_repeated() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("WriteStatus", UNKNOWN, UNKNOWN)
    bench.advance(10)
    assert bench.state("a") == "Running"


@pytest.mark.parametrize("number", range(4), ids=["intent", "confirm", "teardown", "its end"])
def test_a_404_to_a_status_write_of_what_is_there_after_all_is_repeated(number: int) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    if number >= 2:
        bench.settle()
        bench.edit("uid-a", suspended=True)
    writes = iter(range(9))
    bench.decide()
    while bench.pending:
        command = bench.pending.pop(0)
        if isinstance(command, WriteStatus) and next(writes) == number % 2:
            bench.refuse("WriteStatus", *[Answer(404, "NotFound", "not found")] * 5)
        bench.execute(command)
    assert bench.refusals["WriteStatus"]
    bench.advance(60)
    bench.edit("uid-a", suspended=False)
    bench.settle()
    assert bench.state("a") == "Running"
    assert bench.entry("a").phase is Phase.RUNNING


def test_a_404_to_a_status_write_of_what_is_gone_is_not_repeated_after_we_hear_of_it() -> None:
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(workload("a", 100))
    del bench.works["uid-a"]  # its deletion is on the way to us
    bench.advance(3)
    bench.feed(AppWrapperGone("uid-a"))
    bench.start(workload("b", 100))
    bench.advance(120)
    assert bench.order == ["b"]
    assert list(bench.dispatcher.cluster.entries) == ["uid-b"]


@pytest.mark.parametrize("verb", ["WriteStatus", "CreateItem", "DeleteItem"])
def test_a_403_that_passes_costs_moments_and_is_not_told(verb: str) -> None:
    """An API server that has just started refuses everything until it has read the roles."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    if verb == "DeleteItem":
        bench.settle()
        bench.edit("uid-a", suspended=True)
    bench.refuse(verb, *[UNKNOWN] * 4, *[FORBIDDEN] * 3)  # it was away before
    bench.advance(15)
    assert bench.refusals[verb] == []
    assert bench.names() == ([] if verb == "DeleteItem" else ["a-0"])
    assert bench.status["uid-a"].dispatch.attempt == 1
    told = {event.note for event in bench.events if event.warning}
    assert told <= {"spec.suspend is true."}


@pytest.mark.parametrize("verb", ["WriteStatus", "DeleteItem"])
def test_a_403_that_stays_is_told_once_and_tried_ever_more_slowly(verb: str) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    if verb == "DeleteItem":
        bench.settle()
        bench.edit("uid-a", suspended=True)
    bench.refuse(verb, *[FORBIDDEN] * 30)
    bench.advance(600)
    assert 30 - len(bench.refusals[verb]) in range(12, 20)
    assert len([event for event in bench.events if event.warning and "cannot" in event.note]) == 1


def test_the_live_list_is_asked_before_the_room_is_free() -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 900))
    bench.start(workload("b", 900))
    bench.edit("uid-a", suspended=True)
    bench.decide()
    while bench.pending and not isinstance(bench.pending[0], LookForRemains):
        bench.execute(bench.pending.pop(0))
    bench.decide()
    assert bench.order == ["a"]
    bench.settle()
    assert bench.order == ["a", "b"]


def test_an_impossible_transition_tells_the_story() -> None:
    with pytest.raises(
        InvalidTransitionError, match="default/a: confirmed while waiting; story: x"
    ):
        transition("default/a", Phase.WAITING, Signal.CONFIRMED, ["x"])


def test_every_phase_is_left_by_deletion_and_terminal_ones_by_nothing_else() -> None:
    for phase in Phase:
        signals = {signal for (start, signal) in TABLE if start is phase} - {Signal.ERROR}
        assert (Signal.OBJECT_GONE in signals) is (phase is not Phase.GONE)
        if phase in (Phase.FAILED, Phase.DELETED, Phase.FOREIGN):
            assert signals == {Signal.OBJECT_GONE}
        if phase is Phase.COMPLETED:
            assert signals == {Signal.OBJECT_GONE, Signal.TAKE_BACK}  # its objects have a time


def _refused(item: int, answer: Answer = UNKNOWN) -> ItemRefused:
    return ItemRefused("uid-a", 1, item, answer)


@pytest.mark.parametrize("k", range(12))
@pytest.mark.parametrize("applied", [False, True], ids=["lost before", "applied, answer lost"])
def test_a_crash_at_any_command_loses_and_doubles_nothing(k: int, applied: bool) -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 300, 300), workload("b", 300), workload("c", 300, 300))
    done = 0
    bench.decide()
    while bench.pending and done < k:
        bench.execute(bench.pending.pop(0))
        done += 1
        if not bench.pending:
            bench.decide()
    if bench.pending and applied:
        bench.apply(bench.pending.pop(0))
    bench.crash()
    bench.advance(120)
    assert max(bench.created.values()) == 1
    assert bench.order[:2] == ["a", "b"]
    assert [bench.state(n) for n in "abc"] == ["Running", "Running", "Pending"]
    assert bench.names() == ["a-0", "a-1", "b-0"]


def test_a_create_that_commits_after_the_crash_is_found_and_not_doubled() -> None:
    bench = Bench(nodes=[node()])
    bench.begin(workload("a", 1))
    late = bench.pending.pop(0)
    bench.crash()
    bench.decide()
    bench.apply(late)  # the predecessor's request commits only now
    bench.settle()
    assert bench.created["uid-a", 1, 0] == 1
    assert bench.state("a") == "Running"


def test_an_answer_to_an_old_attempt_changes_nothing() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    bench.feed(ItemCreated("uid-a", 99, 0, "ghost"))
    bench.settle()
    assert bench.entry("a").creation.created == {0: "obj-1"}
