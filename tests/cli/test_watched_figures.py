"""Watches that are counted: what a look would find, after every change, is what ``Live`` tells."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from mcad.api.catalog import WELL_KNOWN, StaticCatalog
from mcad.api.config import Config
from mcad.client.errors import McadWarning
from mcad.client.figures import watched as module
from mcad.client.figures.computed import ParsedAppWrappers
from mcad.client.figures.listed import compute_figures
from mcad.client.figures.watched import WatchedFigures, live
from mcad.controller.defaults import LIMIT_RANGES
from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.resource import Resource
from tests.cli.cluster import appwrapper, crowd, deployment, node, tutorial, waiting
from tests.cli.test_submit_wait import TickingClock
from tests.fakeapi import FakeApi, reset

Json = dict[str, Any]

PATIENCE_S = 10.0


@asynccontextmanager
async def following(api: FakeApi) -> AsyncIterator[tuple[Client, WatchedFigures]]:
    client = Client(api, TickingClock(), Random(1))
    async with live(client, Config()) as feed:
        yield client, feed


async def until_the_same(api: FakeApi, client: Client, feed: WatchedFigures) -> None:
    """The next figures are, soon, those that one look gives."""
    wanted = await compute_figures(client, Config())
    wanted_rows = await wanted.rows(waiting_only=False)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await feed.next()
            if await found.rows(waiting_only=False) == wanted_rows:
                assert await found.capacity() == await wanted.capacity()
                return


CHANGES: list[Callable[[FakeApi], None]] = [
    lambda api: api.put("nodes", node("more", cpu="8", memory="16Gi")),
    lambda api: api.remove("pods", "others"),
    lambda api: api.remove("appwrappers", "0001-aw-generic-deployment-1"),
    lambda api: api.put(
        "appwrappers",
        appwrapper(
            "late", "uid-late", "07:59:40", deployment("late", replicas=1, cpu="1", memory="1Gi")
        ),
    ),
    lambda api: api.change(
        "appwrappers", "0002-aw-generic-deployment-2", lambda o: o["spec"].update(priority=7)
    ),
    lambda api: api.remove("deployments", "0001-aw-generic-deployment-1"),
]


async def test_every_change_leads_to_what_a_look_would_find() -> None:
    api = tutorial()
    async with following(api) as (client, feed):
        await until_the_same(api, client, feed)
        for change in CHANGES:
            change(api)
            await until_the_same(api, client, feed)


async def test_what_a_limit_range_adds_to_pods_is_counted() -> None:
    """The dispatcher judges by it, so the figures are other ones without (C5)."""
    api = tutorial()
    api.served += (LIMIT_RANGES,)
    limit = {"type": "Container", "defaultRequest": {"cpu": "300m"}}
    meta = {"name": "limits", "namespace": "default"}
    api.put("limitranges", {"metadata": meta, "spec": {"limits": [limit]}})
    bare = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": bare}
    api.put("appwrappers", appwrapper("bare", "uid-bare", "07:59:40", pod))
    async with following(api) as (client, feed):
        for figures in (await feed.next(), await compute_figures(client, Config())):
            rows = await figures.rows(waiting_only=True)
            assert {row["name"]: row["demand"].get("cpu") for row in rows}["bare"] == "300m"


async def test_a_dispatcher_that_ends_is_news() -> None:
    api = tutorial()
    async with following(api) as (_, feed):
        assert (await feed.next()).notes == ()
        api.remove("leases", "mcad-dispatcher")
        async with asyncio.timeout(PATIENCE_S):
            while not (notes := (await feed.next()).notes):
                pass
    assert notes == ("no dispatcher is running: nothing is dispatched until one is started",)


async def test_a_crowd() -> None:
    api = crowd()
    async with following(api) as (client, feed):
        await until_the_same(api, client, feed)


async def test_a_kind_that_may_not_be_listed_is_done_without() -> None:
    api = tutorial()
    api.deny("deployments")
    async with following(api) as (_, feed):
        async with asyncio.timeout(PATIENCE_S):
            with pytest.warns(McadWarning, match="you may not list deployments.apps") as warned:
                found = await feed.next()
        detail = await found.detail("default", "0001-aw-generic-deployment-1")
        assert detail is not None
        assert detail["items"][0]["exists"] is None
        assert feed.trouble == ""
    assert len(warned) == 1


async def test_a_caller_that_may_list_but_not_watch_gets_an_error() -> None:
    api = tutorial()
    api.deny("nodes", method="WATCH")
    async with following(api) as (_, feed), asyncio.timeout(PATIENCE_S):
        await feed.next()
        with pytest.raises(ApiError, match="cannot watch resource"):
            await _exhausted(feed)


async def test_a_server_that_is_starting_may_deny_a_moment() -> None:
    api = tutorial()
    api.fail_always("WATCH", "", reset)
    async with following(api) as (client, feed), asyncio.timeout(PATIENCE_S):
        await feed.next()
        api.recover()
        api.deny("nodes", method="WATCH")
        api.send(None)
        while "cannot watch" not in feed.trouble:
            await feed.next()
        api.recover()
        while feed.trouble:
            await feed.next()
        api.put("nodes", node("more", cpu="8", memory="16Gi"))
        await until_the_same(api, client, feed)


async def test_a_kind_that_is_installed_later_is_found() -> None:
    api = tutorial()
    gadgets = Resource("example.com", "v1", "gadgets", "Gadget")
    api.served = tuple(one for one in api.served if one != gadgets)
    api.put("appwrappers", appwrapper("late", "uid-late", "07:59:40", _gadget()))
    async with following(api) as (_, feed):
        async with asyncio.timeout(PATIENCE_S):
            before = await _waits_for(feed, "late")
            assert before == "KindNotInstalled"
            api.served += (gadgets,)
            while await _waits_for(feed, "late") == "KindNotInstalled":
                pass


async def test_trouble_comes_and_goes() -> None:
    api = tutorial()
    async with following(api) as (client, feed), asyncio.timeout(PATIENCE_S):
        await feed.next()
        assert feed.trouble == ""
        api.break_down()
        while not feed.trouble:
            await feed.next()
        assert feed.trouble.startswith("no news from the API server: ")
        api.recover()
        while feed.trouble:
            await feed.next()
        api.put("nodes", node("more", cpu="8", memory="16Gi"))
        await until_the_same(api, client, feed)


async def test_a_fault_of_ours_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Json) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(module, "slim_pod", fail)
    async with following(tutorial()) as (_, feed), asyncio.timeout(PATIENCE_S):
        with pytest.raises(KeyError, match="oops"):
            await feed.next()


async def _waits_for(feed: WatchedFigures, name: str) -> str:
    rows = await (await feed.next()).rows(waiting_only=True)
    return next(str(row["waitsFor"]) for row in rows if row["name"] == name)


def _gadget() -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}


def test_an_appwrapper_is_parsed_once_for_each_version_and_catalogue() -> None:
    readings = ParsedAppWrappers()
    one, two = StaticCatalog.of(WELL_KNOWN, []), StaticCatalog.of([], [])
    obj = waiting()
    obj["metadata"]["resourceVersion"] = "1"
    first = readings.read(obj, one)
    assert readings.read(obj, StaticCatalog.of(WELL_KNOWN, [])) is first
    assert readings.read(obj, two) is not first
    again = readings.read(obj, one)
    obj["metadata"]["resourceVersion"] = "2"
    changed = readings.read(obj, one)
    assert changed is not again
    readings.keep([])
    assert readings.read(obj, one) is not changed


async def _exhausted(feed: WatchedFigures) -> None:
    while True:
        await feed.next()
        assert feed.trouble == "" or "cannot watch resource" in feed.trouble
