"""Follows figures in a thread with an event loop of its own: keys have to work meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from msgspec import Struct

from mcad.client.errors import McadError
from mcad.client.figures.figures import Figures
from mcad.client.figures.polled import PollingFeed

Json = dict[str, Any]
T = TypeVar("T")

LOOK_S = 1.0  # between two looks at the state of the feed
PATIENCE_S = 2.0  # for connections to close; computing is not waited for

Follow = Callable[[], AbstractAsyncContextManager[tuple[PollingFeed, str | None]]]


class Snapshot(Struct, frozen=True):
    """Figures of one moment; ``namespace`` is the only one to show (None: all)."""

    figures: Figures
    rows: list[Json]
    capacity: Json | None
    namespace: str | None
    at_us: int


class Follower:
    """Calls back from its thread: with figures, with why they may be outdated, and with what ended
    it."""

    def __init__(
        self,
        follow: Follow,
        now_us: Callable[[], int],
        *,
        on_snapshot: Callable[[Snapshot], None],
        on_trouble: Callable[[str], None],
        on_end: Callable[[BaseException], None],
    ) -> None:
        """``follow`` opens the feed."""
        self._follow = follow
        self._now_us = now_us
        self._on_snapshot, self._on_trouble, self._on_end = on_snapshot, on_trouble, on_end
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._failure = ""  # of the latest attempt to read figures
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when connections are closed, or after ``PATIENCE_S``."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(PATIENCE_S)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run something on the loop of the figures, whose connections belong to it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._go())
        try:
            self._loop.run_until_complete(self._task)
        except (asyncio.CancelledError, CancelledError):
            pass
        except BaseException as error:  # noqa: BLE001 - the screen leaves with it
            self._on_end(error)
        finally:
            self._loop.close()

    async def _go(self) -> None:
        async with self._follow() as (feed, namespace):
            looking = asyncio.ensure_future(self._look(feed))
            try:
                while True:
                    await self._read(await feed.next(), namespace)
                    self._on_trouble(feed.trouble or self._failure)
            finally:
                looking.cancel()

    async def _read(self, figures: Figures, namespace: str | None) -> None:
        try:
            rows, capacity = await figures.rows(waiting_only=False), await figures.capacity()
        except McadError as error:  # the dispatcher ended between two requests
            self._failure = error.message
            return
        self._failure = ""
        only = figures.only or namespace
        self._on_snapshot(Snapshot(figures, rows, capacity, only, self._now_us()))

    async def _look(self, feed: PollingFeed) -> None:
        while True:
            self._on_trouble(feed.trouble or self._failure)
            await asyncio.sleep(LOOK_S)
