"""Bounded concurrency for writes, in two lanes: writes that dispatches wait for, and reports.

A lane runs at most ``width`` jobs at once and starts them in the order of submission. It never
blocks its caller.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine

Job = Callable[[], Coroutine[None, None, None]]


class Lane:
    """A queue of jobs and the tasks that run them."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._waiting: deque[Job] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """Number of jobs that have not been started."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Number of jobs under way."""
        return len(self._running)

    def submit(self, job: Job) -> None:
        """Start the job in its turn; a closed lane ignores it."""
        if self._closed:
            return
        self._waiting.append(job)
        self._start()

    def raise_failure(self) -> None:
        """Raise the exception of a failed job: jobs report through events, so it is a bug."""
        if self._failure is not None:
            raise self._failure

    async def drain(self) -> None:
        """Start no further job, and wait for the running ones."""
        self._close()
        if self._running:
            await asyncio.wait(self._running)

    def cancel(self) -> None:
        """Cancel the running jobs; the protocol allows for an unknown outcome."""
        self._close()
        for task in self._running:
            task.cancel()

    def _close(self) -> None:
        self._closed = True
        self._waiting.clear()

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._width:
            task = asyncio.ensure_future(self._waiting.popleft()())
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
        self._start()
