"""What admission adds to pods is watched, and demands of waiting AppWrappers follow it (C5)."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.core.state.entry import Entry
from mcad.kube.resource import Resource
from tests.controller.test_runtime import KINDS, Rig, writes
from tests.fakeapi import FakeApi

Json = dict[str, Any]

WORKLOAD_PRIORITIES = Resource(
    "kueue.x-k8s.io",
    "v1beta1",
    "workloadpriorityclasses",
    "WorkloadPriorityClass",
    namespaced=False,
)


def add_range(server: FakeApi, cpu: str, namespace: str = "default") -> None:
    """Containers of the namespace that say nothing request so much."""
    limit = {"type": "Container", "defaultRequest": {"cpu": cpu}}
    meta = {"name": f"limits-{namespace}", "namespace": namespace}
    server.put("limitranges", {"metadata": meta, "spec": {"limits": [limit]}})


def add_class(server: FakeApi, cpu: str, name: str = "kata") -> None:
    """Pods of the class have so much overhead."""
    overhead = {"podFixed": {"cpu": cpu}}
    server.put("runtimeclasses", {"metadata": {"name": name}, "overhead": overhead})


def add_priority(server: FakeApi, name: str = "gentle", **said: Any) -> None:
    """A PriorityClass."""
    server.put("priorityclasses", {"metadata": {"name": name}, "value": 5} | said)


def add(server: FakeApi, name: str, **spec: Any) -> None:
    """An AppWrapper with a pod that requests nothing."""
    template = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    server.put("appwrappers", {"metadata": meta, "spec": {"components": [{"template": template}]}})


def entry(rig: Rig, name: str) -> Entry:
    """What the core knows of it."""
    return rig.cluster.entries[f"uid-{name}"]


def cpu(rig: Rig, name: str) -> int:
    """What the only pod of an AppWrapper is taken to request."""
    return dict(entry(rig, name).workload.sets[0].request).get("cpu", 0)


async def test_what_is_there_at_the_start_counts_from_the_first_decision_on() -> None:
    rig = Rig()
    add_range(rig.server, "800m")
    add(rig.server, "a")
    add(rig.server, "b")
    async with rig:
        await rig.clock.advance(1.0)
        assert writes(rig.server).count(("create", "pods")) == 1
        assert [cpu(rig, name) for name in "ab"] == [800, 800]


async def test_the_demand_of_waiting_appwrappers_follows_a_limit_range() -> None:
    rig = Rig()
    add_range(rig.server, "2")
    add(rig.server, "a")
    async with rig:
        before = entry(rig, "a").workload.payload
        for said, expected in (("3", 3000), ("1500m", 1500)):
            add_range(rig.server, said)
            await rig.clock.advance(0.5)
            assert cpu(rig, "a") == expected
        add_range(rig.server, "9", namespace="other")
        await rig.clock.advance(0.5)
        assert cpu(rig, "a") == 1500
        assert ("create", "pods") not in writes(rig.server)
        rig.server.remove("limitranges", "limits-default")
        await rig.clock.advance(1.0)
        assert ("create", "pods") in writes(rig.server)
        assert entry(rig, "a").workload.payload == before, "what is created is the manifest (P8)"


async def test_what_is_dispatched_keeps_the_room_that_it_has() -> None:
    rig = Rig()
    add_range(rig.server, "400m")
    add(rig.server, "a")
    async with rig:
        await rig.clock.advance(1.0)
        reserved = rig.cluster.capacity.report.sums().reserved
        add_range(rig.server, "900m")
        await rig.clock.advance(1.0)
        cluster = rig.cluster
        assert cluster.capacity.report.sums().reserved == reserved
        assert dict(reserved)["cpu"] == 400
        assert entry(rig, "a").attempt == 1


async def test_the_overhead_of_a_runtime_class_counts_for_pods_that_name_it() -> None:
    rig = Rig()
    add_class(rig.server, "2")
    add(rig.server, "a", runtimeClassName="kata")
    add(rig.server, "b", runtimeClassName="runc")
    async with rig:
        await rig.clock.advance(0.5)
        assert [cpu(rig, name) for name in "ab"] == [2000, 0]
        add_class(rig.server, "3")
        await rig.clock.advance(0.5)
        assert [cpu(rig, name) for name in "ab"] == [3000, 0]
        rig.server.remove("runtimeclasses", "kata")
        await rig.clock.advance(0.5)
        assert cpu(rig, "a") == 0


async def test_preemption_policies_follow_the_priority_classes() -> None:
    rig = Rig()
    add_priority(rig.server, preemptionPolicy="Never")
    add(rig.server, "a", priorityClassName="gentle")
    add(rig.server, "b")

    async def never() -> list[bool]:
        await rig.clock.advance(0.5)
        return [entry(rig, name).workload.never_preempts for name in "ab"]

    async with rig:
        assert await never() == [True, False]
        add_priority(rig.server)
        assert await never() == [False, False]
        add_priority(rig.server, preemptionPolicy="Never", globalDefault=True)
        assert await never() == [True, True]
        add_priority(rig.server, preemptionPolicy="Never")
        assert await never() == [True, False]
        rig.server.remove("priorityclasses", "gentle")
        assert await never() == [False, False]


@pytest.mark.parametrize("plural", ["limitranges", "runtimeclasses", "priorityclasses"])
async def test_without_the_right_to_list_them_one_warning_is_logged(
    plural: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    rig.server.deny(plural, method="GET")
    add(rig.server, "a")
    async with rig:
        await rig.clock.advance(120.0)
        assert ("create", "pods") in writes(rig.server)
    said = [one.getMessage() for one in caplog.records if plural in one.getMessage()]
    assert len(said) == 1
    assert "403" in said[0]


# -- the priority of an AppWrapper without one ---------------------------------------------------


def priority_of(rig: Rig, name: str) -> tuple[int, str]:
    """The priority that it queues with, and where that is from."""
    work = entry(rig, name).workload
    return work.priority, str(work.priority_source or "")


def edit(server: FakeApi, name: str, **spec: Any) -> None:
    """The spec changes."""

    def change(obj: Json) -> None:
        obj["spec"].update(spec)
        obj["metadata"]["generation"] += 1

    server.change("appwrappers", name, change)


def label(server: FakeApi, name: str, priority_class: str) -> None:
    """The label of Kueue names a WorkloadPriorityClass."""
    labels = {"kueue.x-k8s.io/priority-class": priority_class}
    server.change("appwrappers", name, lambda obj: obj["metadata"].update(labels=labels))


async def test_the_priority_is_that_of_the_class_of_the_pods_or_of_the_global_default() -> None:
    rig = Rig()
    add_priority(rig.server, "high", value=10)
    add_priority(rig.server, "usual", value=5, globalDefault=True)
    add(rig.server, "a", priorityClassName="high")
    add(rig.server, "b")
    add(rig.server, "c", priorityClassName="high")
    edit(rig.server, "c", priority=0)
    add(rig.server, "d", priorityClassName="high")
    label(rig.server, "d", "kueues")  # whose classes are not served
    async with rig:
        await rig.clock.advance(0.5)
        assert priority_of(rig, "a") == (10, "PriorityClass high")
        assert priority_of(rig, "b") == (5, "PriorityClass usual")
        assert priority_of(rig, "c") == (0, "")
        assert priority_of(rig, "d") == (10, "PriorityClass high")
        status = rig.status("a")
        assert status["prioritySource"] == {"kind": "PriorityClass", "name": "high", "value": 10}
        assert status["systempriority"] == 10


async def test_of_several_pod_sets_the_first_that_names_a_class_counts() -> None:
    rig = Rig()
    add_priority(rig.server, "low", value=-3)
    add_priority(rig.server, "high", value=10)
    for name, classes in {"a": ("", "low", "high"), "b": ("high", "low")}.items():
        add(rig.server, name)
        first = rig.server.named("appwrappers", name)["spec"]["components"][0]["template"]
        edit(rig.server, name, components=[_classed(first, *one) for one in enumerate(classes)])
    async with rig:
        await rig.clock.advance(0.5)
        assert priority_of(rig, "a") == (-3, "PriorityClass low")
        assert priority_of(rig, "b") == (10, "PriorityClass high")


def _classed(template: Json, number: int, name: str) -> Json:
    """One of several pods, of a class or of none."""
    named = {"priorityClassName": name} if name else {}
    meta = {"name": f"{template['metadata']['name']}-{number}"}
    return {"template": template | {"metadata": meta, "spec": template["spec"] | named}}


async def test_a_priority_stays_what_it_was_at_the_submission() -> None:
    rig = Rig()
    add_priority(rig.server, "high", value=10)
    add(rig.server, "a", priorityClassName="high")
    add(rig.server, "b")
    add(rig.server, "later", priorityClassName="later")
    async with rig:
        await rig.clock.advance(0.5)
        assert priority_of(rig, "later") == (0, "")
        add_priority(rig.server, "high", value=20)
        add_priority(rig.server, "usual", value=5, globalDefault=True)
        add_priority(rig.server, "later", value=7)
        await rig.clock.advance(0.5)
        edit(rig.server, "a", minAvailable=1)
        edit(rig.server, "b", minAvailable=1)
        await rig.clock.advance(0.5)
        assert priority_of(rig, "a") == (10, "PriorityClass high")
        assert priority_of(rig, "b") == (0, "")
        assert priority_of(rig, "later") == (7, "PriorityClass later")
        edit(rig.server, "a", priority=3)
        await rig.clock.advance(0.5)
        assert priority_of(rig, "a") == (3, "")
        assert "prioritySource" not in rig.status("a")
    successor = Rig(server=rig.server)
    async with successor:
        await successor.clock.advance(0.5)
        assert priority_of(successor, "b") == (0, "")
        assert priority_of(successor, "later") == (7, "PriorityClass later")


async def test_where_kueues_classes_are_served_the_label_goes_first() -> None:
    rig = Rig(server=FakeApi(served=(*KINDS, WORKLOAD_PRIORITIES)))
    rig.server.put("workloadpriorityclasses", {"metadata": {"name": "kueues"}, "value": 30})
    add_priority(rig.server, "high", value=10)
    add_priority(rig.server, "usual", value=5, globalDefault=True)
    for name, named in {"a": "kueues", "b": "later", "c": "kueues"}.items():
        add(rig.server, name, priorityClassName="high")
        label(rig.server, name, named)
    edit(rig.server, "c", priority=1)
    async with rig:
        await rig.clock.advance(0.5)
        assert priority_of(rig, "a") == (30, "WorkloadPriorityClass kueues")
        assert priority_of(rig, "b") == (0, "")  # Kueue makes no Workload before there is one
        assert priority_of(rig, "c") == (1, "")
        rig.server.put("workloadpriorityclasses", {"metadata": {"name": "later"}, "value": 40})
        await rig.clock.advance(0.5)
        assert priority_of(rig, "b") == (40, "WorkloadPriorityClass later")
