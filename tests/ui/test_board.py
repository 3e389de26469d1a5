"""When figures are renewed."""

from __future__ import annotations

import asyncio

import pytest

from mcad.client.figures.pace import Pace
from mcad.ui import board
from tests.cli.cluster import tutorial
from tests.ui.opened import PATIENCE_S, opened

SECOND = "0002-aw-generic-deployment-2"


async def test_figures_rest_while_no_page_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "LINGER_S", 5.0)  # a tenth of a second of the quick clock
    api = tutorial()
    async with opened(api) as page:
        await page.board.now()
        await asyncio.sleep(1.0)
        latest = (await page.board.after(0)).version
        await asyncio.sleep(0.5)
        assert (await page.board.after(0)).version == latest
        api.remove("appwrappers", SECOND)
        assert SECOND not in await page.get("/")
        async with page.events() as events:
            api.remove("appwrappers", "0001-aw-generic-deployment-1")
            async with asyncio.timeout(PATIENCE_S):
                while (await events.get())[0] != "queue":
                    pass


def test_the_longer_figures_take_the_longer_is_the_pause() -> None:
    pace = Pace(1 / 5, 10.0)
    assert (pace.pause_s(0.0), pace.pause_s(1.0), pace.pause_s(9.0)) == (0.0, 4.0, 10.0)


async def test_nothing_waits_for_figures_that_are_not_followed_any_more() -> None:
    async with opened(tutorial()) as page:
        looked = page.board
        version = (await looked.now()).version
        waiting = asyncio.ensure_future(looked.after(version + 1000))
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        for late in (waiting, looked.after(version + 1000)):
            with pytest.raises(board.Over):
                await late
