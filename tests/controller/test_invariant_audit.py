"""The audit of a running dispatcher: bounded, in turn, loud; what differs is held."""

from __future__ import annotations

from itertools import count

import pytest

from mcad.controller.invariant_audit import AT_ONCE_S, LOGGED_MAX, SHARE, InvariantAudit
from mcad.controller.metrics.leader import Metrics
from mcad.kube.clock import RealClock
from tests.core.bench import Bench, node, workload

READING_S = AT_ONCE_S / 100
"""What each look at the clock of these tests takes."""


def audited(names: int = 3) -> tuple[Bench, InvariantAudit]:
    """AppWrappers that run or wait, and an audit with a CPU clock that moves when it is read."""
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(*(workload(f"a-{number}", 100) for number in range(names)))
    bench.settle()
    ticks = count()
    found: list[tuple[str, str]] = []
    audit = InvariantAudit(
        bench.dispatcher.cluster,
        lambda uid, error: found.append((uid, str(error))),
        lambda: next(ticks) * READING_S,
    )
    return bench, audit


def _unexpected(uid: str, error: Exception) -> None:
    raise AssertionError(f"{uid}: {error}")


def test_each_appwrapper_is_checked_once_at_most() -> None:
    _, audit = audited(3)

    assert audit.check_some(1000.0) == (3, ())


def test_no_more_work_than_its_share_of_the_time_that_has_passed() -> None:
    _, audit = audited(300)
    audit.check_some(1000.0)

    assert audit.check_some(1000.0 + 10 * READING_S / SHARE).appwrappers == 0, "not worth it yet"
    few = audit.check_some(1000.0 + 40 * READING_S / SHARE).appwrappers

    assert 20 <= few <= 45
    assert audit.check_some(1000.0 + 40 * READING_S / SHARE).appwrappers == 0


def test_no_more_at_once_than_its_bound_however_long_nothing_happened() -> None:
    _, audit = audited(300)

    assert 50 <= audit.check_some(1e6).appwrappers <= 101


def test_all_have_their_turn() -> None:
    bench, audit = audited(40)
    audit.check_some(1000.0)
    seen = []
    cluster = bench.dispatcher.cluster
    real = cluster.waiting.queue.eqclass_of
    cluster.waiting.queue.eqclass_of = lambda entry: seen.append(entry.uid) or real(entry)  # type: ignore[method-assign]
    now = 1000.0
    for _ in range(20):
        now += 5 * READING_S / SHARE
        audit.check_some(now)

    assert {f"uid-a-{number}" for number in range(1, 40)} <= set(seen)


async def test_a_violation_is_logged_and_counted_and_everything_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench, audit = audited(2)
    cluster = bench.dispatcher.cluster
    cluster.waiting.for_kind["uid-a-1"] = None

    found = audit.check_some(1000.0)

    assert found == (2, ("waits-for-a-kind-by-its-hold",))
    assert "invariant violated name=waits-for-a-kind-by-its-hold story=" in caplog.text
    metrics = Metrics(cluster, {}, {}, RealClock())
    metrics.count_checks(found)
    page = (await metrics.page()).decode()
    assert "mcad_invariant_checks_total 2.0" in page
    name = "waits-for-a-kind-by-its-hold"
    assert f'mcad_invariant_violations_total{{name="{name}"}} 1.0' in page


def test_a_log_is_not_flooded(caplog: pytest.LogCaptureFixture) -> None:
    bench, audit = audited(2)
    bench.dispatcher.cluster.waiting.for_kind["uid-a-1"] = None

    for second in range(3 * LOGGED_MAX):
        audit.check_some(1000.0 + second)

    assert len(caplog.records) == LOGGED_MAX


def test_what_the_next_cycle_is_going_to_change_is_left_to_it() -> None:
    bench, audit = audited(2)
    cluster = bench.dispatcher.cluster
    cluster.waiting.for_kind["uid-a-1"] = None
    cluster.agenda.to_judge["uid-a-1"] = None

    assert audit.check_some(1000.0) == (2, ())


def test_an_audit_of_nothing() -> None:
    assert InvariantAudit(Bench().dispatcher.cluster, _unexpected).check_some(1.0) == (0, ())
