"""When figures are renewed, and that rows which are made on demand are those of all commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mcad.client.figures.computed import ComputedFigures
from mcad.client.figures.pace import Pace
from mcad.client.figures.row import is_in_line, is_waiting
from mcad.ui import board
from mcad.ui.listing import ComputedRows, ListedRows
from tests.cli.cluster import crowd, reserved, tutorial
from tests.cli.shares import shares
from tests.fakeapi import FakeApi
from tests.ui.opened import PATIENCE_S, opened

Json = dict[str, Any]
SECOND = "0002-aw-generic-deployment-2"


@pytest.mark.parametrize("made", [crowd, reserved, shares, lambda: tutorial(led=False)])
async def test_rows_on_demand_are_those_of_the_figures(made: Callable[[], FakeApi]) -> None:
    async with opened(made()) as page:
        figures = (await page.board.now()).figures
        assert isinstance(figures, ComputedFigures)
        wanted = await figures.rows(waiting_only=False, with_starts=True)
        listing = ComputedRows(figures, None)
        assert listing.rows(listing.outlines) == wanted
        backwards = listing.outlines[::-1]
        assert ComputedRows(figures, None).rows(backwards) == wanted[::-1]
        assert listing.outlines == ListedRows(figures, wanted, None).outlines
    waiting = [one.uid for one in listing.outlines if one.waits]
    assert waiting == [row["uid"] for row in wanted if is_waiting(row)]
    in_line = [one.uid for one in listing.outlines if one.in_line]
    assert in_line == [row["uid"] for row in wanted if is_in_line(row)]


async def test_figures_rest_while_no_page_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "LINGER_S", 0.0)
    api = tutorial()
    async with opened(api) as page:
        latest = await page.board.now()
        await asyncio.sleep(0.1)
        for priority in (1, 2):
            api.change(
                "appwrappers", SECOND, lambda obj, p=priority: obj["spec"].update(priority=p)
            )
            await asyncio.sleep(0.1)
        assert (await page.board.after(0)).version <= latest.version + 1  # one was under way
        api.remove("appwrappers", SECOND)
        await asyncio.sleep(0.1)
        assert SECOND not in await page.get("/")
        async with page.events() as events:
            api.remove("appwrappers", "0001-aw-generic-deployment-1")
            async with asyncio.timeout(PATIENCE_S):
                while (await events.get())[0] != "queue":
                    pass


async def test_a_heartbeat_of_a_node_or_a_pod_is_no_news() -> None:
    api = tutorial()

    def beat(obj: Json) -> None:
        at = {"lastHeartbeatTime": "2027-01-15T08:00:01Z"}
        for one in obj["status"].setdefault("conditions", []):
            one.update(at)
        obj["metadata"]["managedFields"] = [{"time": "2027-01-15T08:00:01Z"}]

    async with opened(api) as page, page.events():
        await asyncio.sleep(0.2)
        before = (await page.board.now()).version
        api.change("nodes", "minikube", beat)
        api.change("pods", "others", beat)
        await asyncio.sleep(0.3)
        assert (await page.board.now()).version == before
        api.change("nodes", "minikube", lambda obj: obj.update(spec={"unschedulable": True}))
        async with asyncio.timeout(PATIENCE_S):
            await page.board.after(before)


def test_the_longer_figures_take_the_longer_is_the_pause() -> None:
    pace = Pace(1 / 5, 10.0)
    assert (pace.pause_s(0.0), pace.pause_s(1.0), pace.pause_s(9.0)) == (0.0, 4.0, 10.0)
