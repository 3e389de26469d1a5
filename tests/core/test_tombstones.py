"""Deleted AppWrappers: what they leave is deleted at once, unless it is meant to stay (P9)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcad.core.commands import CreateItem, DeleteStray
from mcad.core.events import Answer, AppWrapperGone, ChildGone, ChildSeen, PodGone, PodSeen
from mcad.core.lifecycle import Phase
from mcad.core.model import (
    Cascade,
    Child,
    DispatchPhase,
    DispatchRecord,
    ObjectRef,
    Persisted,
    Pod,
    PodPhase,
    PodSet,
)
from mcad.core.rules import FaultTolerance
from mcad.core.units import SECOND
from tests.core.bench import START, Bench, Thing, cpu, node, workload

FORBIDDEN = Answer(403, "Forbidden", "no")


def gone(bench: Bench, uid: str = "uid-a") -> None:
    """An AppWrapper is deleted, and nobody collects its objects."""
    del bench.works[uid]
    bench.status.pop(uid, None)
    bench.feed(AppWrapperGone(uid))


def running(*milli: int) -> Bench:
    """``a`` runs, ``b`` waits for its room."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", *milli), workload("b", 900))
    bench.settle()
    assert bench.order == ["a"]
    return bench


def test_what_a_deleted_one_leaves_is_deleted_at_once() -> None:
    bench = running(500, 400)
    uids = {thing.child.uid for thing in bench.things.values()}
    gone(bench)
    bench.decide()
    strays = [one for one in bench.pending if isinstance(one, DeleteStray)]
    assert {one.object_uid for one in strays} == uids
    bench.settle()

    assert bench.names() == ["b-0"]
    assert bench.writes["stray"] == 2


def test_its_room_is_free_only_when_it_is_gone() -> None:
    bench = running(900)
    ref = next(iter(bench.things))
    bench.things[ref].finalizers = ("example.com/keep",)
    gone(bench)
    bench.settle()
    bench.advance(500)
    assert bench.order == ["a"]
    assert bench.writes["stray"] == 1

    bench.remove(ref)
    bench.settle()
    assert bench.order == ["a", "b"]


def test_what_is_orphaned_stays() -> None:
    bench = running(900)
    bench.edit("uid-a", deleting=True, cascade=Cascade.ORPHAN)
    bench.settle()
    gone(bench)
    bench.settle()
    bench.advance(30)

    assert bench.names() == ["a-0"]
    assert bench.writes["stray"] == 0


def test_with_foreground_deletion_the_objects_go_first() -> None:
    bench = running(900)
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.settle()
    assert bench.names() == []
    assert "uid-a" in bench.works

    gone(bench)
    bench.settle()
    assert bench.order == ["a", "b"]


def test_foreground_deletion_may_be_asked_for_later() -> None:
    bench = running(900)
    bench.edit("uid-a", deleting=True)  # somebody's finalizer keeps it
    bench.settle()
    assert bench.names() == ["a-0"]
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.settle()
    assert bench.names() == []


def test_foreground_deletion_that_began_while_nobody_looked() -> None:
    bench = running(900)
    bench.works["uid-a"] = replace(bench.works["uid-a"], deleting=True, cascade=Cascade.FOREGROUND)
    bench.crash()
    bench.settle()
    assert bench.names() == []


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_finished_leaves_nothing_either(restarts: bool) -> None:
    bench = Bench(nodes=[node()])
    work = workload("a", 900)
    bench.submit(replace(work, items=(replace(work.items[0], completion=("succeeded",)),)))
    bench.settle()
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert bench.state("a") == "Completed"
    if restarts:
        bench.crash()
        bench.settle()
    gone(bench)
    bench.settle()

    assert bench.names() == []
    assert "uid-a" not in bench.dispatcher.world.entries


def test_a_create_under_way_is_swept_when_it_is_committed() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 900))
    bench.decide()
    bench.execute(bench.pending.pop(0))
    create = bench.pending.pop(0)
    assert isinstance(create, CreateItem)
    late = bench.works["uid-a"]
    gone(bench)
    bench.settle()
    bench.works["uid-a"] = late
    bench.execute(create)  # sent before, committed after
    del bench.works["uid-a"]
    assert bench.names() == ["a-0"]
    bench.settle()

    assert bench.names() == []
    assert "uid-a" not in bench.dispatcher.world.entries


def test_what_no_watch_has_told_of_is_deleted_when_it_is_found() -> None:
    bench = running(900)
    world = bench.dispatcher.world
    (child,) = list(world.children.values())
    world.drop_child(child.uid)  # as if the watch had never told
    gone(bench)
    bench.settle()
    assert bench.names() == ["a-0"]
    bench.advance(31)
    assert bench.names() == []
    bench.advance(31)
    assert bench.order == ["a", "b"]


def test_a_deletion_that_is_refused_is_asked_for_again() -> None:
    bench = running(900)
    bench.refuse("DeleteStray", FORBIDDEN)
    gone(bench)
    bench.settle()
    assert bench.names() == ["a-0"]
    bench.advance(61)
    assert bench.order == ["a", "b"]


def test_what_a_teardown_could_not_delete_is_deleted_with_the_appwrapper() -> None:
    bench = running(900)
    bench.refuse("DeleteItem", FORBIDDEN)
    bench.edit("uid-a", suspended=True)
    bench.decide()
    while bench.entry("a").phase is not Phase.DELETING:
        bench.execute(bench.pending.pop(0))
    bench.execute(bench.pending.pop(0))
    gone(bench)
    bench.settle()

    assert bench.order == ["a", "b"]


# -- after a restart -----------------------------------------------------------------------------


JOB = ObjectRef("batch", "v1", "jobs", "Job", "default", "lost")


