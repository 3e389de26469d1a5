"""Pages of the list of AppWrappers have the rows of the whole list, and counts of all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from mcad.api.list_page import SORTS, Evictions, PageFacts, PageQuery
from mcad.controller import leader_figures, shared_answers
from mcad.controller.paged_list import PagedList
from mcad.controller.views import rows_view
from mcad.core.views.rows import Picture
from mcad.ui.listing import ListedRows
from mcad.ui.rows import Query
from tests.cli.cluster import crowd, reserved
from tests.cli.dispatcher import Onlooker
from tests.cli.shares import TREE, shares
from tests.controller.test_queries import COUNT, NAMES, body, full, get
from tests.controller.test_runtime import Rig, add_appwrapper
from tests.fakeapi import FakeApi

ALL = "/api/v1/appwrappers?starts=true"
QUERIES = [
    Query(),
    Query(page=3),
    Query(state="waiting"),
    Query(state="Running"),
    Query(name="o"),
    Query(namespace="default"),
    Query(namespace="none"),
    Query(leaf=f"{TREE}/research"),
    Query(leaf=f"{TREE}/none"),
    *(Query(sort=sign + field) for sign, field in product(("", "-"), SORTS)),
    Query(sort="-name", state="waiting"),
]


async def test_pages_of_the_port_are_parts_of_its_list() -> None:
    async with full() as rig:
        whole = body(await get(rig, ALL))["items"]
        pages = [body(await get(rig, f"{ALL}&pageSize=8&page={n}")) for n in range(1, 6)]
        named = body(await get(rig, f"{ALL}&pageSize=8&name=a1&state=waiting"))
    assert [row for page in pages[:4] for row in page["items"]] == whole
    assert pages[4] == pages[3]  # there is no fifth
    facts = [PageFacts.read(page["page"]) for page in pages]
    assert [(one.number, one.pages, one.matching) for one in facts[:4]] == [
        (number, 4, COUNT) for number in range(1, 5)
    ]
    first = facts[0]
    assert (first.total, first.in_line, first.on_hold, first.others) == (COUNT, COUNT, 0, {})
    assert (first.states, first.namespaces, first.paused) == (["Pending"], ["default"], "")
    assert [row["name"] for row in named["items"]] == [one for one in NAMES if "a1" in one][:8]
    assert (named["page"]["matching"], named["page"]["total"]) == (10, COUNT)


async def test_pages_are_parts_of_the_sorted_list() -> None:
    async with full() as rig:
        pages = [body(await get(rig, f"{ALL}&pageSize=8&sort=-name&page={n}")) for n in range(1, 5)]
        by_state = body(await get(rig, f"{ALL}&pageSize=100&sort=-state"))
        unsorted = body(await get(rig, f"{ALL}&pageSize=100"))
    names = [row["name"] for page in pages for row in page["items"]]
    assert names == sorted(NAMES, reverse=True)
    assert {page["page"]["sort"] for page in pages} == {"-name"}
    assert by_state["items"] == unsorted["items"], "equal ones stay in the order of the queue"
    assert unsorted["page"]["sort"] == ""


async def test_every_page_has_the_latest_evictions_of_the_last_hour_and_their_number() -> None:
    async with Rig() as rig:
        for number in range(25):
            evicted = {
                "count": 3,
                "reason": "Reclaiming",
                "by": "uid-b",
                "title": "team-b/b" if number else None,
                "at": f"2027-01-15T07:{30 + number}:00.000000Z",
            }
            namespace = "team-a" if number % 5 == 4 else "default"
            add_appwrapper(
                rig.server,
                f"a{number:02}",
                "1",
                namespace=namespace,
                status={"state": "Pending", "eviction": evicted},
            )
        await rig.clock.advance(1)
        pages = [body(await get(rig, f"{ALL}&pageSize=8&page={n}"))["page"] for n in (1, 2)]
        theirs = body(await get(rig, f"{ALL}&pageSize=8&only=team-a"))["page"]
    assert pages[0]["evictions"] == pages[1]["evictions"]
    found = PageFacts.read(pages[0]).evictions
    assert found.count == 25
    assert [one.name for one in found.latest] == [f"a{number:02}" for number in range(24, 4, -1)]
    assert (found.latest[0].namespace, found.latest[1].namespace) == ("team-a", "default")
    assert (found.latest[1].at, found.latest[1].by) == ("2027-01-15T07:53:00.000000Z", "team-b/b")
    assert (found.latest[1].reason, found.latest[1].count) == ("Reclaiming", 3)
    names = [one.name for one in PageFacts.read(theirs).evictions.latest]
    assert names == ["a24", "a19", "a14", "a09", "a04"]


async def test_pages_that_accept_an_age_are_made_from_one_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = 0

    class Counted(PagedList):
        def __init__(self, *of: object) -> None:
            nonlocal made
            made += 1
            super().__init__(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(leader_figures, "PagedList", Counted)
    monkeypatch.setattr(shared_answers, "SHARE", 1e-9)  # kept as long as callers accept it
    async with full() as rig:
        replica: Any = SimpleNamespace(controller=rig.controller)
        figures = leader_figures.LeaderFigures(replica)
        for page in (1, 2, 1):
            await figures.page(str, PageQuery(page=page, size=8), with_starts=True, max_age_s=10)
        assert made == 1
        await figures.page(str, PageQuery(size=8), with_starts=True, max_age_s=0)
        assert made == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("pageSize=0", "pageSize must be a number from 1 to 1000"),
        ("pageSize=1001", "pageSize must be a number from 1 to 1000"),
        (
            "pageSize=8&sort=demand",
            "sort must be one of namespace, name, state, priority, firstSeen",
        ),
        ("pageSize=8&page=x", "page must be a number from 1 to 1000000"),
    ],
)
async def test_a_page_that_makes_no_sense_is_refused(asked: str, said: str) -> None:
    async with full() as rig:
        with pytest.raises(web.HTTPBadRequest) as refused:
            await get(rig, f"{ALL}&{asked}")
    assert said in str(refused.value.text)


@pytest.mark.parametrize("made", [crowd, reserved, shares])
@pytest.mark.parametrize("only", [None, "default", "research"])
async def test_a_dispatcher_finds_what_the_page_finds_in_rows(
    made: Callable[[], FakeApi], only: str | None
) -> None:
    matched = 0
    controller = await Onlooker(made()).controller()
    cluster, now = controller.dispatcher.cluster, controller.clock.now_us()
    listed = PagedList(cluster, Picture(cluster, now))
    rows = rows_view(cluster, now, waiting_only=False, with_starts=True)["items"]
    known = [row for row in rows if only in (None, row["namespace"])]
    figures: Any = leader_figures.LeaderFigures(SimpleNamespace(controller=controller))  # type: ignore[arg-type]
    for query in QUERIES:
        chosen, facts = listed.find(query.asked(only))
        of_rows = await ListedRows(figures, known, only).shown(query)
        assert [one.uid for one in chosen] == [row["uid"] for row in of_rows.rows]
        # a row does not tell the last eviction of its AppWrapper
        assert replace(facts, evictions=Evictions()) == of_rows.facts
        matched += 0 < facts.matching < facts.total
    assert matched or only or made is crowd


async def test_a_quota_node_leaves_those_that_count_at_or_below_it() -> None:
    controller = await Onlooker(shares()).controller()
    cluster, now = controller.dispatcher.cluster, controller.clock.now_us()
    listed = PagedList(cluster, Picture(cluster, now))
    found = {
        node: {one.name for one in listed.find(PageQuery(leaf=f"{TREE}/{node}"))[0]}
        for node in ("research", "cluster", "none")
    }
    assert found["research"] == {"own", "borrower"}
    assert found["cluster"] > found["research"]
    assert found["none"] == set()
