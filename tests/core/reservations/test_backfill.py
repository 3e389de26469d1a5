"""Backfill (R9): the first in line has a date, and AppWrappers that do not delay it go ahead."""

from __future__ import annotations

import pytest

from mcad.core.cycle import admit
from mcad.core.events import NodeSeen
from mcad.core.queue import waiting
from mcad.core.reservations import backfill
from mcad.core.state.bounds import (
    BACKFILL_TRIES,
    FIRSTS_LOOK,
    LOOKS,
    STUCK_AFTER,
    WORK_PER_PASS,
    Look,
)
from mcad.core.state.model import Workload
from mcad.core.state.reasons import EventReason
from mcad.core.state.records import replace
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Policy
from mcad.core.state.units import SECOND
from mcad.core.state.work_bounds import VERDICT_STEPS
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.reservations.test_manage import names_of_plans

BACKFILL = replace(PATIENT, policy=Policy.BACKFILL)
GANG = workload("gang", 900, 900, run_limit=1000 * SECOND)


def limited(name: str, milli: int, seconds: int, **changes: object) -> Workload:
    return workload(name, milli, run_limit=seconds * SECOND, **changes)


def busy(policy: Policy = Policy.BACKFILL) -> Bench:
    """Two nodes with one AppWrapper each, which end after 600 and 1200 s, and a gang that needs
    both."""
    bench = Bench(replace(BACKFILL, policy=policy), nodes=[node("n1"), node("n2")])
    bench.start(limited("one", 600, 600), limited("two", 600, 1200))
    bench.submit(GANG)
    bench.advance(10)
    return bench


def test_the_first_in_line_has_a_date() -> None:
    bench = busy()
    reservation = bench.entry("gang").reserved
    assert reservation.reason is ReservationReason.PLANNED
    assert reservation.nodes == ("n1", "n2")
    assert reservation.waits_for == ("default/one", "default/two")
    assert list(bench.dispatcher.cluster.capacity.report.overcommitted()) == []
    assert reservation.start == bench.entry("two").past.first_dispatch + 1200 * SECOND + STUCK_AFTER


def test_several_pods_may_go_to_one_node_that_is_reserved() -> None:
    bench = busy()
    bench.submit(workload("short", 100, 100, 100, 100, run_limit=1000 * SECOND))
    bench.advance(2 * LOOKS[Look.BACKFILL] // SECOND)
    assert bench.order == ["one", "two", "short"]


def test_it_waits_for_those_that_end_first() -> None:
    bench = Bench(BACKFILL, nodes=[node("n1"), node("n2")])
    bench.start(limited("late", 600, 1200), limited("soon", 600, 600))
    bench.submit(limited("next", 900, 100))
    bench.advance(10)
    reservation = bench.entry("next").reserved
    assert reservation.waits_for == ("default/soon",)


@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT_FIFO, Policy.STRICT_FIFO])
def test_with_another_policy_there_is_none(policy: Policy) -> None:
    assert busy(policy).entry("gang").reservation is None


