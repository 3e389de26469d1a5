"""Callers that accept an old answer share one, and its cost bounds how long it is kept."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp.test_utils import make_mocked_request

from mcad.controller.shared_answers import KEPT_S_MAX, SHARE, SharedAnswers, max_age_s
from tests.controller.test_queries import full, get


class Maker:
    """Makes answers that take a while."""

    def __init__(self, takes_s: float) -> None:
        self.now, self.made, self.takes_s = 0.0, 0, takes_s
        self.shared = SharedAnswers(lambda: self.now)

    async def make(self) -> bytes:
        self.made += 1
        await asyncio.sleep(0)
        self.now += self.takes_s
        return str(self.made).encode()

    async def get(self, age_s: float, key: str = "all") -> int:
        return int(await self.shared.get(key, age_s, self.make))


async def test_callers_share_an_answer_that_is_not_too_old() -> None:
    maker = Maker(0.4)
    assert await asyncio.gather(*(maker.get(5) for _ in range(10))) == [1] * 10
    assert await maker.get(0) == 2  # never an old one for callers that do not say so
    assert await maker.get(5) == 1
    assert await maker.get(5, "other") == 3
    maker.now = 5.0
    assert await maker.get(5) == 4
    assert await maker.get(10) == 4


async def test_an_answer_is_kept_as_its_cost_demands() -> None:
    maker = Maker(0.1)
    for spent in range(1, 20):
        assert await maker.get(60) == spent
        maker.now += 0.1 / SHARE + 0.001
    assert maker.made * maker.takes_s <= (SHARE + 0.01) * maker.now
    slow = Maker(100.0)
    await slow.get(1000)
    slow.now += KEPT_S_MAX
    assert await slow.get(1000) == 2


async def test_an_answer_is_kept_longer_for_more_work_but_not_for_ever() -> None:
    maker = Maker(0.1)
    maker.shared.charge("all", 1.0)  # nothing is kept yet
    await maker.get(60)
    maker.shared.charge("all", 0.1)
    maker.now += 0.1 / SHARE + 0.001
    assert await maker.get(60) == 1
    maker.now += 0.1 / SHARE
    assert await maker.get(60) == 2
    maker.shared.charge("all", 1000.0)
    maker.now += KEPT_S_MAX
    assert await maker.get(1000) == 3


@pytest.mark.parametrize(
    ("query", "wanted"), [("", 0), ("maxAge=10", 10), ("maxAge=-1", 0), ("maxAge=99999", 0)]
)
def test_an_age_that_makes_no_sense_is_none(query: str, wanted: int) -> None:
    assert max_age_s(make_mocked_request("GET", f"/?{query}")) == wanted


async def test_lists_of_the_port_have_the_same_content_either_way() -> None:
    async with full() as rig:
        fresh = await get(rig, "/api/v1/appwrappers?starts=true")
        shared = await get(rig, "/api/v1/appwrappers?starts=true&maxAge=10")
    assert fresh.body == shared.body
