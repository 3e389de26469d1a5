"""A gang that waited for the bindings of another one is counted, with its time, and no other."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.binding_waits import Waits, waits
from mcad.core.cluster import Cluster
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND, Instant
from tests.core.bench import PATIENT, Bench, node, workload


def _story(bench: Bench) -> Iterator[tuple[Instant, Cluster]]:
    """The second gang waits for two seconds, until the pod of the first one is bound."""
    bench.start(workload("small", 100)).start(workload("large", 1000))
    yield bench.now, bench.dispatcher.cluster
    bench.advance(2)
    yield bench.now, bench.dispatcher.cluster
    bench.bind("small-0", "part").settle()
    yield bench.now, bench.dispatcher.cluster


def test_the_one_that_waited_is_counted() -> None:
    settings = replace(PATIENT, binding_wait=5 * SECOND)
    bench = Bench(settings, nodes=[node("part", 900), node("whole", 1000)])
    found = waits(_story(bench))
    assert (found.started, [one // SECOND for one in found.waits]) == (2, [2])
    told = "waited for bindings: p50 2.00 s, most 2.00 s; 1.000 s at the mean of all"
    assert str(found) == f"2 started, 1 of them {told}"


def test_where_none_waits_none_is_counted() -> None:
    bench = Bench(replace(PATIENT, binding_wait=0), nodes=[node("part", 900), node("whole", 1000)])
    found = waits(_story(bench))
    assert found == Waits(2, [])
    assert str(found) == "2 started, 0 of them waited for bindings"
