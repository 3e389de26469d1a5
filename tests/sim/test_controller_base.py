"""What every simulated controller has: its queue, and the Events that it writes."""

import asyncio
from random import Random
from typing import Any

from mcad.kube.types import Json
from mcad.sim.clock import VirtualClock
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.events import TTL_S, EventExpiry, Recorder
from mcad.sim.failures import bad_request
from mcad.sim.registry import Registry
from tests.sim.worlds import virtually


class Noting(Controller):
    """Notes what it looks at and when; fails as told, by key."""

    def __init__(self, *keys: str, **faults: list[Exception]) -> None:
        super().__init__(Registry(VirtualClock(), Random(1)))
        self.faults = faults
        self.seen: list[tuple[str, float]] = []
        self.wrong: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: self.wrong.append(what))
        for key in keys:
            self.enqueue(("", key))

    def start(self) -> None:
        pass

    def reconcile(self, key: Any) -> None:
        self.seen.append((key[1], round(asyncio.get_running_loop().time(), 3)))
        if self.faults.get(key[1]):
            raise self.faults[key[1]].pop()

    async def stopped_after(self, seconds: float) -> list[tuple[str, float]]:
        await asyncio.sleep(seconds)
        self.stop()
        await asyncio.sleep(5)
        return self.seen


@virtually
async def test_a_key_that_waits_is_not_enqueued_twice() -> None:
    assert await Noting("a", "b", "a").stopped_after(1) == [("a", 0), ("b", 0)]


@virtually
async def test_a_refusal_is_tried_again_later_and_later() -> None:
    controller = Noting("a", "b", a=[bad_request("no"), bad_request("no")])
    assert await controller.stopped_after(1) == [("a", 0), ("b", 0), ("a", 0.2), ("a", 0.6)]
    assert not controller.wrong


@virtually
async def test_a_fault_of_ours_does_not_stop_the_others() -> None:
    controller = Noting("a", "b", "c", a=[KeyError("ours")])
    assert [name for name, _ in await controller.stopped_after(1)] == ["a", "b", "c"]
    assert isinstance(controller.wrong[0]["exception"], KeyError)


@virtually
async def test_a_controller_with_a_lag_looks_later_and_in_order() -> None:
    controller = Noting()
    controller.lag_s = 2.0
    controller.enqueue(("", "a"))
    await asyncio.sleep(1)
    controller.enqueue(("", "b"))
    controller.enqueue(("", "a"))
    assert await controller.stopped_after(1.5) == [("a", 2.0)]


def _pod() -> tuple[Registry, Json]:
    """A pod in a registry of its own."""
    registry = Registry(VirtualClock(), Random(1))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    return registry, registry.create(registry.kind("v1", "Pod"), "default", pod)


def _events(registry: Registry) -> dict[str, Json]:
    return {one["reason"]: one for one in registry.list_all(registry.kind("v1", "Event"))}


@virtually
async def test_the_same_event_counts_up() -> None:
    registry, pod = _pod()
    recorder = Recorder(registry, "kubelet", "node-1")
    recorder.normal(pod, "Pulled", "Image there", "spec.containers{main}")
    await asyncio.sleep(5)
    recorder.normal(pod, "Pulled", "Image there", "spec.containers{main}")
    recorder.warning(pod, "Failed", "no")
    told = _events(registry)
    first, second = told["Pulled"], told["Failed"]
    assert first["count"] == 2
    assert first["firstTimestamp"] < first["lastTimestamp"]
    assert first["source"] == {"component": "kubelet", "host": "node-1"}
    assert first["involvedObject"]["fieldPath"] == "spec.containers{main}"
    assert first["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert (second["type"], second["count"]) == ("Warning", 1)


@virtually
async def test_events_are_forgotten_after_an_hour_without_a_write() -> None:
    registry, pod = _pod()
    recorder, expiry = Recorder(registry, "x"), EventExpiry(registry)
    expiry.start()
    recorder.normal(pod, "Once", "only once")
    recorder.normal(pod, "Twice", "again and again")
    await asyncio.sleep(TTL_S - 1)
    recorder.normal(pod, "Twice", "again and again")
    assert _events(registry).keys() == {"Once", "Twice"}
    await asyncio.sleep(2)
    assert [*_events(registry)] == ["Twice"]
    await asyncio.sleep(TTL_S)
    assert not _events(registry)
    expiry.stop()


@virtually
async def test_no_two_events_of_one_instant_share_a_name() -> None:
    registry, pod = _pod()
    recorder = Recorder(registry, "x")
    before = registry.store.version
    recorder.normal(pod, "One", "one")
    kind = registry.kind("v1", "ConfigMap")
    registry.create(kind, "default", {"metadata": {"name": "m"}})
    while registry.store.version < before + 1000:
        version = str(registry.store.version)
        registry.patch(kind, ("default", "m"), lambda m, v=version: m | {"data": {"v": v}})
    recorder.normal(pod, "Two", "two")
    assert _events(registry).keys() == {"One", "Two"}
