"""A right to create that is missing: the resource is held in that namespace, and nothing fails."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.commands import ReviewAccess
from mcad.core.events import AccessReviewed, AppWrapperGone
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import HeldResource, Item, ObjectRef, Workload
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload

PODS = ("default", "pods")


def _denied(*works: Workload, milli: int = 100_000) -> Bench:
    """Creating pods is forbidden, and these are submitted."""
    bench = Bench(nodes=[node(milli=milli)])
    bench.forbidden = {PODS}
    bench.submit(*works)
    return bench


def _of(name: str, group: str, resource: str, namespace: str = "default") -> Workload:
    ref = ObjectRef(group, "v1", resource, resource.title(), namespace, name)
    work = workload(name, 1)
    return replace(work, namespace=namespace, items=(Item(ref),))


def test_a_minute_without_the_right_to_create_fails_nothing_however_many_wait() -> None:
    """40 AppWrappers of two items. A review serves all, and each create is refused four times."""
    bench = _denied(*(workload(f"w{number:02}", 1, 1) for number in range(40)))
    bench.advance(60)
    assert {bench.state(f"w{number:02}") for number in range(40)} == {"Pending"}
    assert bench.names() == []
    assert bench.writes["forbidden"] <= 4 * 40
    assert bench.writes["review"] <= 6
    bench.forbidden.clear()
    bench.advance(60)
    assert {bench.state(f"w{number:02}") for number in range(40)} == {"Running"}
    assert bench.dispatcher.cluster.held_resources() == ()
    assert bench.writes["review"] <= 7
    assert bench.writes["create"] == 80
    assert max(bench.created.values()) == 1


def test_one_review_serves_all_that_ask_before_its_answer() -> None:
    bench = _denied(*(workload(f"w{number}", 1) for number in range(5)))
    reviews: list[ReviewAccess] = []
    for _ in range(60):  # its answer takes long
        bench.now += SECOND
        bench.decide()
        while bench.pending:
            command = bench.pending.pop(0)
            if isinstance(command, ReviewAccess):
                reviews.append(command)
            else:
                bench.execute(command)
    assert len(reviews) == 1


def test_a_day_without_the_right_costs_a_review_a_minute_and_nothing_else() -> None:
    bench = _denied(*(workload(f"w{number}", 1) for number in range(10)))
    bench.advance(60)
    before = dict(bench.writes)
    bench.advance(86_400)
    after = dict(bench.writes)
    assert after.pop("review") - before.pop("review") in range(1430, 1441)
    assert after == before


def test_the_hold_says_which_right_is_missing_and_for_whom() -> None:
    bench = _denied(workload("a", 1), workload("b", 1))
    bench.advance(5)
    words = (
        "The dispatcher has no right to create pods in namespace default: mcad cannot create. "
        "Grant it; the AppWrappers that wait for it then go on by themselves."
    )
    for name in "ab":
        assert bench.condition(name, "Backoff") == (True, "MissingRight", words)
    assert [event.note for event in bench.events if event.warning] == [words]
    (held,) = bench.dispatcher.cluster.held_resources()
    assert held == HeldResource("default", "", "pods", "MissingRight", words, held.since)
    assert held.title == "pods"
    assert [row.waits_for for row in bench.queue()] == ["MissingRight"] * 2


def test_the_impersonated_user_is_named() -> None:
    bench = _denied(workload("a", 1))
    bench.settle()
    while not any(isinstance(command, ReviewAccess) for command in bench.pending):
        bench.now += 1_000_000
        bench.decide()
        while bench.pending and not isinstance(bench.pending[0], ReviewAccess):
            bench.execute(bench.pending.pop(0))
    bench.pending.clear()
    bench.feed(AccessReviewed("default", "", "pods", allowed=False, user="system:x"))
    (held,) = bench.dispatcher.cluster.held_resources()
    assert held.message.startswith("system:x has no right to create pods in namespace default")


def test_what_does_not_contain_the_resource_goes_on_and_other_namespaces_do() -> None:
    bench = _denied(workload("a", 1))
    bench.advance(5)
    bench.submit(
        workload("b", 1), _of("c", "", "configmaps"), _of("d", "", "pods", namespace="other")
    )
    bench.settle()
    assert bench.order == ["c", "d"]
    assert bench.condition("b", "Backoff")[1] == "MissingRight"
    assert bench.entry("b").attempt == 0  # held before any intent


def test_a_server_that_has_just_started_costs_no_attempt() -> None:
    """It refuses everything until it has read the roles, reviews too."""
    bench = _denied(workload("a", 1))
    bench.advance(3)
    bench.forbidden.clear()
    bench.advance(2)
    assert bench.state("a") == "Running"
    assert bench.entry("a").attempt == 1
    assert bench.writes["review"] == 0


def test_the_room_of_what_is_held_is_given_to_others() -> None:
    bench = _denied(workload("a", 900), milli=1000)
    bench.advance(5)
    bench.start(replace(_of("b", "", "configmaps"), sets=workload("b", 900).sets))
    assert bench.order == ["b"]


def test_two_rights_that_are_missing_are_both_waited_for() -> None:
    both = replace(
        workload("a", 1, 1),
        items=(
            _of("x", "batch", "jobs").items[0],
            Item(ObjectRef("", "v1", "pods", "Pod", "default", "y")),
        ),
    )
    bench = _denied(both)
    bench.forbidden.add(("default", "jobs"))
    bench.advance(5)
    assert [held.title for held in bench.dispatcher.cluster.held_resources()] == ["jobs.batch"]
    bench.forbidden.remove(("default", "jobs"))
    bench.advance(60)
    assert [held.title for held in bench.dispatcher.cluster.held_resources()] == ["pods"]
    assert bench.names() == []
    bench.forbidden.clear()
    bench.advance(60)
    assert bench.names() == ["x", "y"]


def test_a_hold_that_concerns_no_appwrapper_any_more_ends() -> None:
    bench = _denied(workload("a", 1))
    bench.advance(5)
    assert len(bench.dispatcher.cluster.held_resources()) == 1
    del bench.works["uid-a"]
    bench.feed(AppWrapperGone("uid-a"))
    bench.advance(61)
    before = bench.writes["review"]
    assert bench.dispatcher.cluster.held_resources() == ()
    bench.advance(600)
    assert bench.writes["review"] == before
    assert bench.dispatcher.cluster.rights.asked == {}


@pytest.mark.parametrize("allowed", [None, False])
def test_a_review_that_is_not_answered_goes_on_asking(allowed: bool | None) -> None:
    bench = _denied(workload("a", 1))
    bench.advance(5)
    for _ in range(3):
        while not bench.pending:
            bench.now += 1_000_000
            bench.decide()
        assert [type(command) for command in bench.pending] == [ReviewAccess]
        bench.pending.clear()
        bench.feed(AccessReviewed("default", "", "pods", allowed))
        assert len(bench.dispatcher.cluster.held_resources()) == 1
    bench.forbidden.clear()
    bench.advance(61)
    assert bench.state("a") == "Running"


def test_an_edit_that_takes_the_resource_out_goes_on_at_once() -> None:
    bench = _denied(workload("a", 1))
    bench.advance(5)
    bench.edit("uid-a", items=_of("a", "", "configmaps").items, payload="other")
    bench.settle()
    assert bench.state("a") == "Running"


def test_after_a_restart_it_is_found_out_again_and_nothing_fails() -> None:
    bench = _denied(workload("a", 1), workload("b", 1))
    bench.advance(5)
    bench.crash()
    bench.advance(100)  # creates of a predecessor may be under way for 75 s
    assert {bench.state("a"), bench.state("b")} == {"Pending"}
    assert len(bench.dispatcher.cluster.held_resources()) == 1
    bench.forbidden.clear()
    bench.advance(60)
    assert {bench.state("a"), bench.state("b")} == {"Running"}


@pytest.mark.parametrize("k", range(14))
def test_a_crash_at_any_moment_of_a_hold_fails_nothing(k: int) -> None:
    bench = _denied(workload("a", 1), _of("c", "", "configmaps"))
    for _ in range(k):
        if bench.pending:
            bench.execute(bench.pending.pop(0))
        else:
            bench.now += 2_000_000
            bench.decide()
    bench.crash()
    bench.advance(200)
    assert bench.entry("a").phase is Phase.WAITING
    bench.forbidden.clear()
    bench.advance(61)
    assert {bench.state("a"), bench.state("c")} == {"Running"}
    assert max(bench.created.values()) == 1
