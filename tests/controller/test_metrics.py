"""What is counted along the way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.controller.metrics import quota
from mcad.controller.metrics.leader import Metrics
from mcad.core.commands import RecordEvent
from mcad.core.state.model import Dialect, PodPhase, Workload
from mcad.core.state.reasons import EventReason
from mcad.core.state.reservation import Reservation, ReservationReason
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from mcad.kube.clock import RealClock
from tests.core.attempts.test_remains import gone, outlived
from tests.core.bench import Bench, node, workload
from tests.core.quota.test_usage import bench, of
from tests.core.quotas import SILVER, child, subtree


async def test_attempts_that_end_are_counted_by_cause_and_by_what_follows() -> None:
    cluster = Bench(nodes=[node()])
    metrics = Metrics(cluster.dispatcher.cluster, {}, {}, RealClock())
    cluster.heard = metrics.count_step
    tolerance = FaultTolerance(failure_grace=SECOND, retry_pause=SECOND, retry_limit=1)
    cluster.submit(
        replace(workload("a", 100), dialect=Dialect.V1BETA2, tolerance=tolerance),
        workload("b", 100),
    )
    cluster.settle()
    cluster.bind("b-0")
    cluster.edit("uid-b", suspended=True)
    for _ in range(2):
        cluster.bind("a-0")
        cluster.change("a-0", phase=PodPhase.FAILED)
        for _ in range(5):
            cluster.advance(1)
    page = (await metrics.page()).decode()
    lines = [line for line in page.splitlines() if line.startswith("mcad_attempts_ended_total")]
    assert sorted(lines) == [
        'mcad_attempts_ended_total{next="failed",reason="FoundFailedPods"} 1.0',
        'mcad_attempts_ended_total{next="queued",reason="Suspended"} 1.0',
        'mcad_attempts_ended_total{next="reset",reason="FoundFailedPods"} 1.0',
    ]


def event(name: str, reason: EventReason) -> RecordEvent:
    return RecordEvent(f"uid-{name}", warning=False, reason=reason, action="Reservation", note="")


async def test_reservations_are_counted_by_reason() -> None:
    cluster = Bench(nodes=[node()])
    metrics = Metrics(cluster.dispatcher.cluster, {}, {}, RealClock())
    cluster.submit(*(workload(name, 2000) for name in "abc"))
    cluster.settle()
    kept = cluster.dispatcher.cluster.reservations
    for name, reason in zip(
        "abc", (*[ReservationReason.STARVED] * 2, ReservationReason.PLANNED), strict=True
    ):
        kept.add(cluster.entry(name), Reservation(reason, since=1, until=2), {})
        metrics.count_step((event(name, EventReason.ROOM_RESERVED),))
    kept.remove(cluster.entry("b"))
    metrics.count_step((event("b", EventReason.RESERVATION_ENDED),))
    page = (await metrics.page()).decode()
    lines = (line for line in page.splitlines() if line.startswith("mcad_reservations"))
    assert sorted(filter(is_positive, lines)) == [
        "mcad_reservations_given_up_total 1.0",
        'mcad_reservations_made_total{reason="Planned"} 1.0',
        'mcad_reservations_made_total{reason="Starved"} 2.0',
        'mcad_reservations{reason="Planned"} 1.0',
        'mcad_reservations{reason="Starved"} 1.0',
    ]


def is_positive(line: str) -> bool:
    return not line.endswith(" 0.0")


async def quota_lines(made: Bench) -> list[str]:
    page = await Metrics(made.dispatcher.cluster, {}, {}, RealClock()).page()
    lines = [line for line in page.decode().splitlines() if "_quota_" in line]
    return sorted(line for line in lines if line[0] != "#" and is_positive(line))


async def test_every_node_of_a_quota_tree_has_its_figures_in_base_units() -> None:
    made = bench(2000, red=500, blue=1500)
    made.share(subtree("x", child("lost", cpu=1), child("too", cpu=1), parent="nobody"))
    made.share(subtree("y", child("lone", cpu=1), parent="root", tree=SILVER))
    made.share(subtree("z", child("lost"), tree=""))
    made.submit(of("red", "a", 1200), of("red", "b", 900))
    made.settle()
    assert await quota_lines(made) == [
        'mcad_invalid_quota_subtrees{reason="NoRoot",tree="silver"} 1.0',
        'mcad_invalid_quota_subtrees{reason="NoTree",tree=""} 1.0',
        'mcad_invalid_quota_subtrees{reason="ParentMissing",tree="gold"} 1.0',
        'mcad_quota_allocated{node="red",resource="cpu",tree="gold"} 1.2',
        'mcad_quota_allocated{node="root",resource="cpu",tree="gold"} 1.2',
        'mcad_quota_borrowed{node="red",resource="cpu",tree="gold"} 0.7',
        'mcad_quota_lent{node="blue",resource="cpu",tree="gold"} 0.7',
        'mcad_quota_nominal{node="blue",resource="cpu",tree="gold"} 1.5',
        'mcad_quota_nominal{node="red",resource="cpu",tree="gold"} 0.5',
        'mcad_quota_nominal{node="root",resource="cpu",tree="gold"} 2.0',
        'mcad_quota_waiting{node="red",resource="cpu",tree="gold"} 0.9',
        'mcad_quota_waiting{node="root",resource="cpu",tree="gold"} 0.9',
    ]


async def test_the_share_of_a_deleted_appwrapper_is_allocated_until_its_pods_are_gone() -> None:
    made = outlived()
    gone(made)
    made.advance(60)
    assert 'mcad_quota_allocated{node="red",resource="cpu",tree="gold"} 1.0' in (
        await quota_lines(made)
    )
    for pod in list(made.left):
        made.end_pod(pod)
    made.settle()
    assert made.order == ["a", "b"]
    assert 'mcad_quota_allocated{node="red",resource="cpu",tree="gold"} 0.9' in (
        await quota_lines(made)
    )


async def test_a_share_that_is_not_used_is_zero() -> None:
    made = bench(2000, red=500)
    made.decide()
    page = await Metrics(made.dispatcher.cluster, {}, {}, RealClock()).page()
    assert 'mcad_quota_borrowed{node="red",resource="cpu",tree="gold"} 0.0' in page.decode()


async def test_of_a_very_large_tree_the_nodes_next_to_the_root_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quota, "NODES_SHOWN", 3)
    made = bench(2000, red=500, blue=1500)
    made.share(subtree("deep", child("deeper", cpu=1), child("too", cpu=1), parent="red"))
    made.decide()
    lines = await quota_lines(made)
    nodes = {line.split('node="')[1].split('"')[0] for line in lines if "node=" in line}
    assert nodes == {"root", "red", "blue"}


async def test_without_quota_trees_there_are_no_metrics_of_them() -> None:
    assert await quota_lines(Bench(nodes=[node()])) == []


def _said(page: bytes, name: str) -> list[str]:
    return sorted(line for line in page.decode().splitlines() if line.startswith(f"{name}{{"))


async def test_both_dialects_are_told_of_in_the_same_words() -> None:
    """In metrics, in Events, in status and in the rows of the CLI, for the same life."""

    def made(name: str, milli: int, dialect: Dialect) -> Workload:
        work = workload(name, milli, dialect=dialect)
        items = tuple(replace(one, completion=("succeeded",)) for one in work.items)
        return replace(work, items=items)

    async def told(dialect: Dialect) -> list[object]:
        bench = Bench(nodes=[node()])
        metrics = Metrics(bench.dispatcher.cluster, {}, {}, RealClock())
        bench.heard = metrics.count_step
        works = {"done": 100, "runs": 100, "held": 100, "large": 950}
        bench.submit(*(made(name, milli, dialect) for name, milli in works.items()))
        bench.settle()
        bench.edit("uid-held", suspended=True)
        bench.bind("runs-0")
        bench.change("done-0", phase=PodPhase.SUCCEEDED, node="n1")
        bench.advance(60)
        page = await metrics.page()
        picture = Picture(bench.dispatcher.cluster, bench.now)
        rows = [row for row in picture.rows(lambda *_: True) if row is not None]
        assert {row.uid: row.state for row in rows} == {
            uid: view.state for uid, view in bench.status.items()
        }
        states = sorted((row.name, row.state, row.waits_for) for row in rows)
        events = [(event.uid, event.reason) for event in bench.events]
        gauges = ("mcad_appwrappers", "mcad_pending_appwrappers", "mcad_events_total")
        return [states, events, *(_said(page, name) for name in gauges)]

    older = await told(Dialect.V1BETA1)
    assert older == await told(Dialect.V1BETA2)
    assert older[0] == [
        ("done", "Completed", ""),
        ("held", "Pending", "Suspended"),
        ("large", "Pending", "cpu"),
        ("runs", "Running", ""),
    ]
