"""Pods that are wanted and do not come (C4), or find no node (C6): every wait has an end."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from mcad.core.events import ChildSeen, PodGone, PodSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Cascade, Dialect, DispatchPhase, PodPhase, Wanted, Workload
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload
from tests.core.builders import pod

TIMEOUT_S = 300  # dispatchResourceReservationTimeout, by default


def half_told(name: str, milli: int) -> Workload:
    """Two pods by declaration: a bare Pod, and one that a controller has to create."""
    work = workload(name, milli)
    other = replace(work.sets[0], index=1, path="", counts_pods=True)
    return replace(work, sets=(*work.sets, other))


def warnings(bench: Bench) -> list[str]:
    """What was told about pods that did not come."""
    return [event.note for event in bench.events if event.reason == "PodsNotAttributed"]


def running(work: Workload) -> Bench:
    """It runs on a node of 1000 millis, its bare pods bound."""
    bench = Bench(nodes=[node(milli=1000)]).start(work)
    for item in work.items:
        bench.bind(item.ref.name)
    bench.settle()
    return bench


def test_c4_pods_that_are_not_created_are_given_up_after_a_while() -> None:
    bench = running(half_told("a", 400))
    bench.start(workload("b", 500))
    bench.advance(TIMEOUT_S - 1)
    assert bench.order == ["a"]
    bench.advance(2)
    assert bench.order == ["a", "b"]
    assert len(warnings(bench)) == 1
    assert warnings(bench)[0].startswith("1 pod that is wanted did not appear within 300 s;")


def test_c4_a_deleted_appwrapper_waits_for_no_pods() -> None:
    """Its time would ring again and again: what is frozen is not given up."""
    bench = running(half_told("a", 400))
    bench.stubborn.add("a-0")
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.advance(2 * TIMEOUT_S)
    assert warnings(bench) == []


def vanish(bench: Bench, name: str) -> None:
    """The pod of an item is gone, and its controller still wants it."""
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


def test_c4_more_may_come_while_pods_appear() -> None:
    """One of two never comes, the other comes and goes: each time the wait begins anew."""
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 300)
    bench.start(replace(work, sets=(replace(work.sets[0], replicas=2),)))
    child = bench.things[work.items[0].ref].child
    for _ in range(4):
        bench.bind("a-0")
        bench.feed(ChildSeen(replace(child, wants=(Wanted(2),))))
        bench.advance(TIMEOUT_S - 20)
        vanish(bench, "a-0")
        bench.advance(10)
    bench.bind("a-0")
    bench.feed(ChildSeen(replace(child, wants=(Wanted(2),))))
    bench.advance(TIMEOUT_S - 1)
    assert warnings(bench) == []
    bench.advance(2)
    assert len(warnings(bench)) == 1
    assert bench.dispatcher.cluster.capacity.gangs.outstanding("uid-a") == (0,)


@pytest.mark.parametrize("down_s", [0, TIMEOUT_S, 7 * 24 * 3600])
def test_c4_a_restart_does_not_free_the_room_of_what_a_live_object_still_wants(down_s: int) -> None:
    bench = running(workload("a", 600))
    bench.start(workload("b", 600))
    bench.advance(TIMEOUT_S + 10)
    bench.change("a-0", node="")  # evicted as the dispatcher went down; its successor is pending
    ref = bench.works["uid-a"].items[0].ref
    bench.now += down_s * 1_000_000
    bench.crash()
    vanish(bench, ref.name)
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


# -- placement (C6) ------------------------------------------------------------------------------


def unplaced(*milli: int, **changes: object) -> Bench:
    """It runs, and its bare pods have no node."""
    return Bench(Settings(), nodes=[node(milli=1000)]).start(workload("a", *milli, **changes))


def requeued(bench: Bench) -> tuple[int, int]:
    """(requeueings, attempt) on record."""
    status = bench.status["uid-a"]
    return status.requeueings, status.dispatch.attempt


def test_c6_pods_that_find_no_node_are_taken_back_and_queue_again_after_a_pause() -> None:
    bench = unplaced(100, 100, 100, 100, 100)
    bench.bind("a-0")
    bench.advance(TIMEOUT_S - 1)
    assert bench.state("a") == "Running"
    bench.advance(2)
    told = "Without a node for 300 s: a-1, a-2, a-3 and 1 more."
    assert bench.state("a") == "Pending"
    assert bench.condition("a", "Dispatched") == (False, "PlacementTimeout", told)
    assert bench.condition("a", "Backoff") == (True, "PlacementBackoff", told)
    assert [event.note for event in bench.events if event.reason == "TakenBack"] == [told]
    assert (bench.names(), requeued(bench)) == ([], (1, 1))
    bench.advance(10)
    assert (bench.state("a"), requeued(bench)) == ("Running", (1, 2))


def test_c6_the_pause_grows_with_every_requeue() -> None:
    bench = unplaced(100)
    dispatched: list[int] = []
    for _ in range(4):
        dispatched.append(bench.now)
        attempt = bench.entry("a").attempt
        while bench.entry("a").attempt == attempt:
            bench.advance(1)
    gaps = [(b - a) // SECOND - TIMEOUT_S for a, b in pairwise([*dispatched, bench.now])]
    assert gaps == [10, 20, 40, 80]


def test_c6_a_pod_that_is_bound_in_time_loses_nothing() -> None:
    bench = unplaced(100, 100)
    for name in ("a-0", "a-1"):
        bench.advance(140)
        bench.bind(name)
    bench.advance(10 * TIMEOUT_S)
    assert (bench.state("a"), requeued(bench)) == ("Running", (0, 1))


@pytest.mark.parametrize("restart", [False, True])
def test_c6_a_successor_without_a_node_ends_nothing(*, restart: bool) -> None:
    """All declared pods have had nodes: placement is judged once."""
    bench = unplaced(100)
    bench.bind("a-0")
    bench.advance(60)
    bench.change("a-0", node="", phase=PodPhase.PENDING, created=bench.now)
    if restart:
        bench.crash()
    bench.advance(10 * TIMEOUT_S)
    assert (bench.state("a"), requeued(bench)) == ("Running", (0, 1))


@pytest.mark.parametrize(("down_s", "left_s"), [(10, 190), (199, 1), (400, 0), (7 * 24 * 3600, 0)])
def test_c6_the_time_goes_on_without_a_dispatcher(down_s: int, left_s: int) -> None:
    """P15: from the confirmation on record, and never before the restart."""
    bench = unplaced(100)
    bench.advance(100)
    bench.now += (down_s - 1) * SECOND
    bench.restart()
    if left_s > 1:
        bench.advance(left_s - 1)
        assert requeued(bench) == (0, 1)
    bench.advance(2)
    assert requeued(bench)[0] == 1


def half_made() -> Bench:
    """An object wants two pods, and one exists: a quota keeps the other from being made."""
    settings = Settings(reservation_timeout=100 * TIMEOUT_S * SECOND)
    bench = Bench(settings, nodes=[node(milli=1000)])
    work = workload("a", 100)
    bench.start(replace(work, sets=(replace(work.sets[0], replicas=2),)))
    bench.bind("a-0")
    child = bench.things[work.items[0].ref].child
    bench.feed(ChildSeen(replace(child, wants=(Wanted(2),))))
    bench.settle()
    return bench


def test_c6_pods_that_never_come_into_being_are_not_waited_for_without_end() -> None:
    bench = half_made()
    bench.advance(TIMEOUT_S + 1)
    told = "Not created: 1 pods of Pod default/a-0."
    assert bench.condition("a", "Dispatched") == (False, "PlacementTimeout", told)


def test_c6_pods_that_are_lost_later_may_take_their_time_to_be_replaced() -> None:
    """A Job repeats what failed after minutes."""
    bench = half_made()
    [root] = {thing.child.uid for thing in bench.things.values()}
    other = pod("b-0", "n1", of="uid-a", item=0, index=0, attempt=1, root=root)
    bench.feed(PodSeen(other))
    bench.settle()
    bench.feed(PodGone("b-0"))
    bench.advance(10 * TIMEOUT_S)
    assert (bench.state("a"), requeued(bench)) == ("Running", (0, 1))


def test_c6_pods_of_unknown_number_are_not_missed() -> None:
    """They may run and not be attributed; only their room ends (C4)."""
    bench = Bench(Settings(), nodes=[node(milli=1000)]).start(half_told("a", 100))
    bench.bind("a-0")
    bench.advance(10 * TIMEOUT_S)
    assert (bench.state("a"), requeued(bench)) == ("Running", (0, 1))


def test_c6_never_is_a_time_too() -> None:
    bench = Bench(replace(Settings(), placement_timeout=0), nodes=[node(milli=1000)])
    bench.start(workload("a", 100))
    bench.advance(100 * TIMEOUT_S)
    assert (bench.state("a"), requeued(bench)) == ("Running", (0, 1))


def test_c6_what_is_being_deleted_is_not_taken_back() -> None:
    bench = unplaced(100)
    bench.edit("uid-a", deleting=True)
    bench.advance(2 * TIMEOUT_S)
    assert bench.entry("a").phase is Phase.RUNNING


@pytest.mark.parametrize("dialect", list(Dialect))
def test_v1beta2_waits_for_nodes_by_its_own_graces(dialect: Dialect) -> None:
    """Its warm-up grace is longer than the placement time-out here, so it runs on."""
    patient = replace(FaultTolerance(), warmup_grace=10 * TIMEOUT_S * SECOND)
    bench = unplaced(100, dialect=dialect, tolerance=patient)

    bench.advance(2 * TIMEOUT_S)

    taken_back = dialect is Dialect.V1BETA1
    assert (bench.status["uid-a"].dispatch.attempt > 1) == taken_back
