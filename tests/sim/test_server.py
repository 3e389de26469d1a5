"""The API port of the embedded server, asked as clients ask."""

import json
from contextlib import aclosing
from random import Random
from typing import Any

import pytest

from mcad.kube.client import Client
from mcad.kube.errors import RequestTimeout
from mcad.kube.port import Request
from mcad.kube.resource import Resource
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi

Json = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class World:
    """A server and a client of it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.registry = Registry(self.clock, Random(1))
        self.api = SimApi(self.registry)
        self.client = Client(self.api, self.clock, Random(2))

    async def lines(self, resource: Resource, version: str, **more: Any) -> list[Json]:
        """What a watch of five seconds tells."""
        request = Request(
            "GET",
            resource.path("default"),
            {"watch": "true", "resourceVersion": version, "timeoutSeconds": "5", **more},
        )
        stream = self.api.stream(request, 70)
        async with aclosing(stream):
            return [json.loads(line) async for line in stream]


def test_bookmarks_come_every_minute_and_shortly_before_the_end() -> None:
    async def work() -> None:
        world = World()
        more = {"allowWatchBookmarks": "true", "timeoutSeconds": "130"}
        events = await world.lines(CONFIG_MAPS, str(world.registry.store.version), **more)
        assert [event["type"] for event in events] == ["BOOKMARK"] * 3
        assert world.clock.monotonic() == 130

    run_virtually(work())


def test_a_watch_that_wants_no_bookmarks_is_silent_until_its_reader_has_enough() -> None:
    async def work() -> None:
        world = World()
        version = str(world.registry.store.version)
        with pytest.raises(RequestTimeout):
            await world.lines(CONFIG_MAPS, version, timeoutSeconds="300")
        assert world.clock.monotonic() == 70

    run_virtually(work())
