"""The API port of the embedded server, asked as clients ask."""

import json
from contextlib import aclosing
from random import Random

import pytest

from mcad.kube.errors import RequestTimeout
from mcad.kube.port import Request
from mcad.kube.types import Json
from mcad.sim.clock import VirtualClock
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi
from tests.sim.worlds import virtually


class World:
    """A server without objects."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.registry = Registry(self.clock, Random(1))
        self.api = SimApi(self.registry)

    async def lines(self, **more: str) -> list[Json]:
        """What a watch of ConfigMaps tells from now on."""
        since = str(self.registry.store.version)
        params = {"watch": "true", "resourceVersion": since} | more
        request = Request("GET", "/api/v1/namespaces/default/configmaps", params)
        async with aclosing(self.api.stream(request, 70)) as stream:
            return [json.loads(line) async for line in stream]


@virtually
async def test_bookmarks_come_every_minute_and_shortly_before_the_end() -> None:
    world = World()
    events = await world.lines(allowWatchBookmarks="true", timeoutSeconds="130")
    assert [event["type"] for event in events] == ["BOOKMARK"] * 3
    assert world.clock.monotonic() == 130


@virtually
async def test_a_watch_that_wants_no_bookmarks_is_silent_until_its_reader_has_enough() -> None:
    world = World()
    with pytest.raises(RequestTimeout):
        await world.lines(timeoutSeconds="300")
    assert world.clock.monotonic() == 70
