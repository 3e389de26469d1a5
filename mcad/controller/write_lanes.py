"""Bounded concurrency for writes, in two lanes: writes that dispatches wait for, and reports.

A lane runs at most ``width`` jobs at once. Jobs that continue what was begun go before jobs that
begin something, so that of many AppWrappers that fit the first one runs long before the last one
is begun; of either kind, the order is that of submission. A lane never blocks its caller.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine

Job = Callable[[], Coroutine[None, None, None]]
Sleep = Callable[[float], Coroutine[None, None, None]]

BEGIN_EVERY = 4  # of so many jobs one may begin, or large gangs would keep all others from it
MOMENT_S = 5.0  # a short attempt is over by then, also where the server is slow
LOOKS = 5  # whether the lane is still busy
LOOK_S = MOMENT_S / LOOKS
CALM = 2  # such looks in a row end the wait: also under load a lane is not busy now and then
BUSY = 8  # jobs of a lane, under way or waiting; the server has others to answer as well


async def held_alone(errored: Callable[[str, Exception], None], uid: str, job: Job) -> None:
    """Do a job about one AppWrapper. Jobs report through events, so what they raise is an error of
    ours: it holds that AppWrapper."""
    try:
        await job()
    except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
        errored(uid, error)


class Lane:
    """A queue of jobs and the tasks that run them."""

    def __init__(
        self, width: int, before: "Lane | None" = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        """While jobs wait in the lane ``before`` this one, only one job at a time starts here."""
        self._sleep = sleep
        self._deferred: deque[tuple[int, Job]] = deque()  # with the last look that it waits for
        self._looks = 0
        self._looking: asyncio.Task[None] | None = None
        self._width = width
        self._before = before
        self._beginning: deque[Job] = deque()
        self._continuing: deque[Job] = deque()
        self._turn = 0
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """Number of jobs that have not been started."""
        return len(self._beginning) + len(self._continuing)

    @property
    def beginning(self) -> int:
        """Number of jobs that would begin something and have not been started."""
        return len(self._beginning)

    @property
    def running(self) -> int:
        """Number of jobs under way."""
        return len(self._running)

    @property
    def jobs(self) -> int:
        """Number of jobs under way or waiting."""
        return self.running + self.waiting

    @property
    def is_busy(self) -> bool:
        """Whether jobs queue up, here or in the server."""
        return self.jobs >= BUSY

    def submit(self, job: Job, *, begins: bool = False) -> None:
        """Start the job in its turn; a closed lane ignores it. ``begins``: nothing is under way
        that waits for it."""
        if self._closed:
            return
        (self._beginning if begins else self._continuing).append(job)
        self._start()

    def defer(self, job: Job) -> None:
        """Start the job in its turn. While this lane, or the one before it, is busy, the job waits
        for a moment at most: it may be needless then."""
        if not (self._before or self).is_busy:
            self.submit(job)
            return
        self._deferred.append((self._looks + LOOKS, job))
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        """Submit the deferred jobs whose moment is over; all of them once the lane is not busy at
        two looks in a row."""
        calm = 0
        while self._deferred:
            await self._sleep(LOOK_S)
            self._looks += 1
            calm = 0 if (self._before or self).is_busy else calm + 1
            while self._deferred and (calm >= CALM or self._deferred[0][0] <= self._looks):
                self.submit(self._deferred.popleft()[1])
        self._looking = None

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
        self._deferred.clear()
        if self._looking is not None:
            self._looking.cancel()
        self._beginning.clear()
        self._continuing.clear()

    def _start(self) -> None:
        while self.waiting and len(self._running) < self._room():
            task = asyncio.ensure_future(self._next()())
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _room(self) -> int:
        """How many jobs may run now. Never none: a lane before this one may always be busy."""
        is_behind = self._before is not None and self._before.waiting
        return 1 if is_behind else self._width

    def _next(self) -> Job:
        self._turn = (self._turn + 1) % BEGIN_EVERY
        if self._beginning and (self._turn == 0 or not self._continuing):
            return self._beginning.popleft()
        return self._continuing.popleft()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
        self._start()
