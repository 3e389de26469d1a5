"""Pods that are wanted and do not come (C4): every wait begins when the need does, and ends."""

from dataclasses import replace

import pytest

from mcad.core.events import ChildSeen, PodGone
from mcad.core.model import DispatchPhase, Workload
from tests.core.bench import Bench, node, workload

TIMEOUT_S = 300  # dispatchResourceReservationTimeout, by default


def half_told(name: str, milli: int) -> Workload:
    """Two pods by declaration: a bare Pod, and one that somebody else has to make."""
    work = workload(name, milli)
    other = replace(work.sets[0], index=1, path="", counts_pods=True)
    return replace(work, sets=(*work.sets, other))


def warnings(bench: Bench) -> list[str]:
    """What was told about pods that did not come."""
    return [event.note for event in bench.events if event.reason == "PodsNotAttributed"]


def running(work: Workload) -> Bench:
    """It runs on a node of 1000 millis, its bare pods bound."""
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(work)
    bench.settle()
    for item in work.items:
        bench.bind(item.ref.name)
    bench.settle()
    return bench


def test_c4_what_nobody_makes_is_given_up_after_a_while() -> None:
    bench = running(half_told("a", 400))
    bench.submit(workload("b", 500))
    bench.settle()
    bench.advance(TIMEOUT_S - 1)
    assert bench.order == ["a"]
    bench.advance(2)
    assert bench.order == ["a", "b"]
    assert len(warnings(bench)) == 1
    assert warnings(bench)[0].startswith("1 pod that is wanted did not appear within 300 s;")


def vanish(bench: Bench, name: str) -> None:
    """The pod of an item is gone, while whoever made it still wants it."""
    work = bench.works["uid-a"]
    ref = next(item.ref for item in work.items if item.ref.name == name)
    thing = bench.things[ref]
    bench.feed(PodGone(thing.child.uid))
    bench.settle()


def test_c4_a_pod_that_vanishes_later_is_not_reserved_for_ever() -> None:
    bench = running(workload("a", 600))
    bench.submit(workload("b", 600))
    bench.advance(2 * TIMEOUT_S)
    vanish(bench, "a-0")
    bench.advance(TIMEOUT_S - 1)
    assert bench.order == ["a"], "its successor is on its way"
    bench.advance(2)
    assert bench.order == ["a", "b"]
    assert len(warnings(bench)) == 1


def test_c4_a_pod_that_comes_back_in_time_keeps_its_room() -> None:
    bench = running(workload("a", 600))
    bench.submit(workload("b", 600))
    for _ in range(5):
        vanish(bench, "a-0")
        bench.advance(TIMEOUT_S - 1)
        bench.bind("a-0")
        bench.settle()
    bench.advance(2 * TIMEOUT_S)
    assert (bench.order, warnings(bench)) == (["a"], [])
    assert bench.wishes == [] or min(bench.wishes) > bench.now


def test_c4_what_was_missing_all_along_is_given_up_whatever_the_others_do() -> None:
    """One of two never comes, the other comes and goes: the wait for the first goes on."""
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 300)
    bench.submit(replace(work, sets=(replace(work.sets[0], replicas=2),)))
    bench.settle()
    child = bench.things[work.items[0].ref].child
    for _ in range(4):
        bench.bind("a-0")
        bench.feed(ChildSeen(replace(child, wants=(2,))))
        bench.settle()
        bench.advance(50)
        vanish(bench, "a-0")
        bench.advance(10)
    bench.bind("a-0")
    bench.feed(ChildSeen(replace(child, wants=(2,))))
    bench.advance(TIMEOUT_S - 4 * 60 + 1)
    assert len(warnings(bench)) == 1
    assert bench.dispatcher.world.capacity.outstanding("uid-a") == (0,)


@pytest.mark.parametrize("down_s", [0, TIMEOUT_S, 7 * 24 * 3600])
def test_c4_a_restart_does_not_free_the_room_of_what_a_live_object_still_wants(down_s: int) -> None:
    bench = running(workload("a", 600))
    bench.submit(workload("b", 600))
    bench.settle()
    bench.advance(TIMEOUT_S + 10)
    bench.change("a-0", node="")  # evicted as the dispatcher went down; its successor is pending
    ref = bench.works["uid-a"].items[0].ref
    bench.now += down_s * 1_000_000
    bench.crash()
    vanish(bench, ref.name)
    bench.settle()
    bench.advance(TIMEOUT_S - 2)
    assert bench.order == ["a"]
    bench.advance(4)
    assert bench.order == ["a", "b"]


def test_c4_a_teardown_waits_for_what_it_reserves_and_gives_nothing_up() -> None:
    bench = running(half_told("a", 400))
    bench.edit("uid-a", suspended=True)
    bench.decide()
    bench.execute(bench.pending.pop(0))
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.UNDEPLOYING
    bench.pending.clear()  # deletions hang
    bench.submit(workload("b", 500))
    bench.now += 2 * TIMEOUT_S * 1_000_000
    bench.decide()
    assert bench.order == ["a"]
    assert warnings(bench) == []
