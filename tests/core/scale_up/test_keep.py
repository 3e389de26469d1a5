"""What becomes of a request: failures, withdrawals, refusals, and a new leader."""

import dataclasses
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mcad.core.answers.dry_run import DryRun, Facts
from mcad.core.answers.why import why
from mcad.core.commands import WithdrawScaleUp
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import AppWrapperSeen, NodeSeen, PodSeen, ScaleUpGone, ScaleUpServed
from mcad.core.state.answer import Answer
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.model import Pod, PodPhase
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.units import SECOND
from mcad.journal.restart import present
from tests.core.bench import PATIENT, Bench, cpu, node, workload

GROWS = replace(PATIENT, scale_up=True)


def _asks(*nodes: int, **changes: object) -> Bench:
    """A gang of two pods that has asked for nodes."""
    bench = Bench(GROWS, [node(f"n{at}", milli) for at, milli in enumerate(nodes)])
    bench.start(workload("a", 1000, 1000, **changes))
    bench.advance(2)
    assert [(one.uid, one.attempt) for one in bench.asked] == [("uid-a", 1)]
    return bench


def _ended(bench: Bench) -> list[str]:
    notes = (one.note for one in bench.events if one.reason == "ReservationEnded")
    return [one.removeprefix("Room is not kept for it any more. ") for one in notes]


@pytest.mark.parametrize("state", [ScaleUpState.FAILED, ScaleUpState.REVOKED])
def test_a_request_that_failed_ends_with_the_words_of_the_autoscaler(state: ScaleUpState) -> None:
    bench = _asks()
    bench.autoscale("a", state, "out of stock")
    bench.advance(2)
    assert _ended(bench) == [f"ProvisioningRequest default/uid-a-1: {state}: out of stock."]
    assert not bench.scale_ups
    bench.advance(20)
    assert len(bench.asked) == 1
    bench.advance(30)
    assert len(bench.asked) == 2  # the same attempt asks again after a pause


def test_each_failure_makes_the_pause_longer() -> None:
    bench = _asks()
    begun = bench.now
    while len(bench.asked) < 6:
        if bench.scale_ups:
            bench.autoscale("a", ScaleUpState.FAILED)
        bench.advance(1)
    assert (30 + 60 + 120 + 240 + 480) * SECOND < bench.now - begun < 1000 * SECOND


@pytest.mark.parametrize(("failures", "passed", "left"), [(1, 10, 20), (3, 70, 50)])
def test_a_new_leader_goes_on_with_the_pause_after_a_failure(
    failures: int, passed: int, left: int
) -> None:
    bench = _asks()
    for number in range(1, failures + 1):
        while len(bench.asked) < number:
            bench.advance(1)
        bench.autoscale("a", ScaleUpState.FAILED, "out of stock")
        bench.decide()
    bench.advance(passed)
    bench.restart()
    bench.advance(left - 3)
    assert len(bench.asked) == failures
    bench.advance(30)
    assert len(bench.asked) == failures + 1
    bench.autoscale("a", ScaleUpState.FAILED)
    bench.advance(passed + left)
    assert len(bench.asked) == failures + 1  # the pause has grown


def test_a_new_leader_does_not_ask_at_once_for_nodes_that_did_not_come_in_time() -> None:
    bench = _asks()
    bench.advance(1000)
    assert _ended(bench) == ["The nodes that it asked for did not come in time."]
    bench.restart()
    bench.advance(2000)
    assert len(bench.asked) == 1
    bench.advance(700)
    assert len(bench.asked) == 2


def test_a_new_leader_asks_at_once_where_the_last_request_was_withdrawn() -> None:
    bench = _asks()
    bench.edit("uid-a", suspended=True).advance(2)
    bench.edit("uid-a", suspended=False).restart()
    bench.advance(2)
    assert len(bench.asked) == 2


def test_nodes_that_do_not_come_in_time_are_not_waited_for() -> None:
    bench = _asks(1000)
    bench.start(workload("b", 1000))
    bench.advance(890)
    assert not bench.order
    bench.advance(20)
    assert _ended(bench) == ["The nodes that it asked for did not come in time."]
    assert bench.order == ["b"]  # the node that was kept is free for the next
    assert [key for key in bench.scale_ups if key[0] == "uid-a"] == []
    bench.advance(2000)
    assert [one.uid for one in bench.asked].count("uid-a") == 1  # three times as long as before


def _edit(bench: Bench) -> None:
    bench.edit("uid-a", sets=workload("a", 1000, 2000).sets, payload="other")


def _suspend(bench: Bench) -> None:
    bench.edit("uid-a", suspended=True)


def _delete(bench: Bench) -> None:
    bench.delete("uid-a")


def _pause(bench: Bench) -> None:
    bench.pause(DispatchPause("uid-p", "p"))


def _prefer(bench: Bench) -> None:
    bench.start(workload("b", 1000, priority=1))


def _release(bench: Bench) -> None:
    bench.add_node(node("other", 3000))


