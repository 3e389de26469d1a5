"""Which AppWrappers ask for nodes, for how many pods, and when they are dispatched."""

import pytest
from msgspec.structs import replace

from mcad.core.commands import RequestScaleUp, WithdrawScaleUp
from mcad.core.events import PodSeen, ScaleUpGone, ScaleUpServed
from mcad.core.scale_up import asking, keep
from mcad.core.state.model import Pod, PodPhase, Topology
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.settings import Fit, Policy
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, cpu, node, workload
from tests.core.quotas import GOLD, child, subtree

GROWS = replace(PATIENT, scale_up=True)


def test_one_that_lacks_nodes_asks_for_its_gang_and_is_dispatched_when_all_have_places() -> None:
    bench = Bench(GROWS, [node("n1", 2000)])
    bench.start(workload("a", 1500, 1500, 1500))
    bench.advance(2)
    # Of the whole gang: the autoscaler puts pods on n1 first (ADR 68).
    assert bench.asked == [RequestScaleUp("uid-a", 1, ((0, 0, 1), (1, 0, 1), (2, 0, 1)))]
    (request,) = bench.dispatcher.cluster.scale_ups
    assert request.lacking == ((1, 0, 1), (2, 0, 1))
    assert bench.status["uid-a"].reservation is not None
    assert bench.status["uid-a"].reservation.nodes == ("n1",)

    bench.autoscale("a", ScaleUpState.PROVISIONED)
    bench.add_node(node("new-1", 2000))
    bench.advance(2)
    assert not bench.names()  # one node is not enough, and no pod starts without its gang
    bench.add_node(node("new-2", 2000))
    bench.settle()
    assert bench.names() == ["a-0", "a-1", "a-2"]
    assert not bench.scale_ups
    assert len(bench.asked) == 1


def test_where_nothing_runs_yet_all_pods_are_asked_for() -> None:
    bench = Bench(GROWS)
    bench.start(workload("a", 1500))
    bench.advance(2)
    assert bench.asked == [RequestScaleUp("uid-a", 1, ((0, 0, 1),))]
    bench.add_node(node("new", 2000))
    bench.settle()
    assert bench.names() == ["a-0"]


def test_nothing_is_asked_for_where_all_of_it_fits() -> None:
    bench = Bench(GROWS, [node("n1", 2000)])
    bench.start(workload("a", 1500))
    bench.advance(5)
    assert bench.names() == ["a-0"]
    assert not bench.asked


def _asked(bench: Bench) -> list[str]:
    return [one.uid.removeprefix("uid-") for one in bench.asked]


def test_they_ask_in_the_order_of_the_line_as_many_as_may_at_a_time() -> None:
    bench = Bench(replace(GROWS, scale_up_concurrent=2))
    names = "abcd"
    bench.start(*(workload(name, 1000, priority=name == "c") for name in names))
    bench.advance(5)
    assert _asked(bench) == ["c", "a"]
    bench.add_node(node("n1", 1000))
    bench.advance(12)
    assert bench.order == ["c"]  # whose reservation is the oldest
    assert _asked(bench) == ["c", "a", "b"]


def test_one_without_quota_for_it_does_not_ask() -> None:
    bench = Bench(GROWS)
    bench.share(subtree("root", child("root", cpu=2000)))
    bench.share(subtree("teams", child("x", True, cpu=1500), parent="root"))
    team = {"quota": ((GOLD, "x"),)}
    bench.start(*(workload(name, milli, **team) for name, milli in (("a", 1600), ("b", 1000))))
    bench.start(workload("c", 1000, **team), workload("d", 500, **team))
    bench.advance(5)
    assert _asked(bench) == ["b", "d"]  # c would not have quota beside b


def test_a_reservation_for_new_nodes_is_charged_to_no_share() -> None:
    bench = Bench(GROWS, [node("n1", 1000)])
    bench.share(subtree("root", child("root", cpu=2000)))
    bench.share(subtree("teams", child("x", True, cpu=2000), parent="root"))
    team = {"quota": ((GOLD, "x"),)}
    bench.start(workload("a", 2000, **team))
    bench.advance(2)
    assert _asked(bench) == ["a"]
    bench.start(workload("b", 1000, **team))
    assert bench.order == ["b"]
    bench.add_node(node("new", 2000))
    bench.advance(2)
    assert bench.order == ["b"]
    ended = [one.note for one in bench.events if one.reason == "ReservationEnded"]
    assert ended == ["Room is not kept for it any more. Its quota has been used by others since."]
    assert not bench.scale_ups


