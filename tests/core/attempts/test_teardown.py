"""Teardowns that take long: they look ever more slowly, say what for, and end when that goes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.attempts.teardown import stuck_teardowns
from mcad.core.commands import DeleteItem, LookForRemains, WriteStatus
from mcad.core.events import AppWrapperGone, ItemDeleted, NodeSeen, PodSeen
from mcad.core.state.answer import Answer
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import ObjectRef, Pod, PodPhase, Remnant
from mcad.core.state.reasons import explain_remains
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, cpu, node, workload

KEEP = "example.com/keep"
CONFLICT = Answer(409, "Conflict", "the object has been modified")
UNKNOWN = Answer(0, "RequestTimeout", "no answer")


def stuck(*names: str) -> Bench:
    """AppWrappers are taken back, and a finalizer keeps their objects."""
    bench = Bench(nodes=[node(milli=10_000)]).start(*(workload(name, 100) for name in names))
    for thing in bench.things.values():
        thing.finalizers = (KEEP,)
    for name in names:
        bench.edit(f"uid-{name}", suspended=True)
    bench.settle()
    bench.looks = 0
    return bench


def test_a_teardown_that_waits_looks_ever_more_slowly() -> None:
    bench = stuck("a")
    bench.advance(3600)
    assert bench.looks < 20  # every 5 s would be 720
    bench.advance(36_000)
    assert bench.looks < 150


def test_twenty_that_wait_do_not_ask_more_than_a_few_times_a_minute() -> None:
    bench = stuck(*(f"w{number}" for number in range(20)))
    bench.advance(3600)
    bench.looks = 0
    bench.advance(600)
    assert bench.looks <= 20 * 2


def test_what_goes_ends_the_teardown_at_once_however_long_it_took() -> None:
    bench = stuck("a")
    bench.advance(3600)
    bench.remove(next(iter(bench.things)))
    bench.settle()
    assert bench.entry("a").phase == "waiting"


def test_what_goes_while_a_look_is_under_way_is_looked_for_once_more() -> None:
    """The answer may have been made before it went; the next look would be minutes away."""
    bench = stuck("a")
    bench.advance(3600)
    bench.now = next(iter(sorted(bench.wishes)))
    bench.decide()
    (look,) = [one for one in bench.pending if isinstance(one, LookForRemains)]
    bench.pending.clear()
    stale = bench.apply(look)
    bench.remove(next(iter(bench.things)))
    bench.feed(stale)
    bench.settle()
    assert bench.entry("a").phase == "waiting"


def test_what_was_said_to_be_gone_and_is_not_is_deleted_once_more() -> None:
    """A proxy on the way to the server answered 404; its uid may be that of a late create."""
    bench = Bench(nodes=[node()]).start(workload("a", 1, 1))
    bench.edit("uid-a", suspended=True)
    bench.decide()
    while bench.pending:
        command = bench.pending.pop(0)
        if isinstance(command, DeleteItem) and command.item == 0:
            bench.feed(ItemDeleted("uid-a", 1, 0))  # nothing was
        else:
            bench.execute(command)
    assert bench.names() == ["a-0"]
    bench.advance(60)
    assert bench.names() == []
    assert bench.entry("a").phase == "waiting"


def test_what_is_going_is_not_deleted_again() -> None:
    bench = stuck("a")
    before = bench.writes["delete"]
    bench.advance(3600)
    assert bench.writes["delete"] == before


def test_it_says_what_it_waits_for_and_stops_saying_so() -> None:
    bench = stuck("a")
    bench.events.clear()
    bench.advance(30)
    assert bench.condition("a", "DeletingResources") is None
    assert bench.all_rows()[0].why == "Its objects are being deleted."
    assert stuck_teardowns(bench.dispatcher.cluster) == {}
    bench.advance(3600)

    told = "Pod default/a-0 cannot be deleted because of its finalizer example.com/keep: its "
    told += "controller has to remove it, or remove it by hand."
    assert bench.condition("a", "DeletingResources") == (True, "WaitingForRemains", told)
    assert [(event.reason, event.note) for event in bench.events] == [("WaitingForRemains", told)]
    assert bench.all_rows()[0].why == f"Its objects are being deleted. {told}"
    assert stuck_teardowns(bench.dispatcher.cluster) == {"Pod": 1}
    writes = bench.writes["status"]
    bench.advance(3600)
    assert bench.writes["status"] == writes

    bench.remove(next(iter(bench.things)))
    bench.settle()
    assert bench.condition("a", "DeletingResources") == (False, "DeletionComplete", "")
    assert stuck_teardowns(bench.dispatcher.cluster) == {}


def test_after_a_restart_it_is_not_announced_again() -> None:
    bench = stuck("a")
    bench.advance(100)
    bench.events.clear()
    bench.crash()
    bench.advance(3600)
    assert bench.events == []
    assert stuck_teardowns(bench.dispatcher.cluster) == {"Pod": 1}


def test_a_pod_on_a_lost_node_is_named_with_the_node() -> None:
    bench = stuck("a")
    ref = next(iter(bench.things))
    bench.things[ref].finalizers = ()
    uid = bench.things[ref].child.uid
    pod = Pod(uid, "default", ref.name, "n1", PodPhase.RUNNING, cpu(100, 1), terminating=True)
    bench.feed(PodSeen(replace(pod, workload="uid-a", item=0, attempt=1, root=uid)))
    bench.advance(100)

    condition = bench.condition("a", "DeletingResources")
    assert condition is not None
    told = (
        "Pod default/a-0 is terminating on node n1: if the node is lost, delete the pod by force."
    )
    assert condition[2] == told


def test_what_a_deleted_appwrapper_waits_for_is_counted_too() -> None:
    bench = stuck("a")
    del bench.works["uid-a"]
    bench.feed(AppWrapperGone("uid-a"))
    assert stuck_teardowns(bench.dispatcher.cluster) == {}
    bench.events.clear()
    bench.advance(300)
    assert stuck_teardowns(bench.dispatcher.cluster) == {"Pod": 1}
    told = "Pod default/a-0 outlives its AppWrapper and keeps its room for now; what keeps it?"
    assert [(event.reason, event.note) for event in bench.events] == [("WaitingForRemains", told)]


POD = ObjectRef("", "v1", "pods", "Pod", "default", "p")
JOB = ObjectRef("batch", "v1", "jobs", "Job", "default", "j")


@pytest.mark.parametrize(
    ("remains", "text"),
    [
        pytest.param(
            [Remnant(JOB, "1", True, ("foregroundDeletion",)), Remnant(POD, "2", True)],
            "Pod default/p is terminating on node n1: if the node is lost, delete the pod by "
            "force. Also left: 1.",
            id="a pod rather than its owner",
        ),
        pytest.param(
            [Remnant(POD, "2", True), Remnant(JOB, "1", True, ("foregroundDeletion", KEEP))],
            f"Job default/j cannot be deleted because of its finalizer {KEEP}: its controller "
            "has to remove it, or remove it by hand. Also left: 1.",
            id="a finalizer rather than a pod",
        ),
        pytest.param([Remnant(JOB, "1")], "Job default/j is still there.", id="neither"),
    ],
)
def test_the_most_telling_object_is_named(remains: list[Remnant], text: str) -> None:
    assert explain_remains(remains, "n1") == text


def test_only_the_deletion_that_was_refused_is_repeated() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, 1, 1))
    bench.refuse("DeleteItem", Answer(500, "InternalError", "injected"))
    bench.edit("uid-a", suspended=True)
    bench.settle()
    deletions = bench.writes["delete"]
    bench.advance(1)
    assert bench.writes["delete"] == deletions + 1
    assert bench.names() == []


def contested() -> Bench:
    """``a`` has the only node and ``b``, which came later, waits for it."""
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 900), workload("b", 900))
    assert bench.order == ["a"]
    return bench


def torn_down(bench: Bench) -> None:
    """The look of the teardown has found nothing; whatever follows it is under way."""
    bench.decide()
    while bench.entry("a").phase is not Phase.VERIFYING:
        bench.execute(bench.pending.pop(0))
    (look,) = [one for one in bench.pending if isinstance(one, LookForRemains)]
    bench.pending.remove(look)
    bench.execute(look)


@pytest.mark.parametrize("answers", [(), (CONFLICT,), (UNKNOWN, UNKNOWN)])
def test_a_requeued_appwrapper_keeps_its_turn_while_its_end_is_written(
    answers: tuple[Answer, ...],
) -> None:
    bench = contested()
    bench.edit("uid-a", suspended=True)
    bench.decide()
    bench.edit("uid-a", suspended=False)
    torn_down(bench)
    bench.refuse("WriteStatus", *answers)
    bench.decide()  # before the write is answered
    assert bench.entry("b").phase is Phase.WAITING
    bench.advance(30)
    assert bench.order == ["a", "a"]


def test_the_end_of_a_teardown_is_written_before_the_next_intent() -> None:
    bench = contested()
    bench.edit("uid-a", suspended=True)
    bench.decide()
    bench.edit("uid-a", suspended=False)
    torn_down(bench)
    bench.decide()
    phases = []
    while bench.pending:
        command = bench.pending.pop(0)
        if isinstance(command, WriteStatus) and command.uid == "uid-a":
            phases.append(command.status.dispatch.phase)
        bench.execute(command)
    assert list(dict.fromkeys(phases)) == ["undeploying", "released", "creating", "dispatched"]


def test_a_victim_keeps_its_turn_if_its_preemptor_vanishes() -> None:
    bench = Bench(Settings(preemption=True, min_run_time=0, placement_timeout=0))
    bench.feed(NodeSeen(node(milli=1000)))
    bench.start(workload("a", 900), workload("b", 900))
    bench.submit(workload("first", 900, priority=1))
    bench.now += 60 * SECOND
    bench.decide()
    assert bench.entry("a").phase is Phase.UNDEPLOYING
    bench.delete("uid-first")
    torn_down(bench)
    bench.settle()
    assert bench.order == ["a", "a"]
