"""The finalizer of the upstream controller is removed, and no other write is overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from mcad.api.labels import FINALIZER
from mcad.controller.adoption import Adoption
from mcad.kube.client import Client
from mcad.kube.recorder import Recorder, Reporter
from tests.controller.clock import LoopClock
from tests.fakeapi import FakeApi, content, refuse

Json = dict[str, Any]
PATH = "/apis/workload.codeflare.dev/v1beta2/namespaces/default/appwrappers/a"


def appwrapper(*finalizers: str, version: str = "10", **spec: Any) -> Json:
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {
            "namespace": "default",
            "name": "a",
            "uid": "uid-a",
            "resourceVersion": version,
            "finalizers": list(finalizers),
        },
        "spec": spec,
    }


class Rig:
    """An adoption at a server with one AppWrapper; ``refusals`` come before the first success."""

    def __init__(self, live: Json, *refusals: int) -> None:
        self.api = FakeApi(version=int(live["metadata"]["resourceVersion"]) - 1)
        self.api.put("appwrappers", live)
        self.api.fail("PATCH", "", *(refuse(code, message="no") for code in refusals))
        self.clock = LoopClock()
        client = Client(self.api, self.clock, Random(1))
        self.recorder = Recorder(client, Reporter("x/y", "z"))
        self.tasks: list[asyncio.Task[None]] = []
        self.adoption = Adoption(client, self.recorder, self.spawn)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    @property
    def live(self) -> Json:
        return self.api.named("appwrappers", "a")

    @property
    def patches(self) -> list[Json]:
        return [content(one) for one in self.api.seen("PATCH")]

    async def see(self, obj: Json, seconds: float = 0.1) -> None:
        self.adoption.seen(obj)
        await self.clock.advance(seconds)


async def test_only_that_finalizer_goes_and_the_patch_is_fenced() -> None:
    seen = appwrapper("other/one", FINALIZER, "other/two")
    rig = Rig(seen)
    rig.adoption.seen(seen)
    await rig.see(seen)  # while the first one is running
    others = ["other/one", "other/two"]
    assert [one.path for one in rig.api.requests] == [PATH]
    assert rig.patches == [{"metadata": {"resourceVersion": "10", "finalizers": others}}]
    assert rig.live["metadata"]["finalizers"] == others
    assert all(task.done() for task in rig.tasks)


@pytest.mark.parametrize(
    "obj",
    [
        appwrapper(),
        appwrapper("other/one", "foregroundDeletion"),
        appwrapper(FINALIZER, managedBy="kueue.x-k8s.io/multikueue"),
    ],
)
async def test_what_is_not_left_behind_is_left_alone(obj: Json) -> None:
    rig = Rig(obj)
    await rig.see(obj)
    assert rig.api.requests == []


async def test_managed_by_the_upstream_controller_means_us() -> None:
    obj = appwrapper(FINALIZER, managedBy="workload.codeflare.dev/appwrapper-controller")
    rig = Rig(obj)
    await rig.see(obj)
    assert rig.live["metadata"]["finalizers"] == []


async def test_after_a_conflict_the_object_is_read_again() -> None:
    rig = Rig(appwrapper(FINALIZER, "new/one", version="12"))
    await rig.see(appwrapper(FINALIZER))
    assert [one["metadata"]["resourceVersion"] for one in rig.patches] == ["10", "12"]
    assert rig.live["metadata"]["finalizers"] == ["new/one"]


async def test_a_finalizer_that_another_client_removed_ends_the_task() -> None:
    rig = Rig(appwrapper(version="12"))
    await rig.see(appwrapper(FINALIZER))
    assert len(rig.patches) == 1
    assert all(task.done() for task in rig.tasks)


async def test_a_deleted_or_replaced_appwrapper_ends_the_task() -> None:
    rig = Rig(appwrapper(FINALIZER))
    rig.api.remove("appwrappers", "a")
    await rig.see(appwrapper(FINALIZER))
    another = appwrapper(FINALIZER)
    another["metadata"]["uid"] = "another"
    rig.api.put("appwrappers", another)
    await rig.see(appwrapper(FINALIZER))
    assert len(rig.patches) == 2
    assert all(task.done() for task in rig.tasks)


async def test_a_refusal_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    obj = appwrapper(FINALIZER)
    rig = Rig(obj, 403, 403, 403)
    await rig.see(obj, 0.5)
    assert len(rig.patches) == 1
    await rig.clock.advance(120)
    assert len(rig.patches) == 4
    assert rig.live["metadata"]["finalizers"] == []
    said = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert said == ["finalizer cannot be removed appwrapper=default/a error=403 Forbidden: no"]


async def test_it_is_told_in_an_event() -> None:
    obj = appwrapper(FINALIZER)
    rig = Rig(obj)
    await rig.see(obj)
    writing = asyncio.ensure_future(rig.recorder.run())
    await rig.clock.advance(0.1)
    writing.cancel()
    event = content(rig.api.requests[-1])
    assert (event["reason"], event["type"]) == ("Adopted", "Normal")
    assert FINALIZER in event["note"]
