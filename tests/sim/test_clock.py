"""Virtual time: it jumps, it is exact, and it never stands still while somebody waits."""

import asyncio
import math
import time

import pytest

from mcad.sim.clock import START_US, Stuck, VirtualClock, run_virtually

FAR = 33_053.722836730194  # the next number is 7e-12 s later


def test_a_day_takes_no_time() -> None:
    async def work() -> tuple[float, int]:
        clock = VirtualClock()
        await clock.sleep(86_400)
        return clock.monotonic(), clock.now_us()

    began = time.process_time()
    assert run_virtually(work()) == (86_400, START_US + 86_400 * 1_000_000)
    assert time.process_time() - began < 60  # and not a day


def test_sleepers_wake_in_the_order_of_their_times() -> None:
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(asyncio.get_running_loop().time())

    async def work() -> None:
        await asyncio.gather(*(sleep(seconds) for seconds in (3, 1, 2, 0.5)))

    run_virtually(work())
    assert woken == [0.5, 1, 2, 3]


def test_nobody_is_woken_before_the_time_even_by_the_smallest_step() -> None:
    """Two who are woken too early and wait again would keep the loop busy, and time still."""
    turns = 0

    async def work() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(FAR)
        target = math.nextafter(loop.time(), math.inf)

        async def wait() -> None:
            nonlocal turns
            woken = asyncio.Event()
            while loop.time() < target:
                turns += 1
                assert turns < 100
                woken.clear()
                loop.call_at(target, lambda: loop.call_soon(woken.set))
                await woken.wait()

        await asyncio.gather(wait(), wait())

    run_virtually(work())


def test_when_everybody_waits_for_nothing_it_is_told() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run_virtually(work())
