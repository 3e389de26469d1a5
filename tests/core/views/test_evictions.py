"""The AppWrappers that were evicted since some time, each with its last eviction."""

from __future__ import annotations

from mcad.core.events import AppWrapperGone, AppWrapperSeen
from mcad.core.state.model import Persisted
from mcad.core.state.reasons import State
from mcad.core.state.records import replace
from mcad.core.state.reservation import Eviction, ReservationReason
from mcad.core.state.units import SECOND
from mcad.core.views.evictions import evicted_after
from tests.core.bench import Bench, workload
from tests.core.builders import START


def evicted(name: str, ago: int, namespace: str = "default") -> AppWrapperSeen:
    at = START - ago * SECOND
    last = Eviction(1, ReservationReason.PREEMPTING, "uid-x", "default/x", at)
    saved = Persisted(State.PENDING, first_seen=at - SECOND, eviction=last)
    return AppWrapperSeen(replace(workload(name), namespace=namespace, persisted=saved))


def test_the_latest_comes_first_and_older_ones_and_other_namespaces_are_left_out() -> None:
    bench = Bench()
    for event in (
        evicted("old", 3600),
        evicted("first", 3599),
        evicted("b", 60),
        evicted("a", 60),
        evicted("theirs", 30, "team-a"),
        evicted("gone", 10),
        AppWrapperSeen(workload("never")),
        AppWrapperGone("uid-gone"),
    ):
        bench.feed(event)
    since = START - 3600 * SECOND

    def names(namespace: str = "") -> list[str]:
        return [work.name for work, _ in evicted_after(bench.dispatcher.cluster, since, namespace)]

    assert names() == ["theirs", "a", "b", "first"]
    assert names("default") == ["a", "b", "first"]
    assert evicted_after(bench.dispatcher.cluster, since)[0][1].at == START - 30 * SECOND
