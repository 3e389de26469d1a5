"""When figures are renewed."""

from __future__ import annotations

import asyncio

import pytest

from mcad.client.errors import McadError
from mcad.client.figures.pace import Pace
from mcad.client.scope import Scope, Source
from mcad.ui import board
from tests.cli.cluster import tutorial
from tests.cli.conftest import FakeEnvironment
from tests.cli.test_submit_wait import TickingClock
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


async def test_where_the_server_is_in_this_process_the_first_failure_is_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process was stopped while the first request waited for its answer."""
    monkeypatch.setattr(board, "RETRY_S", 0.01)
    followed, failures = board.follow_figures, list[McadError]()

    def failing(*args: object, **options: object) -> object:
        if failures:
            raise failures.pop()
        return followed(*args, **options)

    monkeypatch.setattr(board, "follow_figures", failing)
    world = FakeEnvironment(tutorial())
    world.clock = TickingClock()

    async def first(*, persistent: bool) -> int:
        """The version of the first figures; raises the failure if it is an end."""
        failures.append(McadError("no answer within 10 s"))
        everything = Scope(all_namespaces=True)
        looked = board.Board(world, Source(), everything, may_narrow=True, persistent=persistent)
        ended = asyncio.Event()
        async with asyncio.timeout(PATIENCE_S), looked.followed(ended.set):
            found = asyncio.ensure_future(looked.now())
            end = asyncio.ensure_future(ended.wait())
            await asyncio.wait((found, end), return_when=asyncio.FIRST_COMPLETED)
            for one in (found, end):
                one.cancel()
        return found.result().version

    assert await first(persistent=True) == 1
    with pytest.raises(McadError, match="no answer"):
        await first(persistent=False)


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
            with pytest.raises(board.BoardEndedError):
                await late
