"""Virtual time: it jumps, it is exact, and it never stands still while a task waits."""

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


def test_two_tasks_that_are_resumed_too_early_do_not_stop_time() -> None:
    """asyncio runs timers early: a task that waits for the rest must not stop virtual time."""
    looks = 0

    async def work() -> None:
        nonlocal looks
        loop = asyncio.get_running_loop()
        await asyncio.sleep(FAR)
        target = math.nextafter(loop.time(), math.inf)
        both = asyncio.Semaphore(0)

        def look() -> None:
            nonlocal looks
            looks += 1
            if loop.time() >= target or looks > 100:
                both.release()
            else:
                loop.call_at(target, loop.call_soon, look)

        look()
        loop.call_soon(look)
        await both.acquire()
        await both.acquire()

    run_virtually(work())
    assert looks < 10


def test_tasks_that_wait_without_a_timer_raise_an_error() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run_virtually(work())
