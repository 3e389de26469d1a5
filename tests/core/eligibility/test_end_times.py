"""When running AppWrappers are gone: what dates a reservation, and what only an estimate."""

from __future__ import annotations

import pytest

from mcad.core.eligibility import end_times
from mcad.core.eligibility.end_times import NEVER
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import STUCK_AFTER
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect, PodPhase, Workload
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload

MINUTE = 60 * SECOND
RULES = Settings(placement_timeout=0, protect_after=0, policy=Policy.BACKFILL)


def busy(first: Workload, *works: Workload) -> Bench:
    bench = Bench(RULES, nodes=[node()])
    bench.submit(first, *works).settle()
    return bench


def is_dated(bench: Bench, minutes: int) -> bool:
    """Whether ``b`` has a reservation for so many minutes after the start of ``a``."""
    reservation, since = bench.entry("b").reservation, bench.entry("a").record.since
    assert reservation is not None
    return 0 <= reservation.start - since - minutes * MINUTE - STUCK_AFTER < SECOND


@pytest.mark.parametrize(
    ("changes", "minutes"),
    [
        ({}, NEVER),
        ({"run_expected": 5 * MINUTE}, NEVER),  # which promises nothing
        ({"run_limit": 10 * MINUTE}, 10),
        ({"attempt_limit": 20 * MINUTE}, 20),
        ({"run_limit": 10 * MINUTE, "attempt_limit": 20 * MINUTE}, 10),
        ({"run_limit": 20 * MINUTE, "attempt_limit": 10 * MINUTE}, 10),
    ],
)
def test_declared_limits_date_the_reservation_of_an_appwrapper_that_waits(
    changes: dict[str, int], minutes: int
) -> None:
    bench = busy(workload("a", 1000, **changes), workload("b", 1000))
    bench.advance(60)
    if minutes == NEVER:
        assert bench.entry("b").reservation is None
    else:
        assert is_dated(bench, minutes)


def test_a_limit_counts_from_the_first_dispatch_and_that_of_an_attempt_from_each() -> None:
    work = workload("a", 100, run_limit=10 * MINUTE, attempt_limit=8 * MINUTE)
    assert end_times.declared(work, 100, 100) == 100 + 8 * MINUTE
    assert end_times.declared(work, 100, 100 + 5 * MINUTE) == 100 + 10 * MINUTE
    assert end_times.declared(work, 100, 100 + 20 * MINUTE) == 100 + 20 * MINUTE  # it fails at once


def test_a_failed_appwrapper_is_kept_for_a_while_and_so_is_its_room() -> None:
    kept = FaultTolerance(deletion_on_failure_grace=15 * MINUTE)
    first = workload("a", 1000, run_limit=10 * MINUTE, tolerance=kept)
    bench = busy(first, workload("b", 1000))
    bench.bind("a-0")
    bench.advance(60)
    assert is_dated(bench, 25)
    reservation = bench.entry("b").reservation
    assert reservation is not None
    bench.advance(12 * 60)
    assert bench.entry("a").phase is Phase.KEEPING
    cluster = bench.dispatcher.cluster
    assert 0 <= end_times.at_latest(cluster, bench.entry("a")) - reservation.start < SECOND
    bench.advance(15 * 60)
    assert bench.order == ["a", "b"]
    assert bench.entry("b").record.since <= reservation.start


def test_no_limit_runs_before_all_of_it_exists() -> None:
    """The server takes its time: a date that ignored this would promise too much."""
    bench = Bench(RULES, nodes=[node()])
    bench.refuse("CreateItem", *[Answer(429, "TooManyRequests", "later")] * 8)
    bench.submit(workload("a", 1000, run_limit=2 * MINUTE), workload("b", 1000))
    bench.advance(60)
    cluster, entry = bench.dispatcher.cluster, bench.entry("a")
    assert entry.phase is Phase.CREATING
    assert end_times.at_latest(cluster, entry) == cluster.now + 2 * MINUTE + STUCK_AFTER


def test_the_room_of_an_appwrapper_that_is_reset_cannot_be_counted_on() -> None:
    """Neither while its objects go nor in the pause."""
    quick = FaultTolerance(failure_grace=0, retry_pause=300 * SECOND, retry_limit=5)
    first = workload("a", 1000, dialect=Dialect.V1BETA2, tolerance=quick)
    bench = busy(first, workload("b", 1000))
    bench.bind("a-0")
    bench.stubborn.add("a-0")
    bench.change("a-0", phase=PodPhase.FAILED)
    cluster, entry = bench.dispatcher.cluster, bench.entry("a")
    seen = set()
    for _ in range(10):
        bench.decide()
        if entry.keeps_room:
            seen.add(entry.phase)
            assert end_times.at_latest(cluster, entry) == NEVER
            assert not end_times.of_present(cluster, entry).firm
        while bench.pending:
            bench.execute(bench.pending.pop(0))
    assert len(seen) > 1
    assert bench.entry("b").reservation is None


def test_expectations_say_at_the_earliest_and_never_at_the_latest_where_there_is_a_limit() -> None:
    bench = busy(workload("a", 1000, run_limit=10 * MINUTE, run_expected=5 * MINUTE))
    cluster, entry = bench.dispatcher.cluster, bench.entry("a")
    early, limit = entry.record.since + 5 * MINUTE, entry.past.first_dispatch + 10 * MINUTE
    assert end_times.of_present(cluster, entry) == (early, limit + STUCK_AFTER, True)
    bench.edit("uid-a", run_expected=0, run_limit=0)
    assert end_times.of_present(cluster, entry) == (cluster.now, NEVER, False)