@pytest.mark.parametrize("end", [_edit, _suspend, _delete, _pause, _prefer, _release])
def test_a_request_that_nothing_waits_for_is_withdrawn(end: Callable[[Bench], None]) -> None:
    bench = _asks(1000)
    bench.scale_ups = {key: replace(one, object="first") for key, one in bench.scale_ups.items()}
    end(bench)
    bench.advance(25)
    assert "first" not in [one.object for one in bench.scale_ups.values()]


def test_a_new_leader_goes_on_with_the_request_and_the_places() -> None:
    bench = _asks(1000)
    since = bench.entry("a").reserved.since
    bench.start(workload("b", 1000))
    bench.restart()
    bench.advance(2)
    assert [one.uid for one in bench.asked] == ["uid-a", "uid-b"]
    assert bench.entry("a").reserved.since == since
    assert bench.entry("a").reserved.nodes == ("n0",)
    bench.add_node(node("new", 1000))
    bench.advance(2)
    assert bench.order == ["a"]
    bench.advance(2)
    assert [key[0] for key in bench.scale_ups] == ["uid-b"]


def test_a_new_leader_asks_again_for_what_the_former_did_not_create() -> None:
    bench = Bench(GROWS)
    bench.submit(workload("a", 1000))
    while not bench.asked and bench.status.get("uid-a") is None:
        bench.advance(1)
    bench.scale_ups.clear()
    bench.restart()
    bench.advance(2)
    assert ("uid-a", 1) in bench.scale_ups


def test_a_new_leader_withdraws_a_request_without_a_reservation() -> None:
    bench = _asks()
    bench.scale_ups["uid-gone", 3] = replace(bench.scale_ups["uid-a", 1], uid="uid-gone", attempt=3)
    bench.restart()
    bench.advance(2)
    assert list(bench.scale_ups) == [("uid-a", 1)]


def test_a_leader_that_may_not_ask_drops_the_reservation() -> None:
    bench = _asks(1000)
    bench.settings = PATIENT
    bench.restart()
    bench.advance(2)
    assert bench.status["uid-a"].reservation is None
    bench.start(workload("b", 1000))
    assert bench.order == ["b"]


def test_a_refused_request_is_repeated_and_a_lasting_refusal_is_a_failure() -> None:
    bench = Bench(GROWS)
    bench.refuse("RequestScaleUp", Answer(503, "ServiceUnavailable", "busy"))
    bench.start(workload("a", 1000))
    bench.advance(5)
    assert len(bench.scale_ups) == 1
    bench = Bench(GROWS)
    bench.refuse("RequestScaleUp", *([Answer(403, "Forbidden", "no right to create")] * 4))
    bench.start(workload("a", 1000))
    bench.advance(60)
    assert _ended(bench) == ["The request: Failed: no right to create."]


def test_a_booking_that_expired_is_renewed() -> None:
    bench = _asks()
    bench.autoscale("a", ScaleUpState.EXPIRED)
    bench.decide()
    assert bench.pending == [WithdrawScaleUp("uid-a", 1)]
    bench.advance(2)
    assert len(bench.asked) == 2
    assert bench.entry("a").reservation is not None
    assert not _ended(bench)


def test_a_request_that_a_user_deletes_is_made_again() -> None:
    bench = _asks()
    bench.scale_ups.clear()
    bench.feed(ScaleUpGone("uid-a", 1))
    bench.advance(1)
    assert len(bench.asked) == 2


def test_a_request_that_the_pods_name_stays_until_they_are_bound() -> None:
    bench = Bench(GROWS, names_requests=True)
    bench.start(workload("a", 1000, 1000))
    bench.advance(2)
    bench.add_node(node("new", 2000))
    bench.advance(2)
    assert bench.names() == ["a-0", "a-1"]
    bench.bind("a-0", "new").advance(2)
    assert bench.scale_ups
    bench.bind("a-1", "new").advance(30)
    assert not bench.scale_ups


def test_a_place_that_another_pod_takes_is_found_again_elsewhere_or_waited_for() -> None:
    bench = _asks(1000)
    bench.feed(PodSeen(Pod("p", "x", "p", "n0", PodPhase.RUNNING, cpu(1000, 1))))
    bench.advance(3)
    assert bench.entry("a").reserved.nodes == ()
    bench.add_node(node("new-1", 1000))
    bench.advance(2)
    assert bench.entry("a").reserved.nodes == ("new-1",)
    bench.remove_node("new-1")
    bench.advance(2)
    assert bench.entry("a").reserved.nodes == ()
    bench.add_node(node("new-2", 1000), node("new-3", 1000))
    bench.advance(2)
    assert bench.order == ["a"]
    assert len(bench.asked) == 1


def test_what_it_is_told_of_a_request_at_the_intent_is_not_forgotten() -> None:
    bench = _asks(1000)
    bench.add_node(node("new", 1000))
    bench.refuse("WriteStatus", Answer(409, "Conflict", "changed"))
    bench.advance(5)
    assert bench.order == ["a"]
    assert not bench.scale_ups


def test_a_request_is_made_anew_if_more_pods_lack_a_place_for_some_time() -> None:
    bench = _asks(1000)
    bench.remove_node("n0")
    bench.advance(20)
    assert len(bench.asked) == 1
    bench.advance(20)
    assert len(bench.asked) == 2
    (request,) = bench.dispatcher.cluster.scale_ups
    assert request.lacking == ((0, 0, 1), (1, 0, 1))
    assert not _ended(bench)


