"""AppWrappers that only objects and pods tell of: what those hold after a start, and later (P9)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcad.controller.views import capacity_sums
from mcad.core.commands import DeleteStray
from mcad.core.events import ChildGone, ChildSeen, PodGone, PodSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Child,
    DispatchPhase,
    DispatchRecord,
    ObjectRef,
    Persisted,
    Pod,
    PodPhase,
    Wanted,
)
from tests.core.bench import START, Bench, Thing, cpu, node, workload

JOB = ObjectRef("batch", "v1", "jobs", "Job", "default", "lost")
ALL = 10_000  # milli-CPU of the node
PART = ALL // 10


def lost(ref: ObjectRef = JOB, **changes: Any) -> Child:
    """An object whose AppWrapper does not exist; it says that it wants 40 pods."""
    child = Child(f"obj-{ref.name}", ref, "uid-lost", 3, 0, wants=(Wanted(40),))
    return replace(child, **changes)


def pod_of_lost(name: str, milli: int = 300, on: str = "", **changes: Any) -> Pod:
    phase = PodPhase.RUNNING if on else PodPhase.PENDING
    pod = Pod(f"pod-{name}", "default", name, on, phase, cpu(milli, 1), root="obj-lost")
    return replace(pod, **{"workload": "uid-lost", "item": 0, "index": 0, "attempt": 3} | changes)


def started(*children: Child, pods: tuple[Pod, ...] = ()) -> Bench:
    """A dispatcher that finds these at its start."""
    bench = Bench(nodes=[node(milli=ALL)])
    for child in children:
        bench.feed(ChildSeen(child))
    for pod in pods:
        bench.feed(PodSeen(pod))
    return bench


def room(bench: Bench) -> int:
    """What may still be given away, in milli-CPU."""
    bench.decide()
    bench.dispatcher.cluster.capacity.check()
    return dict(bench.dispatcher.cluster.capacity.report.sums().free).get("cpu", 0)


def pending(*names: str, **changes: Any) -> tuple[Pod, ...]:
    return tuple(pod_of_lost(name, **changes) for name in names)


def test_pods_without_a_node_that_were_found_at_the_start_keep_what_they_request() -> None:
    bench = started(lost(), pods=pending("1", "2"))
    assert room(bench) == ALL - 600
    bench.feed(PodSeen(pod_of_lost("1", on="n1")))  # bound now: it uses what was kept for it
    assert room(bench) == ALL - 600
    bench.feed(PodGone("pod-1"))
    assert room(bench) == ALL - 300
    bench.feed(PodGone("pod-2"))
    assert room(bench) == ALL
    bench.feed(ChildGone("obj-lost"))
    bench.decide()
    assert bench.dispatcher.cluster.entries == {}


def test_the_manifest_of_a_found_object_keeps_nothing() -> None:
    """Any tenant may write that it wants 40 pods, and name an AppWrapper."""
    assert room(started(lost())) == ALL
    running = tuple(pod_of_lost(name, on="n1") for name in "123")
    assert room(started(lost(), pods=running)) == ALL - 900


@pytest.mark.parametrize("milli", [300, PART + 1])
def test_what_is_first_seen_after_the_start_keeps_nothing_beyond_its_nodes(milli: int) -> None:
    bench = started()
    assert room(bench) == ALL
    for _ in range(3):
        bench.feed(ChildSeen(lost()))
        for pod in pending("1", "2", "3", milli=milli):
            bench.feed(PodSeen(pod))
        assert room(bench) == ALL
    bench.feed(PodSeen(pod_of_lost("1", milli, on="n1")))
    assert room(bench) == ALL - milli
    assert bench.dispatcher.cluster.entries == {}


def test_all_that_a_namespace_keeps_is_a_tenth_of_the_nodes() -> None:
    children, pods = [], []
    for number in range(20):
        ref = replace(JOB, name=f"lost-{number}")
        children.append(lost(ref, workload=f"uid-{number}"))
        root = f"obj-lost-{number}"
        pods.append(pod_of_lost(str(number), workload=f"uid-{number}", root=root))
    elsewhere = replace(JOB, name="other", namespace="elsewhere")
    children.append(lost(elsewhere, workload="uid-other"))
    pods.append(pod_of_lost("other", PART, workload="uid-other", root="obj-other"))
    bench = started(*children, pods=tuple(pods))
    assert room(bench) == ALL - PART // 300 * 300 - PART
    kept = capacity_sums(bench.dispatcher.cluster)["unknownAppWrappers"]
    assert kept == {"default": {"cpu": "900m", "pods": "3"}, "elsewhere": {"cpu": "1", "pods": "1"}}
    assert len(bench.dispatcher.cluster.entries) == 4
    bench.advance(601)
    assert capacity_sums(bench.dispatcher.cluster)["unknownAppWrappers"] == {}


def test_one_pod_that_fits_nowhere_keeps_nothing() -> None:
    bench = started(lost(), pods=pending("huge", milli=100 * ALL))
    bench.start(workload("b", ALL - 100))
    assert bench.order == ["b"]


def test_pods_of_several_sizes_are_told_apart_by_their_requests() -> None:
    small, large = pending("small", milli=100), pending("large", milli=500, index=1)
    bench = started(lost(), pods=small + large)
    assert room(bench) == ALL - 600
    bench.feed(PodSeen(pod_of_lost("large", 500, on="n1", index=1)))
    assert room(bench) == ALL - 600
    bench.feed(PodGone("pod-small"))
    assert room(bench) == ALL - 500


def test_it_is_told_about_the_object() -> None:
    bench = Bench(nodes=[node(milli=ALL)])
    bench.feed(ChildSeen(lost()))
    bench.feed(PodSeen(pod_of_lost("1")))
    bench.decide()
    [event] = bench.events
    assert (event.reason, event.warning) == ("AppWrapperUnknown", True)
    assert event.about is not None
    assert (event.about.ref, event.about.uid) == (JOB, "obj-lost")
    assert event.note == (
        "Its AppWrapper (uid uid-lost) does not exist. Room for its pods without a node is kept "
        "for 10m at most (cpu: 300m, pods: 1)."
    )


def test_no_appwrapper_is_dispatched_into_that_room() -> None:
    bench = started(lost(), pods=pending("1", "2", "3"))
    bench.start(workload("b", ALL - 800))
    assert bench.order == []
    bench.feed(ChildGone("obj-lost"))
    bench.settle()
    assert bench.order == ["b"]


def test_its_objects_are_left_to_the_garbage_collector() -> None:
    """That an AppWrapper is not known here does not prove that there is none."""
    bench = started(lost(), pods=pending("1"))
    bench.advance(60)
    assert not [one for one in bench.pending if isinstance(one, DeleteStray)]


def test_nothing_is_kept_beyond_the_grace_whatever_is_seen_of_it() -> None:
    bench = started(lost(), pods=pending("1"))
    bench.things[JOB] = Thing(lost(), cpu(300, 1))
    assert room(bench) == ALL - 300
    bench.advance(601)
    assert room(bench) == ALL
    bench.feed(ChildSeen(lost(terminating=True)))
    bench.feed(PodSeen(pod_of_lost("1")))
    assert room(bench) == ALL
    assert bench.dispatcher.cluster.entries == {}


def test_an_object_without_our_labels_keeps_nothing() -> None:
    assert room(started(lost(labelled=False), pods=pending("1"))) == ALL


def test_an_appwrapper_that_is_told_of_after_its_objects_is_taken_up() -> None:
    """Another leader made it, and each watch has its own pace."""
    bench = Bench(nodes=[node(milli=ALL)])
    work = workload("a", PART)
    ref = work.items[0].ref
    child = Child("obj-1", ref, "uid-a", 1, 0, wants=(Wanted(1),))
    bench.feed(ChildSeen(child))
    own = pod_of_lost("1", PART, workload="uid-a", root="obj-1", attempt=1)
    bench.feed(PodSeen(own))
    assert room(bench) == ALL - PART
    bench.feed(PodGone(own.uid))
    bench.things[ref] = Thing(child, cpu(PART, 1))
    record = DispatchRecord(1, 5, DispatchPhase.DISPATCHED, work.payload, (ref,), START, START)
    bench.submit(replace(work, persisted=Persisted("Running", START, dispatch=record)))
    bench.observe(ref)
    bench.settle()
    assert bench.entry("a").phase is Phase.RUNNING
    assert room(bench) == ALL - PART
    assert bench.names() == ["a-0"]
