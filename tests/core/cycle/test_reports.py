"""Reports in a pass: what has no verdict yet keeps none of the others waiting."""

from __future__ import annotations

import pytest

from mcad.core.commands import WriteStatus
from mcad.core.cycle import admit, cycle
from mcad.core.state.reasons import ConditionType
from tests.core.bench import Bench, node, workload


def test_a_reason_to_wait_is_reported_while_many_before_it_have_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admit, "DISPATCHES_PER_PASS", 1)
    monkeypatch.setattr(cycle, "REPORTS_PER_PASS", 5)
    bench = Bench(nodes=[node(milli=10_000)])
    bench.submit(*(workload(f"fits-{number}", 100 + number) for number in range(20)))
    bench.submit(workload("held", 100, suspended=True))
    for _ in range(5):
        bench.decide()
    written = [one.uid for one in bench.pending if isinstance(one, WriteStatus)]
    assert "uid-held" in written
    assert len([uid for uid in written if "fits" in uid]) == 5, "one a pass is dispatched"


def test_what_had_no_verdict_is_reported_once_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admit, "WORK_PER_PASS", 1)
    monkeypatch.setattr(cycle, "REPORTS_PER_PASS", 3)
    bench = Bench(nodes=[node(milli=1000)])
    bench.start(*(workload(f"large-{number}", 2000 + number) for number in range(10)))
    reported = [bench.condition(f"large-{n}", ConditionType.BACKOFF) for n in range(10)]
    assert None not in reported
    assert not bench.dispatcher.cluster.agenda.to_report_later
