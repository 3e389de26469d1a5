"""What admission adds to pods is learned of them (ADR 61)."""

from __future__ import annotations

import pytest

from mcad.core.events import AppWrapperSeen, Decide, NodeSeen, PodSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Resources
from mcad.core.state.reasons import ConditionType, EventReason
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from tests.core.bench import Bench, node, workload

SIDECAR: Resources = (("cpu", 500),)
MORE = "Admission adds 500m cpu to each pod of Pod default/{}-0, which counts as well."


def added(bench: Bench, name: str) -> Resources:
    """What counts of a pod beside its template."""
    (one,) = bench.entry(name).workload.sets
    return one.added


def cpu_of(bench: Bench, name: str) -> int:
    (one,) = bench.entry(name).workload.sets
    return dict(one.request)["cpu"]


def meshed(milli: int = 2000, **fields: object) -> Bench:
    """An AppWrapper with a pod of 2 CPUs, to which 500m is added, is dispatched."""
    bench = Bench(nodes=[node(milli=milli)], adds=SIDECAR, **fields)
    return bench.start(workload("a", 2000))


def test_the_next_attempt_counts_what_the_pods_have_shown() -> None:
    bench = meshed(settings=Settings(placement_timeout=60_000_000, binding_wait=0))
    assert (added(bench, "a"), cpu_of(bench, "a")) == (SIDECAR, 2500)
    bench.advance(3600)
    assert sum(n for (uid, *_), n in bench.created.items() if uid == "uid-a") == 1
    backoff = bench.entry("a").conditions[ConditionType.BACKOFF]
    assert MORE.format("a") in backoff.message
    bench.feed(NodeSeen(node("larger", 2500)))
    bench.advance(60)
    assert sum(bench.created.values()) == 2


def test_it_is_told_once() -> None:
    bench = meshed()
    bench.change("a-0", node="n1")
    bench.advance(3600)
    notes = [one.note for one in bench.events if one.reason == EventReason.PODS_ASK_FOR_MORE]
    assert notes == [MORE.format("a")]


def test_appwrappers_with_such_a_template_count_it_too() -> None:
    bench = meshed(milli=5000).bind("a-0")
    bench.submit(workload("b", 2500))  # with 500m more it does not fit beside a
    bench.submit(workload("c", 400, namespace="other"))
    bench.settle()
    assert added(bench, "b") == SIDECAR
    assert added(bench, "c") == (), "of another namespace"
    assert bench.order == ["a", "c"]
    assert MORE.format("b") in bench.entry("b").conditions[ConditionType.BACKOFF].message


def test_appwrappers_that_wait_already_are_judged_anew() -> None:
    bench = Bench(nodes=[node(milli=2000)], adds=SIDECAR)
    for name, milli, priority in (("b", 2100, 1), ("a", 2000, 0)):
        bench.submit(workload(name, milli, priority=priority))
    bench.settle()
    assert (bench.order, added(bench, "b")) == (["a"], SIDECAR)
    bench.feed(NodeSeen(node("n2", 2500)))
    bench.settle()
    assert bench.order == ["a"], "it asks for 2600m"
    bench.feed(NodeSeen(node("n3", 2600)))
    bench.settle()
    assert bench.order == ["a", "b"]


def test_it_is_forgotten_with_the_last_appwrapper_that_has_shown_it() -> None:
    bench = meshed(milli=2600)
    bench.submit(workload("b", 2000))
    bench.settle()
    assert added(bench, "b") == SIDECAR
    bench.adds = ()
    bench.delete("uid-a")
    bench.advance(600)
    assert added(bench, "b") == ()
    found = bench.dispatcher.cluster.injections
    assert not found.shown
    assert not found._templates


def test_pods_that_show_less_later_correct_it() -> None:
    """The injector is switched off: the next pods that are made show that."""
    bench = meshed(milli=2600, settings=Settings(placement_timeout=0, binding_wait=0))
    bench.submit(workload("b", 2000))
    bench.settle()
    bench.adds = ()
    bench.feed(NodeSeen(node("n3", 3000)))
    bench.settle()
    assert bench.created["uid-b", 1, 0]
    assert (added(bench, "a"), added(bench, "b")) == (SIDECAR, ())
    bench.submit(workload("c", 2000))
    bench.settle()
    assert added(bench, "c") == (), "the last pods count"


