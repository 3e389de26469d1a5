"""What is counted along the way."""

from __future__ import annotations

from msgspec.structs import replace

from mcad.controller.metrics import Metrics
from mcad.core.model import Dialect, PodPhase
from mcad.core.rules import FaultTolerance
from mcad.core.units import SECOND
from mcad.kube.clock import RealClock
from tests.core.bench import Bench, node, workload


async def test_attempts_that_end_are_counted_by_cause_and_by_what_follows() -> None:
    bench = Bench(nodes=[node()])
    metrics = Metrics(bench.dispatcher.world, {}, {}, RealClock())
    tolerance = FaultTolerance(failure_grace=SECOND, retry_pause=SECOND, retry_limit=1)
    bench.submit(
        replace(workload("a", 100), dialect=Dialect.V1BETA2, tolerance=tolerance),
        workload("b", 100),
    )
    bench.settle()
    bench.bind("b-0")
    bench.edit("uid-b", suspended=True)
    for _ in range(2):
        bench.bind("a-0")
        bench.change("a-0", phase=PodPhase.FAILED)
        for _ in range(5):
            bench.advance(1)
            for command in bench.events:
                metrics.count(command)
            bench.events.clear()
    page = (await metrics.page()).decode()
    lines = [line for line in page.splitlines() if line.startswith("mcad_attempts_ended_total")]
    assert sorted(lines) == [
        'mcad_attempts_ended_total{next="failed",reason="FoundFailedPods"} 1.0',
        'mcad_attempts_ended_total{next="queued",reason="Suspended"} 1.0',
        'mcad_attempts_ended_total{next="reset",reason="FoundFailedPods"} 1.0',
    ]