@pytest.mark.parametrize(("limit", "asks"), [(60, False), (600, True)])
def test_one_does_not_ask_if_an_end_lets_it_start_sooner_than_nodes_come(
    limit: int, asks: bool
) -> None:
    bench = Bench(GROWS, [node("n1", 1000)])
    bench.start(workload("a", 1000, run_limit=limit * SECOND))
    bench.bind("a-0")
    bench.start(workload("b", 1000))
    bench.advance(5)
    assert _asked(bench) == (["b"] if asks else [])


def test_the_last_requests_say_how_long_nodes_take() -> None:
    bench = Bench(GROWS)
    bench.start(workload("a", 1000))
    bench.advance(30)
    bench.add_node(node("n1", 1000))
    bench.settle()
    bench.edit("uid-a", run_limit=60 * SECOND)
    bench.bind("a-0").start(workload("b", 1000))
    bench.advance(5)
    assert _asked(bench) == ["a", "b"]  # n1 is free in two minutes at the latest; nodes take 30 s


def test_room_that_came_free_says_nothing_of_how_long_nodes_take() -> None:
    bench = Bench(GROWS, [node("n1", 1000)])
    bench.start(workload("a", 1000))
    bench.bind("a-0").start(workload("b", 1000))
    bench.advance(5)
    bench.delete("uid-a").advance(2)
    assert bench.order == ["a", "b"]
    assert bench.dispatcher.cluster.scale_ups.usual == 120 * SECOND


def test_one_waits_for_pods_of_others_that_terminate_as_long_as_for_nodes() -> None:
    bench = Bench(GROWS, [node("n1", 1000)])
    other = Pod("p", "kube-system", "p", "n1", PodPhase.RUNNING, cpu(1000, 1), terminating=True)
    bench.feed(PodSeen(other))
    bench.start(workload("a", 1000))
    bench.advance(100)
    assert not bench.asked
    bench.advance(60)
    assert _asked(bench) == ["a"]


def test_one_for_which_victims_may_be_found_does_not_ask() -> None:
    settings = replace(GROWS, preemption=True, min_run_time=0)
    bench = Bench(settings, [node("n1", 1000)])
    bench.start(workload("low", 1000))
    bench.bind("low-0").start(workload("high", 1000, priority=1))
    bench.advance(5)
    assert _asked(bench) == ["low"]  # the victim
    assert bench.order == ["low", "high"]


def test_one_whose_evictions_wait_for_their_turn_does_not_ask() -> None:
    settings = replace(GROWS, preemption=True, min_run_time=0, max_evictions_per_minute=1)
    bench = Bench(settings, [node("n1", 1000), node("n2", 1000)])
    bench.start(workload("low-1", 1000), workload("low-2", 1000))
    bench.bind("low-1-0", "n1").bind("low-2-0", "n2")
    bench.start(workload("high-1", 1000, priority=1), workload("high-2", 1000, priority=1))
    bench.advance(30)
    assert not {"high-1", "high-2"}.intersection(_asked(bench))
    bench.advance(40)
    assert bench.order[-2:] == ["high-1", "high-2"]


def test_those_behind_many_that_may_not_ask_are_reached() -> None:
    bench = Bench(GROWS)
    bench.share(subtree("root", child("root", cpu=10_000)))
    bench.share(subtree("teams", child("x", True, cpu=1999), child("y", cpu=8000), parent="root"))
    team = {"quota": ((GOLD, "x"),)}
    bench.start(*(workload(f"x{number}", 1000 + number, **team) for number in range(300)))
    bench.start(workload("a", 1500, quota=((GOLD, "y"),)))
    bench.advance(15)
    assert _asked(bench) == ["x0", "a"]


def test_nothing_is_asked_for_where_only_sums_count() -> None:
    bench = Bench(replace(GROWS, fit=Fit.AGGREGATE))
    bench.start(workload("a", 1000))
    bench.advance(5)
    assert not bench.asked


def test_nothing_is_asked_for_where_no_kind_is_served() -> None:
    bench = Bench(GROWS)
    bench.feed(ScaleUpServed(served=False))
    bench.start(workload("a", 1000))
    bench.advance(5)
    assert not bench.asked
    bench.feed(ScaleUpServed(served=True))
    bench.advance(5)
    assert _asked(bench) == ["a"]


