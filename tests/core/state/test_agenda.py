"""Timers by name: each runs by itself, and counts what it is there for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.commands import CreateItem, ReviewAccess, WriteStatus
from mcad.core.events import NodeSeen
from mcad.core.state.agenda import HORIZON, Timers
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import REPORTS_PER_PASS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase, Signal
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND
from tests.core.bench import START, Bench, node, workload

QUOTA = Answer(403, "Forbidden", "exceeded quota: pods=0")
BUSY = Answer(503, "ServiceUnavailable", "later")
DENIED = Answer(403, "Forbidden", "no such right")


def _creating() -> Bench:
    """``a`` has its intent, and the create of its first item is under way."""
    bench = Bench(nodes=[node()])
    bench.begin(workload("a", 1, 1))
    return bench


def _edited(bench: Bench, *answers: Answer) -> None:
    """An edit has to be told of in status, and the server answers so; creates do not return."""
    bench.edit("uid-a", priority=1)
    bench.refuse("WriteStatus", *answers)
    while bench.refusals["WriteStatus"]:
        bench.now += 20 * SECOND
        bench.decide()
        for command in [one for one in bench.pending if isinstance(one, WriteStatus)]:
            bench.pending.remove(command)
            bench.execute(command)
    bench.now += 20 * SECOND
    bench.decide()


@pytest.mark.parametrize("answer", [BUSY, DENIED])
def test_a_refused_status_write_does_not_shorten_the_pause_after_a_refused_create(
    answer: Answer,
) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    bench.refuse("CreateItem", *[QUOTA] * 4)
    while bench.entry("a").wait.hold is None:
        if bench.pending:
            bench.execute(bench.pending.pop(0))
        else:
            bench.now += SECOND // 2
            bench.decide()
    held_at = bench.now
    bench.refuse("WriteStatus", answer)  # which tells of the hold
    bench.settle()
    assert bench.refusals["WriteStatus"] == []
    bench.advance(9)
    assert bench.created["uid-a", 2, 0] == 0
    bench.advance(2)
    assert bench.created["uid-a", 2, 0] == 1
    assert bench.now - held_at < 12 * SECOND


def test_a_refused_status_write_does_not_repeat_a_create_that_is_under_way() -> None:
    bench = _creating()
    _edited(bench, BUSY)
    assert len([one for one in bench.pending if isinstance(one, CreateItem)]) == 1


def test_refused_status_writes_do_not_count_as_refused_creates() -> None:
    bench = _creating()
    _edited(bench, DENIED, DENIED, DENIED)
    bench.refuse("CreateItem", DENIED)
    bench.execute(bench.pending.pop(0))
    assert not [one for one in bench.pending if isinstance(one, ReviewAccess)]
    bench.advance(1)
    assert bench.state("a") == "Running"


# -- the timers themselves -----------------------------------------------------------------------


def _entry(name: str = "a") -> Entry:
    return Entry(workload(name), START)


def test_every_timer_rings_at_its_own_time() -> None:
    one = _entry()
    timers = Timers({one.uid: one})
    for number, timer in enumerate(Timer):
        timers.start(one, timer, 100 + number)
    for number, timer in enumerate(Timer):
        assert list(timers.expired(100 + number)) == [(one, timer)]


def test_a_timer_that_is_started_anew_rings_once_and_then() -> None:
    one = _entry()
    timers = Timers({one.uid: one})
    for at in (100, 50, 200, 200):
        timers.start(one, Timer.STEP, at)
    assert list(timers.expired(199)) == []
    assert list(timers.expired(200)) == [(one, Timer.STEP)]
    assert list(timers.expired(999)) == []


def test_one_that_is_stopped_or_forgotten_or_stopped_by_another_does_not_ring() -> None:
    one, other = _entry("a"), _entry("b")
    entries = {one.uid: one, other.uid: other}
    timers = Timers(entries)
    timers.start(one, Timer.HOLD, 10)
    one.stop(Timer.HOLD)
    timers.start(other, Timer.STEP, 10)
    del entries[other.uid]
    timers.start(one, Timer.STATUS, 11)
    timers.start(one, Timer.STEP, 12)
    rung = []
    for entry, timer in timers.expired(20):
        entry.stop(Timer.STEP)
        rung.append(timer)
    assert rung == [Timer.STATUS]


def test_a_move_ends_every_timer_but_those_of_status() -> None:
    one = _entry()
    timers = Timers({one.uid: one})
    for timer in Timer:
        timers.start(one, timer, 10)
    one.tries.failures = one.writes.tries.failures = 3
    one.move(Signal.RESERVED, 5)
    assert one.phase is Phase.INTENDING
    assert list(one.timers) == [Timer.STATUS, Timer.COUNTS]
    assert (one.tries.failures, one.writes.tries.failures) == (0, 3)


def test_one_wake_up_is_under_way_and_it_is_the_earliest() -> None:
    one = _entry()
    timers = Timers({one.uid: one})
    told = []
    for at in (300, 400, 200, 250, 100):
        timers.start(one, Timer.STEP if at != 100 else Timer.HOLD, at)
        timers.wish(at + 1)
        told.append(timers.next_wake_up(0))
    assert told == [300, None, 200, None, 100]
    list(timers.expired(100))
    assert timers.next_wake_up(100) == 101
    list(timers.expired(300))
    assert timers.next_wake_up(300) == 301
    assert timers.next_wake_up(0) is None


def test_stale_lines_request_no_wake_up() -> None:
    one = _entry()
    timers = Timers({one.uid: one})
    timers.start(one, Timer.STEP, 100)
    one.stop(Timer.STEP)
    assert timers.next_wake_up(0) is None


def test_what_is_a_week_ahead_is_asked_for_hour_by_hour() -> None:
    """The controller keeps every wish; an AppWrapper's time to live is a week."""
    one = _entry()
    timers = Timers({one.uid: one})
    timers.start(one, Timer.TTL, 10 * HORIZON)
    assert timers.next_wake_up(5) == 5 + HORIZON
    assert timers.next_wake_up(6) is None
    assert list(timers.expired(5 + HORIZON)) == []
    assert timers.next_wake_up(5 + HORIZON) == 5 + 2 * HORIZON
    list(timers.expired(5 + 2 * HORIZON))
    assert timers.next_wake_up(10 * HORIZON - 7) == 10 * HORIZON
    assert list(timers.expired(10 * HORIZON)) == [(one, Timer.TTL)]


def test_lines_of_those_that_are_gone_do_not_pile_up() -> None:
    entries: dict[str, Entry] = {}
    timers = Timers(entries)
    for number in range(10_000):
        one = Entry(replace(workload("a"), uid=f"uid-{number}"), 0)
        entries[one.uid] = one
        timers.start(one, Timer.TTL, 10 * HORIZON + number)
        if number >= 100:
            del entries[f"uid-{number - 100}"]
    assert timers.lines <= 400


def test_a_thousand_that_wait_cost_one_wake_up() -> None:
    bench = Bench(nodes=[node(milli=1)])
    bench.submit(*(workload(f"w{number}", 2) for number in range(1000)))
    for number in range(100):
        bench.feed(NodeSeen(node(f"n{number + 2}", milli=1)))
        bench.decide()
    # A pass each for as many as one reports or judges, and one to look again.
    assert len(bench.wishes) == 1000 // REPORTS_PER_PASS
