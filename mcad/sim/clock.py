"""Virtual time: an event loop on which waiting costs nothing.

When nothing is ready to run, time jumps to the next timer. So a day of a quiet cluster costs as
many steps as it has timers, and the same seed gives the same run, whatever the machine does.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

STEP_S = 1e-6
START_US = 1_800_000_000_000_000  # an instant in January 2027, so that logs do not look like today


class Stuck(RuntimeError):  # noqa: N818 - what the world is in, not what went wrong in it
    """All tasks wait, and there is no timer that could resume one."""


class _JumpingSelector(selectors.DefaultSelector):
    """Does not wait for the timeout; moves time on by it."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Stuck("every task waits for something that no timer will bring")
        self.now_s += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time; real sockets work on it, but time does not wait for them."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002 - of threads there is one
        func: Callable[[Unpack[_Ts]], _T],
        *args: *_Ts,
    ) -> asyncio.Future[_T]:
        """Work for a thread is done at once: time does not wait for it."""
        done: asyncio.Future[_T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            done.set_exception(error)
        return done

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As the base class, but what lies ahead is at least ``STEP_S`` ahead.

        asyncio runs timers early that are due within a nanosecond. A task that is resumed so early
        and goes on waiting for the rest would be resumed at once again, and time would stand still.
        """
        now = self.time()
        if when > now:
            when = max(when, now + STEP_S)
        return super().call_at(when, callback, *args, context=context)


class VirtualClock:
    """Implements ``mcad.kube.clock.Clock`` on the VirtualLoop that runs at present."""

    def __init__(self, start_us: int = START_US) -> None:
        """``start_us`` is the wall-clock time, in microseconds since the epoch, of loop time 0."""
        self._start_us = start_us

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now_us(self) -> int:
        return self._start_us + round(asyncio.get_running_loop().time() * 1e6)

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller; costs nothing if no other task has anything to do."""
        await asyncio.sleep(seconds)


def run_virtually(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end in virtual time, on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
