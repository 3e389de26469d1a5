"""Events are thinned out as client-go thins them out, and forgotten after an hour."""

import asyncio
from random import Random

from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.controllers.events import TTL_S, EventExpiry, Recorder
from mcad.sim.registry import Registry


def _world():
    registry = Registry(VirtualClock(), Random(1))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    return registry, registry.create(registry.kind("v1", "Pod"), "default", pod)


def _events(registry):
    return registry.list_all(registry.kind("v1", "Event"))


def test_the_same_event_counts_up():
    async def scenario():
        registry, pod = _world()
        recorder = Recorder(registry, "kubelet", "node-1")
        recorder.normal(pod, "Pulled", "Image there", "spec.containers{main}")
        await asyncio.sleep(5)
        recorder.normal(pod, "Pulled", "Image there", "spec.containers{main}")
        recorder.warning(pod, "Failed", "no")
        first, second = sorted(_events(registry), key=lambda one: one["reason"], reverse=True)
        assert first["count"] == 2
        assert first["firstTimestamp"] < first["lastTimestamp"]
        assert first["source"] == {"component": "kubelet", "host": "node-1"}
        assert first["involvedObject"]["fieldPath"] == "spec.containers{main}"
        assert first["involvedObject"]["uid"] == pod["metadata"]["uid"]
        assert (second["type"], second["count"]) == ("Warning", 1)

    run_virtually(scenario())


def test_events_are_forgotten_after_an_hour_without_a_write():
    async def scenario():
        registry, pod = _world()
        expiry = EventExpiry(registry)
        expiry.start()
        recorder = Recorder(registry, "x")
        recorder.normal(pod, "Once", "only once")
        recorder.normal(pod, "Twice", "again and again")
        await asyncio.sleep(TTL_S - 1)
        recorder.normal(pod, "Twice", "again and again")
        assert len(_events(registry)) == 2
        await asyncio.sleep(2)
        assert [one["reason"] for one in _events(registry)] == ["Twice"]
        await asyncio.sleep(TTL_S)
        assert not _events(registry)
        expiry.stop()

    run_virtually(scenario())


def test_no_two_events_of_one_instant_share_a_name():
    async def scenario():
        registry, pod = _world()
        recorder = Recorder(registry, "x")
        before = registry.store.version
        recorder.normal(pod, "One", "one")
        kind = registry.kind("v1", "ConfigMap")
        registry.create(kind, "default", {"metadata": {"name": "m"}})
        while registry.store.version < before + 1000:
            version = str(registry.store.version)
            registry.patch(kind, ("default", "m"), lambda m, v=version: m | {"data": {"v": v}})
        recorder.normal(pod, "Two", "two")
        assert {one["reason"] for one in _events(registry)} == {"One", "Two"}

    run_virtually(scenario())
