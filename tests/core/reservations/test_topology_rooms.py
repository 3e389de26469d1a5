"""Topology beside reservations, backfill, start estimates, lost nodes and new dispatchers."""

from __future__ import annotations

import pytest

from mcad.core.events import NodeGone
from mcad.core.state.bounds import LOOKS, STUCK_AFTER, Look
from mcad.core.state.model import Constraint, Dialect, PodPhase, Workload
from mcad.core.state.records import replace
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.settings import Policy
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, workload
from tests.core.racks import TOGETHER, close, rack
from tests.core.views.test_start_times import told

BACKFILL = replace(PATIENT, policy=Policy.BACKFILL)
RETRIED = FaultTolerance(retry_limit=3, retry_pause=10 * SECOND)


def _limited(name: str, milli: int, seconds: int, rack: str = "", pods: int = 1) -> Workload:
    """It runs so long at most, in this rack."""
    work = workload(name, *[milli] * pods, run_limit=seconds * SECOND)
    where = Constraint(selector=(("rack", rack),) if rack else ())
    return replace(work, sets=tuple(replace(one, constraint=where) for one in work.sets))


def _racks_of(bench: Bench, name: str) -> set[str]:
    return {node[:2] for node in bench.dispatcher.cluster.capacity.gangs.nodes_of(f"uid-{name}")}


def _busy() -> Bench:
    """Two racks of two nodes with one AppWrapper each. A node of each rack is free after 600 s; the
    first rack is so after 1200, the other one after 3000. A gang needs a whole rack."""
    bench = Bench(BACKFILL, nodes=[*rack("r1", 2), *rack("r2", 2)])
    ends = (("a", "r1", 600), ("b", "r1", 1200), ("c", "r2", 600), ("d", "r2", 3000))
    bench.start(*(_limited(name, 600, seconds, rack) for name, rack, seconds in ends))
    bench.submit(close("gang", 900, 900, run_limit=1000 * SECOND))
    bench.advance(10)
    return bench


def test_a_reservation_holds_one_whole_rack_though_two_nodes_are_free_earlier() -> None:
    bench = _busy()
    reservation = bench.entry("gang").reserved
    assert reservation.reason is ReservationReason.PLANNED
    assert reservation.nodes == ("r1n0", "r1n1")
    assert reservation.start == bench.entry("b").past.first_dispatch + 1200 * SECOND + STUCK_AFTER
    bench.advance(700)  # a node of each rack is free
    assert "gang" not in bench.order
    bench.advance(600)
    assert "gang" in bench.order
    assert _racks_of(bench, "gang") == {"r1"}


def test_backfill_delays_no_gang_that_waits_for_its_rack() -> None:
    bench = _busy()
    bench.submit(_limited("long", 300, 5000, pods=2), _limited("short", 400, 1000, "r1"))
    bench.advance(2 * LOOKS[Look.BACKFILL] // SECOND)
    assert sorted(bench.order[4:]) == ["long", "short"]
    assert _racks_of(bench, "long") == {"r2"}
    bench.submit(_limited("late", 400, 1250, "r1"))
    bench.advance(1400)
    assert "gang" in bench.order
    assert "late" not in bench.order[: bench.order.index("gang")]
    assert (
        bench.entry("gang").past.first_dispatch
        <= bench.entry("b").past.first_dispatch + 1300 * SECOND
    )


def test_the_start_estimate_is_that_of_the_rack_that_is_free_first() -> None:
    for topology, ends in ((TOGETHER, 1200), (None, 600)):
        bench = Bench(PATIENT, nodes=[*rack("r1", 2), *rack("r2", 2)])
        limits = (("a", "r1", 600), ("b", "r1", 1200), ("c", "r2", 600), ("d", "r2", 3000))
        bench.start(*(_limited(name, 600, seconds, rack) for name, rack, seconds in limits))
        gang = workload("gang", 900, 900)
        sets = tuple(replace(one, topology=topology) for one in gang.sets)
        bench.submit(replace(gang, sets=sets))
        bench.advance(1)
        slowest = bench.entry("b" if topology else "a").past.first_dispatch
        latest = told(bench, "gang").latest
        assert latest is not None
        assert abs(latest - slowest - ends * SECOND) <= STUCK_AFTER + SECOND


@pytest.mark.parametrize("levels", [(), ("rack",)])
def test_a_gang_that_loses_a_node_goes_to_a_rack_with_room_for_all_of_it(
    levels: tuple[str, ...],
) -> None:
    settings = replace(PATIENT, topology_levels=levels)
    bench = Bench(settings, nodes=[*rack("r1", 2), *rack("r2", 3)])
    work = close("gang", 900, 900, dialect=Dialect.V1BETA2, tolerance=RETRIED)
    bench.start(work)
    assert _racks_of(bench, "gang") == {"r1"}
    first = bench.entry("gang").record
    for pod, on in zip(("gang-0", "gang-1"), ("r1n0", "r1n1"), strict=True):
        bench.bind(pod, on=on)
    bench.advance(5)
    bench.feed(NodeGone("r1n0"))
    bench.change("gang-0", phase=PodPhase.FAILED)
    bench.advance(900)
    second = bench.entry("gang").record
    assert second.attempt > first.attempt
    assert {one.domain for one in second.domains} == {("rack", "r2")}
    assert _racks_of(bench, "gang") == {"r2"}


@pytest.mark.parametrize("levels", [(), ("rack",)])
def test_a_dispatcher_that_starts_anew_keeps_what_runs_in_its_rack(levels: tuple[str, ...]) -> None:
    settings = replace(PATIENT, topology_levels=levels)
    bench = Bench(settings, nodes=[*rack("r1", 2), *rack("r2", 2)])
    bench.start(close("gang", 400, 400), workload("other", 400, 400))
    before = {name: _racks_of(bench, name) for name in ("gang", "other")}
    record = bench.entry("other").record
    assert record.prefers == (("rack", *before["other"]) if levels else None)
    bench.crash()
    bench.settle()
    assert _racks_of(bench, "gang") == before["gang"]
    assert bench.entry("other").record.prefers == record.prefers
    assert bench.created.most_common(1)[0][1] == 1