def test_a_request_is_made_anew_if_the_nodes_that_were_ordered_are_not_enough() -> None:
    bench = _asks(1000)
    bench.autoscale("a", ScaleUpState.PROVISIONED)
    bench.advance(235)
    assert len(bench.asked) == 1
    bench.advance(10)
    assert len(bench.asked) == 2
    assert [one.state for one in bench.scale_ups.values()] == [ScaleUpState.ASKED]
    assert bench.entry("a").reserved.nodes == ("n0",)


def test_nodes_take_as_long_as_from_the_request_that_brought_them() -> None:
    bench = _asks(1000)
    bench.autoscale("a", ScaleUpState.PROVISIONED)
    bench.advance(245)  # nothing comes, and it asks anew
    assert len(bench.asked) == 2
    bench.autoscale("a", ScaleUpState.PROVISIONED)
    bench.advance(20)
    bench.add_node(node("n1", 1000))
    bench.advance(2)
    assert bench.order == ["a"]
    assert bench.dispatcher.cluster.scale_ups.usual < 30 * SECOND


def _beside_one_in_flight() -> Bench:
    """A gang that needs two whole nodes has them, and a smaller pod that was dispatched a moment
    before may be bound on one of them."""
    bench = Bench(replace(GROWS, binding_wait=5 * SECOND))
    bench.start(workload("large", 1000, 1000))
    bench.advance(2)
    bench.add_node(node("part", 900)).start(workload("small", 500))
    bench.add_node(node("n1", 1000), node("n2", 1000)).settle()
    assert bench.order == ["small"]
    assert bench.entry("large").reserved.nodes == ("n1", "n2")
    return bench


def test_a_gang_that_has_its_nodes_waits_until_no_pod_can_take_them() -> None:
    bench = _beside_one_in_flight()
    bench.bind("small-0", "part").advance(0.1)
    assert bench.order == ["small", "large"]


def test_a_gang_whose_node_was_taken_by_a_pod_in_flight_waits_for_another() -> None:
    bench = _beside_one_in_flight()
    bench.bind("small-0", "n1").advance(10)
    assert bench.order == ["small"]
    bench.add_node(node("n3", 1000)).settle()
    assert bench.order == ["small", "large"]


def test_a_pod_that_is_never_bound_holds_up_no_gang_with_nodes() -> None:
    bench = _beside_one_in_flight()
    bench.advance(5.1)
    assert bench.order == ["small", "large"]


def test_reserved_room_is_known_to_questions() -> None:
    bench = _asks(1000)
    bench.start(workload("b", 1000))
    events = [*map(NodeSeen, bench.nodes)]
    events += [AppWrapperSeen(bench.observed(uid), listed=True) for uid in bench.works]
    run = DryRun(Facts(GROWS, [*events, *bench.scale_ups.values()], bench.now))
    assert not why(run, "uid-a").starts
    assert not why(run, "uid-b").starts
    more = [*events, NodeSeen(node("new", 1000)), *bench.scale_ups.values()]
    assert why(DryRun(Facts(GROWS, more, bench.now)), "uid-a").starts


def test_one_that_waits_for_new_nodes_keeps_none_from_protection_against_starvation() -> None:
    settings = replace(GROWS, protect_after=20 * SECOND, scale_up_concurrent=1)
    bench = Bench(settings, [node("n1", 1000), node("n2", 1000)])
    bench.start(workload("r", 1000, 500), workload("a", 3000))
    bench.bind("r-0", "n1").bind("r-1", "n2").advance(2)
    bench.start(workload("b", 900))
    bench.advance(120)
    assert bench.entry("a").reserved.reason is ReservationReason.SCALING_UP
    assert bench.entry("b").reserved.reason is ReservationReason.STARVED


@pytest.mark.parametrize("is_served", [False, True])
def test_a_journal_that_begins_now_knows_the_requests(is_served: bool) -> None:
    bench = _asks(1000)
    bench.autoscale("a", ScaleUpState.ACCEPTED, "words").feed(ScaleUpServed(served=is_served))
    cluster, other = bench.dispatcher.cluster, Dispatcher(GROWS)
    for event in present(cluster):
        other.step(event, bench.now)
    (known,), (again,) = cluster.scale_ups, other.cluster.scale_ups
    assert dataclasses.replace(known, lacking=()) == again
    assert other.cluster.scale_ups.served is is_served


def test_a_leader_that_may_not_ask_keeps_no_room_until_others_end() -> None:
    bench = Bench(GROWS, [node("n0", 1000), node("n1", 1000)])
    bench.start(workload("r", 1000, run_limit=3600 * SECOND))
    bench.bind("r-0", "n0").start(workload("a", 1000, 1000))
    bench.advance(2)
    assert bench.entry("a").reserved.nodes == ("n1",)
    bench.settings = PATIENT
    bench.restart()
    bench.advance(2)
    assert bench.entry("a").reservation is None
