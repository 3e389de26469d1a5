"""The latest figures, followed once and shared by all open pages; while none is open, they rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import thread_time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcad.client.errors import McadError
from mcad.client.figures.pace import PATIENT, SHARING, Pace
from mcad.client.figures.polled import PolledFigures, PollingFeed
from mcad.client.figures.presence import UNKNOWN, Heartbeat
from mcad.client.figures.source import follow_figures
from mcad.client.scope import Scope, Source
from mcad.client.session import Environment
from mcad.ui.history import History, Sample
from mcad.ui.leader import LeaderWatch
from mcad.ui.listing import Listing, listing_of
from mcad.ui.rows import PAGE_ROWS

Json = dict[str, Any]

RETRY_S = 5.0  # until figures that have ended are followed again
RENDERED_S = 0.2  # by then open pages have what is new
UNSETTLED_S = 120.0  # after another leader its first figures are asked for often
LINGER_S = 60.0  # figures are renewed for so long after the last page was closed


class Moment(Struct, frozen=True):
    """The figures of one moment. ``version`` grows with each; ``at_us`` is its time.

    Capacity and quota are None if the caller may not see them. ``trouble`` is why the figures may
    be outdated; ``at_us`` stays at the last moment without trouble. ``namespace`` is the only one
    shown, None for all. ``leader`` is that of the Lease, which may be newer than the figures.
    """

    version: int
    at_us: int
    figures: PolledFigures
    listing: Listing
    capacity: Json | None
    quota: Json | None
    namespace: str | None
    trouble: str = ""
    history: tuple[Sample, ...] = ()
    leader: Heartbeat = UNKNOWN


class BoardEndedError(Exception):
    """The figures are not followed any more."""


class Board:
    """Follows the figures in one task; pages wait for the next moment."""

    def __init__(  # noqa: PLR0913 - what a page can ask for, by name
        self,
        environment: Environment,
        source: Source,
        scope: Scope,
        *,
        may_narrow: bool,
        pace: Pace = PATIENT,
        persistent: bool = False,
    ) -> None:
        """``may_narrow``: show the namespace of the context if the caller may not see all. ``pace``
        is that of updates, by the CPU time of this thread. ``persistent``: a failure before the
        first figures is no end."""
        self.environment = environment
        self.source = source
        self._scope = scope
        self._may_narrow = may_narrow
        self._pace = pace
        self._persistent = persistent
        self._latest: Moment | None = None
        self._changed = asyncio.Event()
        self._version = 0
        self._feed: PollingFeed | None = None
        self._watchers = 0
        self._attended_until = float("-inf")
        self._spent_s = 0.0
        self._history = History()
        self._wanted = asyncio.Event()
        self._leader = LeaderWatch(environment, source.target, self._attended, self._hurry)
        self._hurried = asyncio.Event()
        self._unsettled_until = float("-inf")
        self._is_over = False

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """A page is open until the end of the block: figures are renewed."""
        self._watchers += 1
        self._attend()
        try:
            yield
        finally:
            self._watchers -= 1
            self._attend()

    async def now(self) -> Moment:
        """The latest figures; newer ones if no page was open."""
        is_followed = self._is_watched
        self._attend()
        latest = self._latest
        if latest is not None and (is_followed or self._feed is None):
            return latest
        return await self.after(latest.version if latest is not None else 0)

    @property
    def _is_watched(self) -> bool:
        return self._watchers > 0 or self.environment.clock.monotonic() < self._attended_until

    def _attend(self) -> None:
        self._attended_until = self.environment.clock.monotonic() + LINGER_S
        self._wanted.set()

    @property
    def latest(self) -> Moment | None:
        """The latest figures, None before the first ones."""
        return self._latest

    async def after(self, version: int) -> Moment:
        """The latest figures, later than ``version``; raises ``BoardEndedError``."""
        while self._latest is None or self._latest.version <= version:
            if self._is_over:
                raise BoardEndedError
            await self._changed.wait()
        return self._latest

    @asynccontextmanager
    async def followed(self, on_end: Callable[[], None] | None = None) -> AsyncIterator[None]:
        """Follow until the end of the block; ``on_end`` is called if it fails before."""
        following = asyncio.ensure_future(self._follow())
        if on_end is not None:
            following.add_done_callback(lambda _: on_end())
        tasks = [following]
        if not self.source.server:  # without a kubeconfig there is no Lease to read
            tasks.append(asyncio.ensure_future(self._leader.follow()))
        try:
            yield
        finally:
            self._is_over = True
            self._changed.set()
            for one in tasks:
                one.cancel()
            for one in tasks:
                with suppress(asyncio.CancelledError):
                    await one

    async def _follow(self) -> None:
        """Follow for ever. A failure before the first figures is raised, later ones are shown."""
        while True:
            try:
                await self._follow_once()
            except McadError as error:
                if self._latest is None and not self._persistent:
                    raise
                self._publish_trouble(error.message)
            await self.environment.clock.sleep(RETRY_S)

    async def _follow_once(self) -> None:
        following = follow_figures(
            self.environment,
            self.source,
            self._scope,
            may_narrow=self._may_narrow,
            page_size=PAGE_ROWS,
            pace=SHARING,
        )
        async with following as (self._feed, namespace):
            feed = self._feed
            while True:
                await self._unless_hurried(feed.rest())
                self._hurried.clear()
                figures = await feed.poll()
                try:
                    self._publish(await self._read(feed, figures, namespace))
                except McadError as error:  # the dispatcher ended between two requests
                    if self._latest is None:
                        raise
                    self._publish_trouble(error.message)
                await self._rest()

    async def _rest(self) -> None:
        """Pause after an update as its cost demands, pages and parts of them included."""
        clock = self.environment.clock
        await clock.sleep(RENDERED_S)
        spent_s = thread_time()
        if self._spent_s:  # the first lists are read once
            pause_s = self._pace.pause_s(spent_s - self._spent_s)
            await self._unless_hurried(clock.sleep(pause_s))
        self._spent_s = spent_s
        if not self._is_watched:
            self._history.forget()
        await self._attended()

    async def _attended(self) -> None:
        """Wait until a page is open."""
        while not self._is_watched:
            self._wanted.clear()
            await self._wanted.wait()

    def _hurry(self) -> None:
        """Another dispatcher leads, or none: show that, and ask for figures at once."""
        if self._latest is not None:
            self._unsettled_until = self.environment.clock.monotonic() + UNSETTLED_S
            self._publish(self._latest)
            self._hurried.set()

    async def _unless_hurried(self, rest: Awaitable[None]) -> None:
        """Rest until another dispatcher leads; while it has not answered yet, only shortly."""
        resting = asyncio.ensure_future(rest)
        waits = [resting, asyncio.ensure_future(self._hurried.wait())]
        if self._is_unsettled:
            waits.append(asyncio.ensure_future(self.environment.clock.sleep(RETRY_S)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    @property
    def _is_unsettled(self) -> bool:
        latest = self._latest
        answers = latest is not None and not latest.trouble and not latest.figures.is_stored
        return not answers and self.environment.clock.monotonic() < self._unsettled_until

    async def _read(
        self, feed: PollingFeed, figures: PolledFigures, namespace: str | None
    ) -> Moment:
        capacity = await figures.capacity()
        quota = None
        with suppress(McadError):  # a right that a tenant need not have
            quota = await figures.quota()
        namespace = figures.only or namespace
        now_us = self.environment.clock.now_us()
        at_us = self._latest.at_us if feed.trouble and self._latest is not None else now_us
        return Moment(
            version=0,
            at_us=at_us,
            figures=figures,
            listing=await self._listing(figures, namespace),
            capacity=capacity,
            quota=quota,
            namespace=namespace,
            trouble=feed.trouble,
            history=self._history.note(at_us, capacity),
        )

    async def _listing(self, figures: PolledFigures, namespace: str | None) -> Listing:
        latest = self._latest
        if latest is not None and latest.figures is figures:
            return latest.listing
        return await listing_of(figures, namespace, latest.listing if latest is not None else None)

    def _publish_trouble(self, trouble: str) -> None:
        if self._latest is not None:
            self._publish(replace(self._latest, trouble=trouble))

    def _publish(self, moment: Moment) -> None:
        self._version += 1
        self._latest = replace(moment, version=self._version, leader=self._leader.latest)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
