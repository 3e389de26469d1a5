"""Deleted AppWrappers: what they leave is deleted at once, unless it is meant to stay (P9)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.attempts.teardown import stuck_teardowns
from mcad.core.commands import CreateItem, DeleteStray
from mcad.core.events import AppWrapperGone, ChildGone, NodeGone, NodeSeen, PodGone, PodSeen
from mcad.core.state.answer import Answer
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Cascade, PodPhase
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload
from tests.core.quotas import GOLD, child, subtree

FORBIDDEN = Answer(403, "Forbidden", "no")


def gone(bench: Bench, uid: str = "uid-a") -> None:
    """An AppWrapper is deleted, and no garbage collector runs."""
    del bench.works[uid]
    bench.status.pop(uid, None)
    bench.feed(AppWrapperGone(uid))


def running(*milli: int) -> Bench:
    """``a`` runs, ``b`` waits for its room."""
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", *milli), workload("b", 900))
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
    bench.edit("uid-a", deleting=True)  # a finalizer keeps it
    bench.settle()
    assert bench.names() == ["a-0"]
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.settle()
    assert bench.names() == []


def test_foreground_deletion_that_began_without_a_dispatcher() -> None:
    bench = running(900)
    bench.works["uid-a"] = replace(bench.works["uid-a"], deleting=True, cascade=Cascade.FOREGROUND)
    bench.restart()
    assert bench.names() == []


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_finished_leaves_nothing_either(restarts: bool) -> None:
    bench = Bench(nodes=[node()])
    work = workload("a", 900)
    bench.start(replace(work, items=(replace(work.items[0], completion=("succeeded",)),)))
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert bench.state("a") == "Completed"
    if restarts:
        bench.restart()
    gone(bench)
    bench.settle()
    assert bench.names() == []
    assert "uid-a" not in bench.dispatcher.cluster.entries


def test_a_create_under_way_is_swept_when_it_is_committed() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.begin(workload("a", 900))
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
    assert "uid-a" not in bench.dispatcher.cluster.entries


def test_what_no_watch_has_told_of_is_deleted_when_it_is_found() -> None:
    bench = running(900)
    cluster = bench.dispatcher.cluster
    (child,) = list(cluster.objects.by_uid.values())
    cluster.objects.drop(child.uid)  # as if the watch had never told
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


def test_pods_of_a_deleted_one_that_do_not_go_are_deleted_by_force() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    forced = FaultTolerance(forceful_deletion_grace=300 * SECOND)
    bench.start(workload("a", 900, tolerance=forced), workload("b", 900))
    bench.stubborn.add("a-0")
    gone(bench)
    bench.advance(295)
    assert (bench.writes["force"], bench.order) == (0, ["a"])
    bench.advance(40)
    assert (bench.writes["force"], bench.order) == (1, ["a", "b"])


def test_what_is_meant_to_stay_is_not_forced() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    forced = FaultTolerance(forceful_deletion_grace=60 * SECOND)
    bench.start(workload("a", 900, tolerance=forced))
    bench.edit("uid-a", deleting=True, cascade=Cascade.ORPHAN)
    gone(bench)
    bench.advance(2000)
    assert (bench.writes["force"], bench.names()) == (0, ["a-0"])


def outlived() -> Bench:
    """``a`` has the whole hard share of its team, and its pods outlive their objects; ``b`` waits
    for the share, with room enough on the node."""
    bench = Bench(nodes=[node(milli=10_000)])
    team = child("red", hard=True, cpu=1000)
    bench.share(subtree("root", child("root", cpu=9000)), subtree("team", team, parent="root"))
    bench.outliving = True
    works = (workload("a", 500, 500), workload("b", 900))
    bench.start(*(replace(one, quota=((GOLD, "red"),)) for one in works))
    bench.bind("a-0").bind("a-1").settle()
    assert bench.order == ["a"]
    return bench


def objects_go(bench: Bench) -> None:
    for ref in [ref for ref in bench.things if ref.name.startswith("a-")]:
        bench.remove(ref)


def shown(bench: Bench) -> dict[str, int]:
    """What the QuotaSubtree of the team shows as used."""
    (child,) = bench.quota_status[f"uid-{GOLD}-team"].children
    return dict(child.allocated)


@pytest.mark.parametrize("order", ["appwrapper first", "objects first", "swept"])
def test_its_share_is_held_until_its_pods_are_gone(order: str) -> None:
    bench = outlived()
    if order == "objects first":
        objects_go(bench)
    gone(bench)
    if order == "appwrapper first":
        objects_go(bench)
    bench.advance(60)
    assert shown(bench) == {"cpu": 1000}
    bench.advance(2000)
    assert bench.order == ["a"]
    assert not [ref for ref in bench.things if ref.name.startswith("a-")]
    first, last = list(bench.left)
    bench.end_pod(first)
    bench.advance(31)
    assert bench.order == ["a"]
    bench.end_pod(last)
    bench.settle()
    assert bench.order == ["a", "b"]
    assert "uid-a" not in bench.dispatcher.cluster.entries


def test_pods_that_have_ended_or_are_on_no_node_hold_no_share() -> None:
    bench = outlived()
    gone(bench)
    objects_go(bench)
    pods = [bench.dispatcher.cluster.capacity.pods.get(uid) for uid in bench.left]
    bench.feed(PodSeen(replace(pods[0], phase=PodPhase.FAILED)))
    bench.advance(2000)
    assert bench.order == ["a"]
    bench.feed(NodeGone("n1"))
    bench.feed(NodeSeen(node("n2", 10_000)))
    bench.advance(31)
    assert bench.order == ["a", "b"]


def test_the_last_pod_that_ends_gives_the_share_back() -> None:
    bench = outlived()
    gone(bench)
    objects_go(bench)
    for uid in bench.left:
        pod = bench.dispatcher.cluster.capacity.pods.get(uid)
        bench.feed(PodSeen(replace(pod, phase=PodPhase.SUCCEEDED)))
    bench.settle()
    assert bench.order == ["a", "b"]


def test_a_pod_that_outlives_its_appwrapper_is_reported_once() -> None:
    bench = outlived()
    gone(bench)
    objects_go(bench)
    bench.advance(3000)
    told = [one.note for one in bench.events if "outlives its AppWrapper" in one.note]
    assert len(told) == 1
    assert told[0].startswith("Pod default/a-0 outlives its AppWrapper")
    assert stuck_teardowns(bench.dispatcher.cluster) == {"Pod": 1}


def test_pods_that_nothing_deletes_hold_the_share_for_the_grace_only() -> None:
    """A client has orphaned them, and no dispatcher saw that."""
    bench = outlived()
    gone(bench)
    objects_go(bench)
    for uid in bench.left:
        pod = bench.dispatcher.cluster.capacity.pods.get(uid)
        bench.feed(PodSeen(replace(pod, terminating=False)))
    bench.advance(590)
    assert bench.order == ["a"]
    bench.advance(50)
    assert bench.order == ["a", "b"]


def test_a_pod_without_a_node_holds_the_share_until_it_is_collected() -> None:
    bench = Bench(nodes=[node(milli=1000)]).start(workload("a", 900), workload("b", 900))
    gone(bench)
    (ref,) = bench.things
    uid = bench.things.pop(ref).child.uid
    bench.feed(ChildGone(uid))
    bench.advance(60)
    assert bench.order == ["a"]
    bench.feed(PodGone(uid))
    bench.settle()
    assert bench.order == ["a", "b"]


def test_pods_that_are_meant_to_stay_hold_no_share() -> None:
    bench = outlived()
    bench.edit("uid-a", deleting=True, cascade=Cascade.ORPHAN)
    gone(bench)
    objects_go(bench)  # they are no longer its own
    bench.settle()
    assert bench.order == ["a", "b"]