@pytest.mark.parametrize(
    "change",
    [
        {"edited": True},  # resized in place
        {"attempt": 7},
        {"item": 3},
        {"index": 3},
        {"index": -1},
        {"workload": "uid-of-no-one"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_no_injection(change: dict[str, object]) -> None:
    bench = Bench(nodes=[node(milli=2000)]).start(workload("a", 2000))
    (pod,) = bench.dispatcher.cluster.capacity.pods.of("uid-a")
    more = replace(pod, uid="other", request=(("cpu", 2500), ("pods", 1)))
    bench.feed(PodSeen(replace(more, **change)))
    bench.settle()
    assert added(bench, "a") == ()
    bench.feed(PodSeen(replace(more, uid="third")))
    bench.settle()
    assert added(bench, "a") == SIDECAR, "else the test shows nothing"


def test_defaults_that_go_later_are_no_injection() -> None:
    """The pod has the default of a LimitRange that was deleted since."""
    bench = Bench(nodes=[node(milli=2000)]).start(workload("a", 2000))
    bench.feed(AppWrapperSeen(workload("a", 1500)))
    bench.bind("a-0")
    bench.settle()
    assert (added(bench, "a"), cpu_of(bench, "a")) == ((), 1500)


def test_a_template_that_was_edited_shows_nothing() -> None:
    bench = Bench(nodes=[node(milli=2000)]).start(workload("a", 2000))
    (pod,) = bench.dispatcher.cluster.capacity.pods.of("uid-a")
    bench.submit(replace(workload("a", 1000), payload="other"))
    bench.feed(PodSeen(replace(pod, uid="other", request=(("cpu", 2500), ("pods", 1)))))
    bench.settle()
    assert not bench.dispatcher.cluster.injections.shown


def test_sets_that_users_declare_by_numbers_are_left_alone() -> None:
    work = workload("a", 2000)
    numbers = replace(work, sets=tuple(replace(one, path="") for one in work.sets))
    bench = Bench(nodes=[node(milli=2000)], adds=SIDECAR).start(numbers)
    assert added(bench, "a") == ()


def test_defaults_that_come_later_are_not_counted_twice() -> None:
    """The pods have the default of a LimitRange that the dispatcher sees after them."""
    bench = meshed()
    bench.submit(workload("b", 2000))
    bench.settle()
    assert cpu_of(bench, "b") == 2500
    for name in ("b", "a"):
        bench.feed(AppWrapperSeen(workload(name, 2500)))
    bench.settle()
    for name in ("a", "b"):
        assert (added(bench, name), cpu_of(bench, name)) == ((), 2500)


def test_a_restart_learns_it_of_pods_that_still_exist() -> None:
    bench = meshed()
    bench.crash()
    bench.settle()
    assert added(bench, "a") == SIDECAR
    bench.submit(workload("b", 2000))
    bench.settle()
    assert added(bench, "b") == SIDECAR


def test_a_restart_reads_it_from_the_record_of_an_attempt_that_is_over() -> None:
    bench = meshed(settings=Settings(placement_timeout=60_000_000, binding_wait=0))
    bench.advance(600)
    assert (bench.order, bench.entry("a").phase) == (["a"], Phase.WAITING)
    bench.crash()
    bench.settle()
    assert added(bench, "a") == SIDECAR
    bench.advance(600)
    assert bench.order == ["a"]


def test_an_edit_of_the_template_keeps_what_is_added() -> None:
    bench = meshed(settings=Settings(placement_timeout=60_000_000, binding_wait=0))
    bench.advance(600)
    bench.submit(replace(workload("a", 1000), payload="other"))
    bench.settle()
    assert (added(bench, "a"), cpu_of(bench, "a")) == (SIDECAR, 1500)
    assert bench.order == ["a", "a"]


def test_what_is_added_is_no_news_at_each_pass() -> None:
    bench = meshed()
    bench.submit(workload("b", 2000))
    bench.settle()
    before = bench.entry("b").workload
    bench.feed(Decide())
    assert bench.entry("b").workload is before
    assert not bench.dispatcher.cluster.injections.stale