def wanting(pods: int, ref: ObjectRef = JOB, **changes: Any) -> Child:
    """An object whose AppWrapper nobody knows: it wants so many pods of 300m."""
    one = PodSet(0, 0, "spec.template", pods, cpu(300, 1))
    child = Child(f"obj-{ref.name}", ref, "uid-lost", 3, 0, wants=(pods,), sets=(one,))
    return replace(child, **changes)


def pod_of_lost(name: str, **changes: Any) -> Pod:
    pod = Pod(f"pod-{name}", "default", name, "n1", PodPhase.RUNNING, cpu(300, 1))
    return replace(pod, **{"workload": "uid-lost", "item": 0, "index": 0, "attempt": 3} | changes)


def room(bench: Bench) -> int:
    """What may still be given away, in milli-CPU."""
    bench.decide()
    bench.dispatcher.world.capacity.check()
    return dict(bench.dispatcher.world.capacity.report.sums().free).get("cpu", 0)


def restarted(*children: Child) -> Bench:
    """A dispatcher that begins with these objects, on a node of 1000m."""
    bench = Bench(nodes=[node(milli=1000)])
    for child in children:
        bench.feed(ChildSeen(child))
    return bench


def test_what_was_deleted_while_nobody_looked_holds_room_for_what_its_objects_want() -> None:
    bench = restarted(wanting(3))
    assert room(bench) == 100

    bench.feed(PodSeen(pod_of_lost("1")))  # a pod that comes takes what is reserved for it
    assert room(bench) == 100
    bench.feed(PodSeen(pod_of_lost("1", terminating=True)))  # it goes, and may be replaced
    bench.feed(PodGone("pod-1"))
    assert room(bench) == 100
    bench.feed(ChildSeen(wanting(2)))
    assert room(bench) == 400
    bench.feed(ChildGone("obj-lost"))
    assert room(bench) == 1000
    assert bench.dispatcher.world.entries == {}


def test_pods_of_its_that_run_already_are_not_counted_twice() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    for name in "123":
        bench.feed(PodSeen(pod_of_lost(name)))
    bench.feed(ChildSeen(wanting(3)))
    assert room(bench) == 100


def test_what_is_first_seen_after_the_barrier_holds_room_too() -> None:
    bench = restarted()
    assert room(bench) == 1000
    bench.feed(ChildSeen(wanting(1)))
    assert room(bench) == 700
    second = wanting(1, replace(JOB, name="second"), item=1)
    second = replace(second, sets=(replace(second.sets[0], item=1),))
    bench.feed(ChildSeen(second))
    assert room(bench) == 400
    bench.feed(ChildGone("obj-lost"))
    assert room(bench) == 700


def test_nobody_is_dispatched_into_that_room() -> None:
    bench = restarted(wanting(3))
    bench.submit(workload("b", 900))
    bench.settle()
    assert bench.order == []
    bench.feed(ChildGone("obj-lost"))
    bench.settle()
    assert bench.order == ["b"]


def test_it_is_not_deleted_by_us() -> None:
    """That we do not know an AppWrapper does not prove that there is none."""
    bench = restarted(wanting(3))
    bench.settle()
    bench.advance(60)
    assert not [one for one in bench.pending if isinstance(one, DeleteStray)]


def test_nothing_is_held_beyond_the_grace_whatever_is_seen_of_it() -> None:
    bench = restarted(wanting(3))
    bench.things[JOB] = Thing(wanting(3), cpu(300, 1))
    assert room(bench) == 100
    bench.advance(601)
    assert room(bench) == 1000
    bench.feed(ChildSeen(wanting(3, terminating=True)))
    assert room(bench) == 1000
    world = bench.dispatcher.world
    assert list(world.abandoned) == ["uid-lost"]
    bench.feed(ChildGone("obj-lost"))
    assert list(world.abandoned) == []
    assert world.entries == {}


def test_an_object_without_our_labels_holds_nothing() -> None:
    assert room(restarted(wanting(3, labelled=False))) == 1000


def test_an_appwrapper_that_is_told_of_after_its_objects_is_taken_up() -> None:
    """Another leader made it, and each watch has its own pace."""
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 900)
    ref = work.items[0].ref
    child = Child("obj-1", ref, "uid-a", 1, 0, wants=(1,))
    bench.feed(ChildSeen(replace(child, sets=(replace(work.sets[0], replicas=1),))))
    assert room(bench) == 100
    bench.things[ref] = Thing(child, cpu(900, 1))
    record = DispatchRecord(1, 5, DispatchPhase.DISPATCHED, work.payload, (ref,), START, START)
    bench.submit(replace(work, persisted=Persisted("Running", START, dispatch=record)))
    bench.observe(ref)
    bench.settle()

    assert bench.entry("a").phase is Phase.RUNNING
    assert room(bench) == 100
    assert bench.names() == ["a-0"]


def test_pods_of_a_deleted_one_that_do_not_go_are_deleted_by_force() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    forced = FaultTolerance(forceful_deletion_grace=300 * SECOND)
    bench.submit(workload("a", 900, tolerance=forced), workload("b", 900))
    bench.settle()
    bench.stubborn.add("a-0")
    gone(bench)
    bench.advance(295)
    assert (bench.writes["force"], bench.order) == (0, ["a"])
    bench.advance(40)
    assert (bench.writes["force"], bench.order) == (1, ["a", "b"])


def test_what_is_meant_to_stay_is_not_forced() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    forced = FaultTolerance(forceful_deletion_grace=60 * SECOND)
    bench.submit(workload("a", 900, tolerance=forced))
    bench.settle()
    bench.edit("uid-a", deleting=True, cascade=Cascade.ORPHAN)
    gone(bench)
    bench.advance(2000)
    assert (bench.writes["force"], bench.names()) == (0, ["a-0"])
