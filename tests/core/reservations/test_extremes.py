"""The longest durations that users can declare, in all plans that count on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcad.api import labels
from mcad.api.pods import read_pod
from mcad.api.status import read_status, render_status
from mcad.api.tolerance import PREFIX
from mcad.controller.start_time_views import starts_of_line
from mcad.core.commands import Command, WriteStatus
from mcad.core.state.model import Workload
from mcad.core.state.records import replace
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from mcad.journal import codec
from tests.api.builders import Map, accepted, job, pod, template, v1beta1
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, teams

FAR = 2**63 - 1
INT32 = 2**31 - 1  # the most that the API has for a duration in a schedulingSpec
YEARS = 5 * 366 * 24 * 3600 * SECOND

EAGER = replace(PATIENT, preemption=True, min_run_time=0, protect_after=0)
RECLAIM = replace(EAGER, preemption=False, reclaim=True)
BACKFILL = replace(PATIENT, policy=Policy.BACKFILL)
PROTECTING = replace(PATIENT, protect_after=100 * SECOND)


def limits(**duration: int) -> Map:
    return v1beta1(pod(), schedulingSpec={"dispatchDuration": duration})


def annotated(name: str, text: str, wrapped: Map) -> Map:
    wrapped["metadata"]["annotations"] = {PREFIX + name: text}
    return wrapped


MANIFESTS = {
    "grace": v1beta1(
        job(template=template(terminationGracePeriodSeconds=FAR), activeDeadlineSeconds=60)
    ),
    "deadline": v1beta1(job(activeDeadlineSeconds=FAR)),
    "limit": limits(limit=INT32),
    "limit of a year": limits(limit=366 * 24 * 3600 - 1, expected=INT32),
    "expected": limits(expected=INT32),
    "kept": annotated("deletionOnFailureGracePeriodDuration", "2562047h", limits(limit=INT32)),
    "kept after a year": annotated(
        "deletionOnFailureGracePeriodDuration", "2562047h", limits(limit=366 * 24 * 3600 - 1)
    ),
}


def declared(name: str, milli: int, wrapped: Map, **changes: object) -> Workload:
    """An AppWrapper with one pod that runs as this manifest says."""
    read = accepted(wrapped).workload
    spans = ("run_limit", "run_expected", "attempt_limit", "grace", "tolerance")
    return workload(name, milli, **{one: getattr(read, one) for one in spans}, **changes)


def shown(commands: tuple[Command, ...]) -> None:
    """Each status can be written, and the journal takes all commands."""
    codec.digest(commands)
    for command in commands:
        if isinstance(command, WriteStatus):
            status = render_status(command.status, command.uid)
            read = read_status(status)
            assert read is None or read.reservation == command.status.reservation


def busy(settings: Settings, wrapped: Map, **changes: object) -> Bench:
    """Two nodes with an AppWrapper each, whose pods have the longest grace period themselves."""
    bench = Bench(settings, nodes=[node("n1"), node("n2")], heard=shown)
    bench.share(*teams(2000, red=1000, blue=1000))
    for name, on in (("a", "n1"), ("b", "n2")):
        bench.start(declared(name, 900, wrapped, quota=((GOLD, "blue"),), **changes))
        live = pod(terminationGracePeriodSeconds=FAR)
        live["metadata"]["labels"] = {labels.ATTEMPT: "1"}
        bench.change(f"{name}-0", grace=read_pod(live).grace)
        bench.bind(f"{name}-0", on=on)
    bench.advance(5)
    return bench


def preempted(wrapped: Map) -> Bench:
    bench = busy(EAGER, wrapped)
    bench.graceful = True
    return bench.submit(workload("gang", 900, 900, priority=5, quota=((GOLD, "blue"),)))


def reclaimed(wrapped: Map) -> Bench:
    bench = busy(RECLAIM, wrapped)
    bench.graceful = True
    return bench.submit(workload("gang", 900, quota=((GOLD, "red"),)))


def backfilled(wrapped: Map) -> Bench:
    return busy(BACKFILL, wrapped).submit(workload("gang", 900, quota=((GOLD, "red"),)))


def starved(wrapped: Map) -> Bench:
    return busy(PROTECTING, wrapped).submit(workload("gang", 900, quota=((GOLD, "red"),)))


WAYS: dict[str, tuple[Callable[[Map], Bench], ReservationReason]] = {
    "preempted": (preempted, ReservationReason.PREEMPTING),
    "reclaimed": (reclaimed, ReservationReason.RECLAIMING),
    "backfilled": (backfilled, ReservationReason.PLANNED),
    "starved": (starved, ReservationReason.STARVED),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("declares", MANIFESTS)
def test_plans_that_count_on_the_longest_durations_can_be_shown(way: str, declares: str) -> None:
    plan, reason = WAYS[way]
    bench = plan(MANIFESTS[declares])
    bench.submit(*(declared(f"w{i}", 900, MANIFESTS[declares]) for i in range(5)))
    bench.advance(130)
    reservation = bench.entry("gang").reservation
    cluster = bench.dispatcher.cluster
    assert all(one["why"] for one in starts_of_line(cluster, Picture(cluster, bench.now)).values())
    if reservation is None:
        assert (way, declares) in UNKNOWN_ENDS
        return
    assert reservation.reason is reason
    assert bench.now < reservation.until < bench.now + YEARS
    assert reservation.start < bench.now + YEARS
    bench.restart()


UNKNOWN_ENDS = {("backfilled", "expected"), ("backfilled", "limit"), ("backfilled", "kept")}
UNKNOWN_ENDS |= {("backfilled", "deadline")}
"""A limit of more than a year is none, so nothing says when the room comes free."""
