"""Figures that are asked from a running dispatcher: with --server, also of an older one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mcad.api.list_page import PageFacts, PageQuery
from mcad.client.errors import McadError
from mcad.client.figures.polled import ListPage, PolledFigures
from mcad.client.scope import Scope, Source
from mcad.kube.port import Request, Response
from mcad.ui.listing import AskedRows
from mcad.ui.rows import PAGE_ROWS, Query, Shown
from tests.cli.conftest import FakeEnvironment
from tests.cli.test_server_figures import CAPACITY, DETAIL, QUOTA, ROW
from tests.cli.test_submit_wait import TickingClock
from tests.fakeapi import FakeApi, answer, refuse
from tests.serving import answering
from tests.ui.opened import opened_at
from tests.ui.test_answer import WAITS

LAST_S = 0.2  # the last poll runs in a thread of its own, and its connection is the server's too

ASKED = {
    "appwrappers": {"items": [ROW]},
    "capacity": CAPACITY,
    "quota": {"enabled": True, "trees": [QUOTA]},
    "quota/t/a": QUOTA["nodes"][0] | {"tree": "t", "holders": [], "queue": [ROW | {"leaf": "a"}]},
    "appwrappers/default/a": DETAIL,
    "appwrappers/default/a/why": DETAIL | WAITS,
}


class Dispatcher:
    """Answers as the HTTP port does, until it is gone."""

    def __init__(self) -> None:
        self.wishes: list[dict[str, str]] = []
        self.gone = False

    async def __call__(self, request: Request) -> Response:
        self.wishes.append(dict(request.params))
        if self.gone:
            return refuse(503, "Unavailable", "no dispatcher leads")
        found = ASKED.get(request.path.removeprefix("/api/v1/"))
        return answer(found) if found is not None else answer(b"null", 404)


async def test_a_dispatcher_is_asked_for_everything() -> None:
    dispatcher = Dispatcher()
    world = FakeEnvironment(FakeApi())
    world.clock = TickingClock()
    with answering(dispatcher) as url:
        everything = Scope(all_namespaces=True)
        async with opened_at(world, Source(server=url), everything) as page:
            text = await page.get("/?leaf=t/a")
            drawer = await page.get("/appwrappers/default/a")
            why = await page.get("/appwrappers/default/a/why")
            unknown = await page.get("/appwrappers/default/b")
            dispatcher.gone = True
            old = await page.until(lambda text: "Data of <time" in text)
            dispatcher.gone = False
            await page.until(lambda text: "Data up to date" in text)
        await asyncio.sleep(LAST_S)
    first = {"starts": "true", "maxAge": "30", "page": "1", "pageSize": str(PAGE_ROWS)}
    assert first in dispatcher.wishes
    assert "A dispatcher answers" in text
    assert 'href="/appwrappers/default/a?leaf=t%2Fa"' in text
    assert "next to be dispatched" in drawer
    assert "Timeline" not in drawer
    assert "No single change that was tried starts it now" in why
    assert "does not know this AppWrapper" in unknown
    assert "Not known whether a dispatcher runs" in old
    assert 'href="/appwrappers/default/a"' in old


EVICTED = {
    "at": "2027-01-15T07:53:00.000000Z",
    "namespace": "third",
    "name": "victim",
    "reason": "Preempting",
    "by": "team-a/urgent",
    "count": 2,
}


def paged(params: Mapping[str, str]) -> Response:
    """A page of two rows, as a dispatcher makes it."""
    namespace = params.get("namespace", "")
    rows = [ROW | {"uid": f"u-{one}", "namespace": one} for one in ("default", "other")]
    found = [row for row in rows if namespace in ("", row["namespace"])]
    facts = {
        "number": 1,
        "pages": 1,
        "matching": len(found),
        "total": 9_876,
        "inLine": 9_000,
        "onHold": 800,
        "others": {"Running": 76},
        "states": ["Pending", "Running"],
        "namespaces": ["default", "other", "third"],
        "paused": "Dispatch is paused for the whole cluster.",
        "evictions": {"count": 21, "latest": [EVICTED]},
    }
    return answer({"items": found, "page": facts})


async def test_a_dispatcher_makes_the_pages_each_once() -> None:
    old = Dispatcher()

    async def dispatcher(request: Request) -> Response:
        made = await old(request)
        is_list = request.path.endswith("/appwrappers") and not old.gone
        return paged(request.params) if is_list else made

    world = FakeEnvironment(FakeApi())
    world.clock = TickingClock()
    with answering(dispatcher) as url:
        async with opened_at(world, Source(server=url), Scope(namespace="default")) as page:
            text = await page.get("/")
            filtered = await page.get("/?namespace=other&leaf=t/a&state=waiting&name=a&page=2")
            old.gone = True
            kept = await page.until(lambda text: "Data of <time" in text)
            async with page.http.get(page.url + "/?namespace=third") as answered:
                assert answered.status == 502
        await asyncio.sleep(LAST_S)
    assert "<b>9000</b> in line" in text
    assert "<b>76</b> Running" in text
    assert '<option value="third">third</option>' in text
    assert "Dispatch is paused for the whole cluster." in text
    assert "Evicted in the last hour (21)" in text
    assert 'href="/appwrappers/third/victim">third/victim</a></td><td>team-a/urgent<' in text
    assert "the latest 1 are shown" in text
    assert "2 of 9876 AppWrappers" in text
    assert "1 of 9876 AppWrappers" in filtered
    assert 'id="aw-u-other"' in filtered
    assert 'id="aw-u-default"' not in filtered
    assert 'id="aw-u-default"' in kept
    lists = [one for one in old.wishes if "pageSize" in one]
    shared = {"starts": "true", "maxAge": "30", "only": "default"}
    size = {"pageSize": str(PAGE_ROWS)}
    assert lists[0] == shared | size | {"page": "1"}
    asked = {"namespace": "other", "leaf": "t/a", "state": "waiting", "name": "a", "page": "2"}
    assert shared | size | asked in lists


async def test_a_page_that_is_not_answered_any_more_is_shown_as_it_was() -> None:
    query, unknown = Query(namespace="other"), Query(namespace="third")
    first = Shown(
        [ROW],
        PageFacts(
            number=1,
            pages=1,
            matching=1,
            total=1,
            in_line=1,
            on_hold=0,
            others={},
            states=["Pending"],
            namespaces=["default"],
        ),
    )

    class Gone:
        async def page(self, _: PageQuery) -> ListPage:
            raise McadError("the dispatcher does not answer")

    earlier = {query.asked(None): first}
    figures: Any = PolledFigures(Gone())  # type: ignore[arg-type]
    rows = AskedRows(figures, first, None, earlier)
    assert await rows.shown(query) == first
    assert rows.known[query.asked(None)] == first  # the next figures fall back on it too
    with pytest.raises(McadError, match="does not answer"):
        await rows.shown(unknown)


async def test_a_pause_is_told() -> None:
    paused = "Dispatch is paused for the whole cluster (DispatchPause cluster): disks are moved"

    async def dispatcher(request: Request) -> Response:
        found = dict(ASKED)
        found["appwrappers"] = {"items": [ROW | {"waitsFor": "DispatchPaused", "why": paused}]}
        return answer(found.get(request.path.removeprefix("/api/v1/").partition("?")[0]))

    world = FakeEnvironment(FakeApi())
    world.clock = TickingClock()
    with answering(dispatcher) as url:
        async with opened_at(world, Source(server=url)) as page:
            text = await page.get("/")
            events = await page.get("/appwrappers/default/a/events")
        await asyncio.sleep(LAST_S)
    assert f'<p class="note">{paused}</p>' in text
    assert "omit --server to see them" in events


async def test_a_filter_that_cannot_be_asked_for_any_more_is_one_sentence() -> None:
    dispatcher = Dispatcher()
    world = FakeEnvironment(FakeApi())
    world.clock = TickingClock()
    with answering(dispatcher) as url:
        async with opened_at(world, Source(server=url)) as page:
            await page.get("/")
            dispatcher.gone = True
            await page.until(lambda text: "Data of <time" in text)
            async with page.http.get(page.url + "/?leaf=t/other") as answered:
                assert answered.status == 502
                assert "does not answer" in await answered.text()
        await asyncio.sleep(LAST_S)
