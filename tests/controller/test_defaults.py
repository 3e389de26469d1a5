"""What admission adds to pods is watched, and demands of waiting AppWrappers follow it (C5)."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.core.state.entry import Entry
from tests.controller.test_runtime import Rig, writes
from tests.fakeapi import FakeApi

Json = dict[str, Any]


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
