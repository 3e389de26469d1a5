"""At most so many AppWrappers are evicted in a minute, whatever gives a right to evict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcad.core.events import NodeSeen
from mcad.core.state.eviction_pace import MINUTE, EvictionPace
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Instant
from tests.core.bench import PATIENT, Bench, node, workload

EAGER = replace(PATIENT, preemption=True, min_run_time=0, protect_after=0)


def evicted(bench: Bench) -> list[Instant]:
    """When each was evicted, in order."""
    found = (one.eviction for one in bench.dispatcher.cluster.entries.values())
    return sorted(one.at for one in found if one is not None)


def within(times: list[Instant], begin: Instant, seconds: float) -> int:
    return sum(begin <= at < begin + seconds * SECOND for at in times)


def crowd(count: int, settings: Settings = EAGER, cpu: int = 1000) -> Bench:
    """So many of a low priority run, one on each node."""
    bench = Bench(settings, nodes=[node(f"n{number:02}") for number in range(count)])
    for number in range(count):
        bench.submit(workload(f"low-{number:02}", cpu))
    bench.advance(1)
    return bench


def ask(bench: Bench, count: int, cpu: int = 1000) -> Instant:
    """So many of a high priority want a node each; no two are of one shape, for of each shape one
    is looked at in a second."""
    for number in range(count):
        bench.submit(workload(f"high-{number:02}", cpu - number, priority=5))
    return bench.now


# -- the bucket ----------------------------------------------------------------------------------

asks = st.lists(st.tuples(st.integers(1, 15), st.integers(0, 30)), max_size=40)


@given(st.integers(1, 12), asks)
def test_no_time_has_more_than_the_burst_and_what_it_fills(
    rate: int, wanted: list[tuple[int, int]]
) -> None:
    pace, now, begun = EvictionPace(rate), MINUTE * 1000, []
    for victims, pause in wanted:
        now += pause * SECOND
        if not pace.may_begin("uid", victims, now):
            assert pace.next is not None
            now = pace.next.at
            assert pace.may_begin("uid", victims, now)
        pace.spend(victims, now)
        begun.append((now, victims))
    for place, (since, _) in enumerate(begun):
        count = 0
        for at, victims in begun[place:]:
            count += victims
            filled = rate + -(-(at - since) * rate // MINUTE)
            # A set that is larger than the bucket comes on top, once.
            assert count <= max(filled, rate) + max(0, max(n for _, n in begun[place:]) - 1)


def test_a_bucket_fills_evenly() -> None:
    pace, now = EvictionPace(10), MINUTE * 1000
    assert pace.may_begin("a", 10, now)
    pace.spend(10, now)
    assert not pace.may_begin("b", 1, now)
    assert pace.next is not None
    assert pace.next.at == now + 6 * SECOND
    assert not pace.may_begin("b", 3, now)
    assert pace.next is not None
    assert pace.next.at == now + 18 * SECOND
    assert not pace.may_begin("b", 12, now)
    assert pace.next is not None
    assert pace.next.at == now + 60 * SECOND, "a set that is larger waits until it is full"
    assert pace.may_begin("b", 12, now + 60 * SECOND)
    pace.spend(12, now + 60 * SECOND)
    assert not pace.may_begin("c", 1, now + 60 * SECOND)
    assert pace.next is not None
    assert pace.next.at == now + 78 * SECOND, "and the next one waits longer for that"


def test_without_a_limit_all_may_begin() -> None:
    pace = EvictionPace(0)
    pace.spend(1000, MINUTE)
    assert pace.may_begin("a", 1000, MINUTE)


# -- lives ---------------------------------------------------------------------------------------


def test_one_after_the_other_gets_its_turn() -> None:
    bench = crowd(30)
    begun = ask(bench, 25)
    bench.advance(1)
    assert len(evicted(bench)) == 10, "the burst"
    told = [bench.condition(f"high-{n:02}", "Backoff") for n in range(25)]
    due = [one for one in told if one is not None and "(maxEvictionsPerMinute)" in one[2]]
    assert len(due) == 1, "the next one says why it waits"
    assert "Its eviction is due at 22:13:2" in due[0][2]
    assert ": at most 10 a minute are permitted" in due[0][2]
    bench.advance(120)
    times = evicted(bench)
    assert len(times) == 25
    assert within(times, begun, 60) <= 20
    assert all(bench.entry(f"high-{n:02}").phase is Phase.RUNNING for n in range(25))
    told = [bench.condition(f"high-{n:02}", "Backoff") for n in range(25)]
    assert not [one for one in told if one is not None and one[0]]


def test_a_setting_that_is_switched_on_at_a_restart_stops_nothing_at_once() -> None:
    """65 run, and 49 of a higher priority wait, when preemption begins to count."""
    bench = crowd(65, replace(EAGER, preemption=False))
    ask(bench, 49)
    bench.advance(1)
    bench.settings = EAGER
    bench.crash()
    begun = bench.now
    bench.advance(1)
    assert len(evicted(bench)) == 10
    told = [bench.condition(f"high-{n:02}", "Backoff") for n in range(49)]
    assert sum(one is not None and "due at" in one[2] for one in told) == 1
    bench.advance(400)
    times = evicted(bench)
    assert len(times) == 49
    assert within(times, begun, 60) <= 20
    assert all(bench.entry(f"high-{n:02}").phase is Phase.RUNNING for n in range(49))


def test_a_restart_does_not_fill_the_bucket() -> None:
    bench = crowd(30)
    begun = ask(bench, 25)
    bench.advance(1)
    for _ in range(5):
        bench.crash()
        bench.advance(1)
    times = evicted(bench)
    assert 10 <= within(times, begun, 6) <= 11


def test_a_set_that_is_larger_than_the_limit_is_evicted_as_a_whole() -> None:
    bench = crowd(12, cpu=600)
    bench.submit(workload("gang", *[900] * 12, priority=5))
    bench.advance(1)
    assert len(evicted(bench)) == 12
    assert bench.entry("gang").phase is Phase.RUNNING


def test_a_large_set_is_not_overtaken_by_small_ones() -> None:
    bench = crowd(30, cpu=600)
    ask(bench, 10, 900)
    bench.advance(1)
    assert len(evicted(bench)) == 10
    bench.submit(workload("gang", *[900] * 12, priority=9))
    bench.advance(3)
    for number in range(20, 28):
        bench.submit(workload(f"high-{number:02}", 900 - number, priority=5))
    bench.advance(50)
    assert bench.entry("gang").phase is Phase.WAITING
    assert len(evicted(bench)) == 10, "it is next, and waits until the bucket is full"
    bench.advance(15)
    assert bench.entry("gang").phase is Phase.RUNNING


def test_the_turn_of_one_that_is_deleted_passes_to_the_next() -> None:
    bench = crowd(30)
    ask(bench, 11)
    bench.advance(1)
    due = bench.dispatcher.cluster.eviction_pace.next
    assert due is not None
    bench.delete(due.preemptor)
    bench.submit(workload("another", 1000, priority=5))
    bench.advance(8)
    assert bench.entry("another").phase is Phase.RUNNING


def test_a_clock_that_was_set_back_delays_no_evictions() -> None:
    """Evictions on record that are yet to come were written before that."""
    bench = crowd(30)
    ask(bench, 10)
    bench.advance(30)
    assert len(evicted(bench)) == 10
    bench.now -= 3600 * SECOND
    bench.crash()
    begun = bench.now
    bench.submit(*(workload(f"late-{n}", 900 - n, priority=9) for n in range(5)))
    bench.advance(31)
    running = [bench.entry(f"late-{n}").phase is Phase.RUNNING for n in range(5)]
    assert all(running), "one every 6 s from the restart on"
    assert bench.now - begun < MINUTE


def gang_in_turn() -> Bench:
    """The bucket is spent, and a gang with 12 victims waits until it is full."""
    bench = crowd(30, cpu=600)
    ask(bench, 10, 900)
    bench.advance(1)
    bench.submit(workload("gang", *[900] * 12, priority=9))
    bench.advance(2)
    assert "Its 12 evictions are due at" in bench.condition("gang", "Backoff")[2]
    bench.submit(workload("single", 800, priority=5))
    bench.advance(1)
    assert bench.entry("single").phase is Phase.WAITING
    return bench


def test_the_turn_of_one_that_is_suspended_passes_to_the_next() -> None:
    bench = gang_in_turn()
    bench.edit("uid-gang", suspended=True)
    bench.advance(7)
    assert bench.entry("single").phase is Phase.RUNNING


def test_the_turn_of_one_that_found_room_passes_to_the_next() -> None:
    bench = gang_in_turn()
    for number in range(12):
        bench.feed(NodeSeen(node(f"new-{number}")))
    bench.submit(*(workload(f"more-{n}", 800 - n, priority=5) for n in range(3)))
    bench.advance(7)
    assert bench.entry("gang").phase is Phase.RUNNING
    assert len(evicted(bench)) == 11


def test_what_is_told_of_a_turn_ends_with_it() -> None:
    bench = gang_in_turn()
    for number in range(30):
        bench.edit(f"uid-low-{number:02}", never_preempted=True)
    bench.advance(61)
    assert bench.entry("gang").phase is Phase.WAITING
    assert "due at" not in bench.condition("gang", "Backoff")[2]


def test_no_turn_of_before_a_restart_is_told() -> None:
    bench = gang_in_turn()
    for number in range(30):
        bench.works[f"uid-low-{number:02}"] = replace(
            bench.works[f"uid-low-{number:02}"], never_preempted=True
        )
    bench.crash()
    bench.advance(1)
    assert bench.entry("gang").phase is Phase.WAITING
    assert "due at" not in bench.condition("gang", "Backoff")[2]