def test_a_reservation_that_a_higher_priority_passes_ends_and_that_is_said() -> None:
    bench = busy()
    bench.submit(workload("urgent", 300, priority=5))
    bench.advance(2 * LOOKS[Look.BACKFILL] // SECOND)
    assert bench.order == ["one", "two", "urgent"]
    ended = [one.note for one in bench.events if one.reason is EventReason.RESERVATION_ENDED]
    assert ended[:1] == [
        "Room is not kept for it any more. default/urgent has a higher priority and goes first."
    ]


def test_an_appwrapper_that_ends_in_time_goes_ahead() -> None:
    bench = busy()
    bench.submit(limited("short", 300, 1000), limited("long", 300, 1200), workload("ever", 300))
    bench.advance(2 * LOOKS[Look.BACKFILL] // SECOND)
    assert bench.order == ["one", "two", "short"]
    bench.dispatcher.cluster.admission.check()


def test_nodes_that_the_first_in_line_does_not_want_are_anybodys() -> None:
    bench = busy()
    bench.feed(NodeSeen(node("n3", 500)))
    bench.submit(workload("ever", 500))  # reserved nodes have 400 to spare
    bench.settle()
    assert bench.order == ["one", "two", "ever"]


@pytest.mark.parametrize("other_end", [600, 1200])
def test_a_reservation_moves_at_once_if_pods_that_stay_are_bound_to_its_nodes(
    other_end: int,
) -> None:
    """kube-scheduler puts them there although another node was meant."""
    bench = Bench(BACKFILL, nodes=[node("n1"), node("n2")])
    bench.start(limited("one", 600, 600), limited("two", 600, other_end))
    bench.submit(workload("large", 900))
    bench.feed(NodeSeen(node("n3", 400)))
    bench.advance(40)
    reservation = bench.entry("large").reserved
    assert reservation.nodes == ("n1",)
    bench.start(workload("ever", 400))
    bench.bind("ever-0", on="n1")
    bench.advance(1)
    moved = bench.entry("large").reserved
    assert (moved.start, moved.until) == (reservation.start, reservation.until)
    assert moved.nodes == (("n2",) if other_end == 600 else ("n1",))
    bench.dispatcher.cluster.admission.check()


def test_what_was_let_in_ahead_may_take_its_seconds_to_go() -> None:
    """A teardown takes a moment: no other start is promised for that."""
    bench = busy()
    reservation = bench.entry("gang").reserved
    bench.submit(limited("short", 300, 1000))
    bench.advance(2 * LOOKS[Look.BACKFILL] // SECOND)
    bench.stubborn.add("short-0")
    bench.bind("short-0", on=bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-short")[0])
    bench.advance((reservation.start - bench.now) // SECOND + 5)
    assert bench.entry("gang").reserved.start == reservation.start
    bench.remove(next(ref for ref in bench.things if ref.name == "short-0"))
    bench.advance(1)
    assert bench.order == ["one", "two", "short", "gang"]


def test_pods_keep_off_nodes_that_an_appwrapper_with_a_kept_promise_waits_for() -> None:
    bench = busy()
    for name in ("one", "two"):
        bench.delete(f"uid-{name}")
    bench.settle()
    assert bench.order == ["one", "two", "gang"]
    bench.feed(NodeSeen(node("n3")))
    bench.start(workload("next", 500))
    assert bench.avoided["uid-next"] == ("n1", "n2")
    for number, name in enumerate(("gang-0", "gang-1")):
        bench.bind(name, on=f"n{number + 1}")
    bench.start(workload("later", 100))
    assert not bench.avoided["uid-later"]


def test_an_appwrapper_that_passes_a_reservation_keeps_off_its_nodes() -> None:
    """kube-scheduler would put its pods where most is free, which is where others have left."""
    bench = busy()
    bench.feed(NodeSeen(node("n3", 500)))
    bench.submit(workload("ever", 500), limited("short", 300, 1000))
    bench.advance(2 * LOOKS[Look.BACKFILL] // SECOND)
    assert bench.avoided["uid-ever"] == ("n1", "n2")
    assert not bench.avoided["uid-short"]  # it is gone in time, wherever it is


def test_it_starts_when_it_was_promised_to() -> None:
    bench = busy()
    reservation = bench.entry("gang").reserved
    bench.submit(limited("short", 300, 1000))
    while "gang" not in bench.order and bench.now < reservation.start + 600 * SECOND:
        bench.advance(5)
    assert "gang" in bench.order
    assert bench.now <= reservation.start


def test_it_starts_before_that_if_others_end_early() -> None:
    bench = busy()
    bench.delete("uid-one")
    bench.delete("uid-two")
    bench.settle()
    assert bench.order == ["one", "two", "gang"]


def test_without_limits_there_is_no_date_and_no_reservation() -> None:
    bench = Bench(BACKFILL, nodes=[node("n1"), node("n2")])
    bench.start(workload("one", 600), limited("two", 600, 1200))
    bench.submit(GANG, limited("short", 300, 60))
    bench.advance(10)
    assert bench.entry("gang").reservation is None
    assert bench.order == ["one", "two", "short"]


def test_a_restart_keeps_the_date() -> None:
    bench = busy()
    before = bench.entry("gang").reservation
    bench.crash()
    bench.decide()
    assert bench.entry("gang").reservation == before


def test_a_limit_that_is_not_kept_ends_the_reservation() -> None:
    bench = busy()
    bench.edit("uid-two", run_limit=0)
    reservation = bench.entry("gang").reserved
    while bench.now < reservation.until + 10 * SECOND:
        bench.advance(30)
    assert bench.entry("gang").reservation is None
    (note,) = [event.note for event in bench.events if event.reason == "ReservationEnded"]
    assert note == "Room is not kept for it any more. It expired while waiting for default/two."


def carry_out(bench: Bench) -> None:
    """What is pending, without another pass."""
    while bench.pending:
        bench.execute(bench.pending.pop(0))


MANY = BACKFILL_TRIES + 10


def with_many_behind(limit: int = 3000) -> Bench:
    """Room is reserved for a gang, and many different ones may use it. No other ends within an
    hour."""
    bench = Bench(BACKFILL, nodes=[node("n0"), node("n1", 4000)])
    bench.start(limited("short", 1000, 7200), limited("long", 3900, 3000))
    bench.submit(workload("gang", 900, 3900))
    bench.advance(15)
    assert bench.entry("gang").reservation is not None
    bench.submit(*(limited(f"j{i}", 110 + i, limit) for i in range(MANY)))
    bench.advance(60)
    assert len(bench.order) == 2
    return bench


def test_classes_that_a_walk_does_not_reach_are_offered_room_in_the_next() -> None:
    bench = with_many_behind()
    bench.delete("uid-long")
    bench.advance(60)
    assert len(bench.order) == 2 + MANY
    assert bench.dispatcher.cluster.walk.offer is None


def offers_under_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether an offer is under way after each pass from now on."""
    walk, decide, found = bench.dispatcher.cluster.walk, bench.decide, []

    def watched() -> None:
        decide()
        found.append(walk.offer is not None)

    monkeypatch.setattr(bench, "decide", watched)
    return found


@pytest.fixture
def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass lists the classes, or tests one."""
    monkeypatch.setattr(waiting, "REFUSED_STEPS", WORK_PER_PASS)
    monkeypatch.setattr(backfill, "BACKFILL_TEST_STEPS", WORK_PER_PASS)


@pytest.mark.usefixtures("in_small_parts")
def test_an_offer_takes_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 100,000 different shapes each of them took 270 ms."""
    bench = with_many_behind()
    under_way = offers_under_way(bench, monkeypatch)
    bench.delete("uid-long")
    bench.advance(60)
    assert sum(under_way) >= MANY
    assert bench.order[2:] == [f"j{i}" for i in range(MANY)]


def test_members_that_do_not_end_in_time_are_work_of_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 10,000 shapes on 1,000 leaves they took ten times as long as was counted."""
    monkeypatch.setattr(backfill, "BACKFILL_MEMBER_STEPS", WORK_PER_PASS)
    bench = with_many_behind(limit=20_000)
    under_way = offers_under_way(bench, monkeypatch)
    bench.delete("uid-long")
    bench.advance(10)
    assert sum(under_way) >= MANY - 1
    assert len(bench.order) == 2


def test_one_that_comes_meanwhile_is_offered_the_rest_in_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backfill, "BACKFILL_TEST_STEPS", WORK_PER_PASS)
    bench = Bench(BACKFILL, nodes=[node("n0"), node("n1", 4000)])
    bench.start(limited("short", 1000, 7200), limited("long", 3900, 3000))
    bench.submit(workload("gang", 900, 3900))
    bench.advance(15)
    bench.submit(*(limited(f"j{i}", 900 + i, 3000) for i in range(8)))
    bench.advance(60)
    bench.delete("uid-long")
    bench.now += LOOKS[Look.BACKFILL]
    while len(bench.order) < 3:
        bench.decide()
        carry_out(bench)
    bench.submit(limited("urgent", 950, 3000, priority=9))
    bench.advance(60)
    assert bench.order[:4] == ["short", "long", "j0", "urgent"]


@pytest.mark.parametrize("in_parts", [True, False])
def test_all_members_of_a_class_are_offered_room(
    monkeypatch: pytest.MonkeyPatch, in_parts: bool
) -> None:
    """Whether the work of the pass is done after one of them, or enough were tried."""
    if in_parts:
        monkeypatch.setattr(backfill, "BACKFILL_TEST_STEPS", WORK_PER_PASS)
    bench = Bench(BACKFILL, nodes=[node("n0"), node("n1", 4000)])
    bench.start(limited("short", 1000, 7200), limited("long", 3900, 3000))
    bench.submit(workload("gang", 900, 3900))
    bench.advance(15)
    count = 5 if in_parts else MANY
    bench.submit(*(limited(f"j{i}", 110, 3000) for i in range(count)), limited("other", 120, 3000))
    bench.advance(60)
    assert len(bench.order) == 2
    bench.delete("uid-long")
    bench.advance(120)
    assert len(bench.order) == 2 + count + 1


def test_those_that_have_no_verdict_yet_are_offered_room_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(BACKFILL, nodes=[node("n0"), node("n1", 4000)])
    bench.start(limited("short", 1000, 7200), limited("long", 2000, 3000))
    bench.submit(workload("gang", 900, 3900))
    bench.advance(45)
    monkeypatch.setattr(admit, "WORK_PER_PASS", 3 * VERDICT_STEPS)
    bench.submit(*(limited(f"j{i:02}", 110 + i, 3000) for i in range(15)))
    bench.advance(200)
    assert len(bench.order) == 2 + 15


def test_when_a_reservation_ends_the_next_one_gets_a_date_at_once() -> None:
    bench = busy()
    bench.submit(limited("next", 950, 20_000), limited("third", 960, 20_000))
    bench.settle()
    cluster = bench.dispatcher.cluster
    bench.now = cluster.reservations.firsts.looked_at + FIRSTS_LOOK
    bench.delete("uid-gang")
    bench.advance(2)
    assert bench.entry("next").reservation is not None


@pytest.mark.usefixtures("in_small_parts")
def test_an_offer_ends_with_the_last_reservation() -> None:
    bench = with_many_behind()
    bench.delete("uid-long")
    cluster = bench.dispatcher.cluster
    while cluster.walk.offer is None:
        bench.settle()
        bench.now += 1
    begun = bench.dispatcher.cluster.walk.offer
    assert begun is not None
    bench.delete("uid-gang")
    bench.advance(60)
    assert cluster.walk.offer is None
    assert len(bench.order) == 2 + MANY


def test_nothing_is_planned_with_too_few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan costs a look at every node; that the sum suffices says little where all is in bits."""
    small = [node(f"e{i}", 200) for i in range(4)]
    bench = Bench(BACKFILL, nodes=[node("n1"), node("n2"), *small])
    bench.start(limited("one", 600, 600), limited("two", 600, 1200))
    bench.submit(GANG)
    bench.advance(10)
    asked = names_of_plans(monkeypatch)
    for i in range(50):  # slots for two of the four
        bench.submit(workload(f"j{i}", *[300 + i] * 4, run_limit=300 * SECOND))
    bench.submit(limited("short", 390, 300))
    bench.advance(20)
    assert bench.order == ["one", "two", "short"]
    assert [name for name in asked if name != "gang"] == ["short"]


def test_it_is_looked_at_only_when_an_appwrapper_left_or_came() -> None:
    bench = busy()
    cluster = bench.dispatcher.cluster
    before = cluster.agenda.looked_at.get(Look.BACKFILL, 0)
    for _ in range(30):
        bench.advance(1)
        bench.decide()
    assert cluster.agenda.looked_at.get(Look.BACKFILL, 0) == before
    bench.delete("uid-one")
    bench.decide()
    assert cluster.agenda.looked_at[Look.BACKFILL] > before
