"""What may fit is found in parts, and nothing begins before all is found."""

from __future__ import annotations

import pytest

from mcad.core.cycle import admit, hints
from mcad.core.events import NodeSeen
from mcad.core.state.work_bounds import VERDICT_STEPS
from tests.core.bench import Bench, node, workload
from tests.core.cycle.test_admit import begun, counted, refusals
from tests.core.preemption.test_search import EAGER


def shorten(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    for module in (admit, hints):
        monkeypatch.setattr(module, "STEPS_PER_PASS", steps)


def test_to_find_out_what_may_fit_is_work_too(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, 12 * VERDICT_STEPS)
    bench = Bench(nodes=[node(f"n{i}", 100) for i in range(4)])
    bench.submit(*(workload(f"w{i:02}", *[51 + i] * 6) for i in range(20))).settle()
    assert refusals(bench) == 20
    bench.feed(NodeSeen(node("n0", 300)))
    judged = counted(bench, monkeypatch)
    bench.decide()
    assert judged == [], "to find out took all of the pass"
    assert bench.now in bench.wishes
    bench.decide()
    assert 0 < len(judged) <= 3
    assert bench.now in bench.wishes


def test_nothing_starts_before_all_are_found_that_may_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small demands are found first, and would take the room of a higher priority."""
    bench = Bench(nodes=[node(milli=100)])
    low = [workload(f"w{i}", 200 + i) for i in range(5)]
    bench.submit(*low, workload("high", 300, priority=9)).settle()
    shorten(monkeypatch, 4)
    bench.feed(NodeSeen(node(milli=350)))
    for _ in range(5):
        bench.decide()
        assert begun(bench) == []
        assert bench.now in bench.wishes
    bench.settle()
    assert bench.order == ["high"]


def test_nothing_is_evicted_before_all_are_found_that_may_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``low`` would evict ``a`` and take the new node, on which ``high`` fits."""
    bench = Bench(EAGER, nodes=[node("n1")])
    bench.submit(workload("a", 600)).settle()
    bench.bind("a-0", on="n1")
    bench.advance(1)
    small = [workload(f"w{i}", 500 + i, never_preempts=True) for i in range(8)]
    bench.submit(*small, workload("high", 900, priority=9, never_preempts=True))
    bench.submit(workload("low", 900, 900, priority=5))
    bench.advance(30)
    shorten(monkeypatch, 4)
    bench.feed(NodeSeen(node("n2")))
    bench.advance(30)
    assert bench.order[:2] == ["a", "high"]


def test_a_walk_goes_on_however_often_nodes_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rises while it is found out what may fit is for the time after the next pass."""
    bench = Bench(nodes=[node("n0", 200), *(node(f"n{i}", 100) for i in range(1, 4))])
    bench.submit(*(workload(f"w{i}", 150 + i, 150 + i) for i in range(20))).settle()
    assert refusals(bench) == 20
    bench.submit(workload("last", 50))
    shorten(monkeypatch, 4)
    passes = 0
    while not begun(bench) and passes < 50:
        passes += 1
        bench.feed(NodeSeen(node("n0", 200 + passes)))  # which concerns 20 pod signatures
        bench.decide()
    assert begun(bench) == ["last"]
    assert passes > 1


def test_a_dry_run_finds_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(*(workload(f"w{i}", 200 + i) for i in range(9))).settle()
    shorten(monkeypatch, 4)
    bench.feed(NodeSeen(node(milli=250)))
    bench.decide()
    cluster = bench.dispatcher.cluster
    assert cluster.capacity.is_behind
    hints.take_up_all(cluster)
    assert not cluster.capacity.has_news
