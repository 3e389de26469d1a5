"""A failover on an open page: the next leader is shown within seconds of its Lease."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

import pytest

from mcad.kube.port import Request
from mcad.ui.board import LINGER_S
from mcad.ui.leader import LEASE_POLL_S
from tests.cli.cluster import tutorial
from tests.cli.conftest import FakeEnvironment, StoppedClock
from tests.fakeapi import FakeApi, refuse
from tests.ui.opened import Page, opened_at

REPORTS = r"/apis/visibility\."
BUSY = refuse(503, "ServiceUnavailable", "service unavailable")
SECONDS = 8  # a look at the Lease, and a poll that is tried again once


class HandClock(StoppedClock):
    """Time passes by ``turn`` alone; sleeps end in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self._sleeps: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeps, (self.now + max(seconds, 0.0), next(self._numbers), end))
        await end

    async def turn(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        await _settled()
        while self._sleeps and self._sleeps[0][0] <= until:
            at, _, end = heapq.heappop(self._sleeps)
            self.now = max(self.now, at)
            if not end.done():
                end.set_result(None)
            await _settled()
        self.now = until


async def _settled() -> None:
    """All that needs no time is done: the cluster is in memory."""
    for _ in range(200):
        await asyncio.sleep(0)


@asynccontextmanager
async def shown(api: FakeApi) -> AsyncIterator[tuple[Page, HandClock]]:
    """The page, after its first figures."""
    world = FakeEnvironment(api)
    clock = world.clock = HandClock()
    turning = asyncio.ensure_future(_turn_for_ever(clock))
    async with opened_at(world) as page:
        turning.cancel()
        yield page, clock


async def _turn_for_ever(clock: HandClock) -> None:
    while True:
        await clock.turn(0.5)


def led_by(name: str) -> Callable[[dict[str, dict[str, str]]], None]:
    """A change of the Lease."""
    return lambda lease: lease["spec"].update(holderIdentity=name)


async def test_the_next_leader_is_shown_within_seconds() -> None:
    api = tutorial()
    async with shown(api) as (page, clock), page.events():
        assert "Leader <b>mcad-1</b>" in await page.get("/")
        api.fail_always("*", REPORTS, BUSY)
        await clock.turn(90.0)  # every attempt takes as long as it may
        assert "the API server is busy or broken" in await page.get("/")
        api.recover()
        api.change("leases", "mcad-dispatcher", led_by("mcad-2"))
        await clock.turn(SECONDS)
        text = await page.get("/")
    assert "Leader <b>mcad-2</b>" in text
    assert "A dispatcher answers" in text
    assert "Data up to date" in text


async def test_a_leader_that_answers_late_is_not_left_alone_for_a_minute() -> None:
    api = tutorial()
    async with shown(api) as (page, clock), page.events():
        api.fail_always("*", REPORTS, BUSY)
        await clock.turn(20.0)
        api.change("leases", "mcad-dispatcher", led_by("mcad-2"))
        await clock.turn(40.0)
        assert "Leader <b>mcad-2</b>" in await page.get("/")
        api.recover()
        await clock.turn(SECONDS)
        assert "Data up to date" in await page.get("/")


@pytest.mark.parametrize("late_s", [0, 40])
async def test_a_page_that_shows_what_is_stored_finds_the_first_leader(late_s: int) -> None:
    api = tutorial(led=False)
    async with shown(api) as (page, clock), page.events():

        async def slow(_: Request) -> None:
            await clock.sleep(3.0)

        api.fail_always("LIST", r"/appwrappers$", slow)  # after which a page rests for a minute
        assert "No dispatcher leads" in await page.get("/")
        await clock.turn(70.0)
        api.put("leases", *tutorial().objects["leases"].values())
        if late_s:
            api.fail_always("*", REPORTS, BUSY)
            await clock.turn(late_s)
            api.always.pop()
            await clock.turn(SECONDS)  # of a list that is under way
        await clock.turn(SECONDS)
        text = await page.get("/")
    assert "Leader <b>mcad-1</b>" in text
    assert "A dispatcher answers" in text


async def test_a_renewal_of_the_lease_is_no_reason_for_new_figures() -> None:
    api = tutorial()
    async with shown(api) as (page, clock), page.events():
        await clock.turn(1.0)
        before, polls = (await page.board.now()).version, len(api.seen("GET", REPORTS))
        for second in range(10, 40, 3):
            at = {"renewTime": f"2027-01-15T07:59:{second}.000000Z"}
            api.change("leases", "mcad-dispatcher", lambda one, at=at: one["spec"].update(at))
            await clock.turn(3.0)
        moments = (await page.board.now()).version - before
    lists = [one for one in api.seen("GET", REPORTS)[polls:] if "pageSize" in one.params]
    assert moments == len(lists)


async def test_a_lease_that_may_not_be_read_leaves_the_figures_as_they_are() -> None:
    api = tutorial()
    api.deny("leases")
    async with shown(api) as (page, _):
        text = await page.get("/")
    assert "Leader" not in text
    assert "A dispatcher answers" in text


async def test_the_lease_is_read_while_a_page_is_open() -> None:
    api = tutorial()
    async with shown(api) as (page, clock):
        async with page.events():
            await clock.turn(10 * LEASE_POLL_S)
        await clock.turn(LINGER_S + 2 * LEASE_POLL_S)
        before = len(api.seen("GET", "/leases/"))
        await clock.turn(100.0)
        assert len(api.seen("GET", "/leases/")) == before
    assert before >= 10