def test_one_with_victims_that_may_not_be_evicted_yet_asks() -> None:
    settings = replace(GROWS, preemption=True, min_run_time=600 * SECOND)
    bench = Bench(settings, [node("n1", 1000)])
    bench.start(workload("low", 1000))
    bench.bind("low-0").start(workload("high", 1000, priority=1))
    bench.advance(5)
    assert _asked(bench) == ["high"]


def test_a_reservation_that_waits_longer_than_for_nodes_becomes_one_for_new_nodes() -> None:
    settings = replace(GROWS, policy=Policy.BACKFILL)
    bench = Bench(settings, [node("n1", 1000)])
    bench.start(workload("a", 1000, run_limit=3600 * SECOND))
    bench.bind("a-0").start(workload("b", 1000))
    bench.advance(40)
    assert _asked(bench) == ["b"]
    assert bench.entry("b").reserved.reason is ReservationReason.SCALING_UP


def test_a_gang_that_needs_one_topology_domain_does_not_ask() -> None:
    bench = Bench(replace(GROWS, topology_levels=("rack",)))
    work = workload("a", 1000)
    (pods,) = work.sets
    bench.start(replace(work, sets=(replace(pods, topology=Topology(("rack",))),)))
    bench.advance(5)
    assert not bench.asked


def test_the_nodes_that_come_are_kept_for_the_one_that_asked() -> None:
    bench = Bench(replace(GROWS, scale_up_concurrent=1))
    bench.start(workload("a", 1000, 1000))
    bench.advance(2)
    bench.add_node(node("n1", 1000))
    bench.start(workload("b", 500), workload("c", 500, run_limit=3600 * SECOND))
    bench.start(workload("d", 500, run_limit=30 * SECOND))
    bench.advance(25)
    assert bench.order == ["d"]  # it is gone before the other node is expected
    bench.add_node(node("n2", 1000))
    bench.advance(2)
    assert bench.order == ["d"]  # and still has its pod on the node
    bench.advance(60)
    assert bench.order == ["d", "a"]


def test_one_starts_on_what_another_leaves_of_the_nodes_that_are_kept_for_it() -> None:
    bench = Bench(GROWS)
    bench.start(workload("a", 1000, 9000), workload("b", 3000))
    bench.advance(2)
    assert _asked(bench) == ["a", "b"]
    bench.add_node(node("n1", 4000))
    bench.advance(2)
    assert bench.entry("a").reserved.nodes == ("n1",)
    assert bench.order == ["b"]


def test_what_one_leaves_at_its_dispatch_is_kept_for_others_that_wait_for_nodes() -> None:
    bench = Bench(replace(GROWS, scale_up_concurrent=2))
    bench.start(workload("a", 2000, 2000, 2000))
    bench.advance(2)
    bench.add_node(node("n1", 4000))
    bench.advance(2)
    bench.start(workload("b", 4000, 4000), workload("c", 500))
    bench.advance(2)
    bench.autoscale("b", ScaleUpState.PROVISIONED)
    bench.advance(2)
    assert bench.entry("a").reserved.nodes == ("n1",)
    bench.add_node(*(node(f"n{number}", 2000) for number in range(2, 5)))
    bench.settle()
    assert bench.order == ["a"]
    assert bench.entry("b").reserved.nodes == ("n1",)


def test_places_are_reserved_on_the_nodes_with_the_least_room() -> None:
    """The autoscaler fills these first: the others are meant for larger pods."""
    bench = Bench(GROWS)
    bench.start(workload("a", 1000, 1000, 5000), workload("b", 4000, 6000))
    bench.advance(2)
    bench.add_node(node("large", 4000), node("small", 2000))
    bench.advance(2)
    assert bench.entry("a").reserved.nodes == ("small",)
    assert bench.entry("b").reserved.nodes == ("large",)


def test_one_that_has_got_a_place_stays_before_one_that_asked_with_it() -> None:
    bench = Bench(GROWS)
    bench.start(workload("a", 3000, 3000, 3000), workload("b", 2000))
    bench.advance(2)
    for number in (1, 2, 3):
        bench.add_node(node(f"n{number}", 4000))
        bench.advance(2)
        assert bench.order == ["a"] * (number == 3)


def test_nodes_go_to_the_request_that_was_provisioned_first() -> None:
    """The autoscaler counted these nodes for it."""
    bench = Bench(GROWS)
    bench.start(workload("a", 3000), workload("b", 2000))
    bench.advance(2)
    bench.autoscale("b", ScaleUpState.PROVISIONED)
    bench.autoscale("a", ScaleUpState.PROVISIONED)
    bench.add_node(node("n1", 4000))
    bench.advance(2)
    assert bench.order == ["b"]


