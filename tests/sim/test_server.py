"""The API port of the embedded server, asked as clients ask."""

import json
from contextlib import aclosing
from random import Random
from typing import Any

import pytest

from mcad.kube.client import Client, DeleteOptions, Selection
from mcad.kube.errors import ApiError, RequestTimeout
from mcad.kube.port import Request
from mcad.kube.resource import Resource
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi

Json = dict[str, Any]
PODS = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_map(name: str, **data: str) -> Json:
    return {"metadata": {"name": name, "labels": {"app": "a"}}, "data": data}


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


def test_a_list_in_pages_is_of_one_version() -> None:
    async def work() -> None:
        world = World()
        for number in range(5):
            await world.client.create(CONFIG_MAPS, "default", config_map(f"m{number}"))
        pages = world.client.list_pages(CONFIG_MAPS, Selection(namespace="default"), limit=2)
        seen: list[str] = []
        async for page in pages:
            seen += [item["metadata"]["name"] for item in page.items]
            if page.first:
                await world.client.delete(CONFIG_MAPS, "default", "m3")
                await world.client.create(CONFIG_MAPS, "default", config_map("m9"))
        assert seen == ["m0", "m1", "m2", "m3", "m4"]

    run_virtually(work())


def test_an_expired_token_is_answered_with_410_and_another_one() -> None:
    async def work() -> None:
        world = World()
        for number in range(3):
            await world.client.create(CONFIG_MAPS, "default", config_map(f"m{number}"))
        path = CONFIG_MAPS.path("default")
        first = world.api.answer(Request("GET", path, {"limit": "1"})).json()
        world.registry.store.compact()
        await world.client.create(CONFIG_MAPS, "default", config_map("later"))
        world.registry.store.compact()
        token = {"limit": "1", "continue": first["metadata"]["continue"]}
        again = world.api.answer(Request("GET", path, token))
        assert again.status == 410
        assert again.json()["reason"] == "Expired"
        on = {"continue": again.json()["metadata"]["continue"]}
        rest = world.api.answer(Request("GET", path, on)).json()
        assert [item["metadata"]["name"] for item in rest["items"]] == ["m0", "m1", "m2"][1:]

    run_virtually(work())


def test_a_watch_tells_what_enters_and_leaves_its_selection() -> None:
    async def work() -> None:
        world = World()
        made = await world.client.create(CONFIG_MAPS, "default", config_map("m"))
        version = str(int(made["metadata"]["resourceVersion"]) - 1)
        await world.client.patch(CONFIG_MAPS, "default", "m", {"data": {"x": "1"}})
        await world.client.patch(
            CONFIG_MAPS, "default", "m", {"metadata": {"labels": {"app": "b"}}}
        )
        await world.client.patch(CONFIG_MAPS, "default", "m", {"data": {"x": "2"}})
        await world.client.patch(
            CONFIG_MAPS, "default", "m", {"metadata": {"labels": {"app": "a"}}}
        )
        await world.client.delete(CONFIG_MAPS, "default", "m")
        events = await world.lines(CONFIG_MAPS, version, labelSelector="app=a")
        assert [event["type"] for event in events] == [
            "ADDED",
            "MODIFIED",
            "DELETED",
            "ADDED",
            "DELETED",
        ]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(versions)

    run_virtually(work())


def test_a_watch_from_before_the_history_gets_410_in_band() -> None:
    async def work() -> None:
        world = World()
        made = await world.client.create(CONFIG_MAPS, "default", config_map("m"))
        await world.client.patch(CONFIG_MAPS, "default", "m", {"data": {"x": "1"}})
        world.registry.store.compact()
        (event,) = await world.lines(CONFIG_MAPS, made["metadata"]["resourceVersion"])
        assert event["type"] == "ERROR"
        assert event["object"]["code"] == 410

    run_virtually(work())


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


@pytest.mark.parametrize("stale", [True, False])
def test_resource_version_in_a_patch_is_a_fence(stale: bool) -> None:
    async def work() -> None:
        world = World()
        made = await world.client.create(CONFIG_MAPS, "default", config_map("m"))
        if stale:
            await world.client.patch(CONFIG_MAPS, "default", "m", {"data": {"x": "1"}})
        fence = {"resourceVersion": made["metadata"]["resourceVersion"]}
        patch = world.client.patch(CONFIG_MAPS, "default", "m", {"metadata": fence, "data": {}})
        if not stale:
            await patch
            return
        with pytest.raises(ApiError) as caught:
            await patch
        assert (caught.value.status, caught.value.reason) == (409, "Conflict")

    run_virtually(work())


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    async def work() -> None:
        world = World()
        made = await world.client.create(CONFIG_MAPS, "default", config_map("m", x="1"))
        again = await world.client.patch(CONFIG_MAPS, "default", "m", {"data": {"x": "1"}})
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    run_virtually(work())


def test_a_uid_that_does_not_hold_stops_a_deletion() -> None:
    async def work() -> None:
        world = World()
        await world.client.create(CONFIG_MAPS, "default", config_map("m"))
        with pytest.raises(ApiError) as caught:
            await world.client.delete(CONFIG_MAPS, "default", "m", DeleteOptions(uid="other"))
        assert caught.value.status == 409
        await world.client.get(CONFIG_MAPS, "default", "m")

    run_virtually(work())


def test_a_finalizer_keeps_what_is_deleted_until_it_is_taken_away() -> None:
    async def work() -> None:
        world = World()
        body = config_map("m")
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await world.client.create(CONFIG_MAPS, "default", body)
        left = await world.client.delete(CONFIG_MAPS, "default", "m")
        assert left["metadata"]["deletionTimestamp"]
        again = await world.client.delete(CONFIG_MAPS, "default", "m")
        assert again["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        await world.client.patch(CONFIG_MAPS, "default", "m", {"metadata": {"finalizers": None}})
        with pytest.raises(ApiError) as caught:
            await world.client.get(CONFIG_MAPS, "default", "m")
        assert caught.value.not_found

    run_virtually(work())


def test_nothing_is_created_in_a_namespace_that_is_missing() -> None:
    async def work() -> None:
        world = World()
        with pytest.raises(ApiError) as caught:
            await world.client.create(CONFIG_MAPS, "nowhere", config_map("m"))
        assert caught.value.status == 404
        assert caught.value.message == 'namespaces "nowhere" not found'

    run_virtually(work())


def test_dry_run_leaves_no_trace() -> None:
    async def work() -> None:
        world = World()
        before = world.registry.store.version
        path = CONFIG_MAPS.path("default")
        answer = world.api.answer(
            Request("POST", path, {"dryRun": "All"}, json.dumps(config_map("m")).encode())
        )
        assert answer.status == 201
        assert answer.json()["metadata"]["uid"]
        assert world.registry.store.version == before

    run_virtually(work())