def test_one_whose_nodes_are_there_waits_for_pods_that_could_take_them() -> None:
    """Its pods would get no other nodes: they consume what was made for them."""
    bench = Bench(replace(GROWS, binding_wait=5 * SECOND))
    bench.start(workload("a", 1000), workload("b", 4000))
    bench.advance(2)
    bench.add_node(node("n1", 1000), node("n2", 4000))
    bench.advance(0.5)
    assert bench.order == ["a"]
    bench.bind("a-0", "n1").settle()
    assert bench.order == ["a", "b"]

    bench = Bench(replace(GROWS, binding_wait=5 * SECOND))
    bench.start(workload("a", 1000), workload("b", 4000))
    bench.advance(2)
    bench.add_node(node("n1", 1000), node("n2", 4000))
    bench.advance(4)
    assert bench.order == ["a"]
    bench.advance(2)
    assert bench.order == ["a", "b"]  # the pod may never be bound


def test_pods_prefer_their_planned_nodes_while_nodes_come_that_others_asked_for() -> None:
    """kube-scheduler puts pods on the emptiest nodes: the new ones, which are meant for others."""
    bench = Bench(GROWS)
    bench.start(workload("a", 1000), workload("b", 4000))
    bench.advance(2)
    bench.add_node(node("n1", 1000))
    bench.advance(2)
    assert bench.order == ["a"]
    assert bench.planned["uid-a"] == ("n1",)
    bench.add_node(node("n2", 4000))
    bench.advance(2)
    assert bench.order == ["a", "b"]
    assert bench.planned["uid-b"] == ()  # no other AppWrapper waits for nodes


def test_one_whose_nodes_are_there_goes_before_one_whose_nodes_are_not() -> None:
    bench = Bench(GROWS)
    bench.start(workload("a", 1000, 1000), workload("b", 1000))
    bench.advance(2)
    bench.add_node(node("n1", 1000))
    bench.advance(2)
    assert not bench.order
    bench.autoscale("b", ScaleUpState.PROVISIONED)
    bench.add_node(node("tiny", 1))
    bench.advance(2)
    assert bench.order == ["b"]
    assert bench.entry("a").reservation is not None


def test_nothing_of_it_runs_where_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for module in (asking, keep):
        for name, one in vars(module).items():
            if callable(one) and getattr(one, "__module__", "") == module.__name__:
                monkeypatch.setattr(module, name, lambda *_, name=name: calls.append(name))
    bench = Bench(PATIENT)
    bench.start(workload("a", 1000))
    bench.advance(60)
    assert not calls
    assert not bench.asked
    wishes = len(bench.wishes)
    assert wishes <= 1  # no look of its own


def _binding() -> Bench:
    """A gang of two pods, which name their request, is dispatched; another waits to ask."""
    bench = Bench(replace(GROWS, scale_up_concurrent=1), names_requests=True)
    bench.start(workload("a", 1000, 1000), workload("b", 1000))
    bench.advance(2)
    bench.add_node(node("n1", 2000))
    bench.advance(2)
    assert bench.order == ["a"]
    return bench


def test_none_asks_while_pods_are_bound_that_an_autoscaler_counts_beside_their_request() -> None:
    bench = _binding()
    bench.bind("a-0", "n1").advance(3)
    assert _asked(bench) == ["a"]
    bench.bind("a-1", "n1").decide()
    assert bench.pending == [WithdrawScaleUp("uid-a", 1)]
    bench.pending.clear()
    bench.advance(3)
    assert _asked(bench) == ["a"]  # the request still exists
    bench.feed(ScaleUpGone("uid-a", 1))
    bench.settle()
    assert _asked(bench) == ["a", "b"]


def test_pods_that_are_not_bound_keep_others_from_asking_for_some_seconds_only() -> None:
    bench = _binding()
    bench.advance(7)
    assert _asked(bench) == ["a"]
    bench.advance(3)
    assert _asked(bench) == ["a", "b"]


def test_a_request_whose_deletion_is_not_seen_keeps_others_from_asking_for_some_seconds() -> None:
    bench = _binding()
    bench.bind("a-0", "n1").bind("a-1", "n1").decide()
    bench.pending.clear()
    bench.advance(11)
    assert _asked(bench) == ["a", "b"]
