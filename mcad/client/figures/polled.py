"""Figures by polling a dispatcher, which serves no watches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from mcad.api.list_page import PageFacts, PageQuery
from mcad.api.questions import Question
from mcad.client.errors import McadError
from mcad.client.figures.figures import Figures
from mcad.client.figures.pace import LIVELY, Pace
from mcad.client.figures.row import is_waiting
from mcad.kube.clock import Clock

Json = dict[str, Any]

POLL_S = 1.0
FAILED_S = 5.0  # until a poll that failed is tried again: it has cost the dispatcher nothing


class ListPage(Struct, frozen=True):
    """Rows of a page, and the facts about it; without (None), all rows, of an older dispatcher."""

    rows: list[Json]
    facts: PageFacts | None


class PolledFigures(Struct, frozen=True):
    """The answers of the latest poll; other figures are requested on use."""

    source: PolledSource
    found: Sequence[Json] | None = None
    trees: Json | None = None
    first: ListPage | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about all figures."""
        return self.source.notes

    @property
    def only(self) -> str | None:
        """The only namespace of the figures; None for the whole cluster."""
        return self.source.only

    @property
    def is_stored(self) -> bool:
        """Whether they are what is stored."""
        return self.source.is_stored

    async def labelled(self, selector: str) -> frozenset[str]:
        """The uids of the AppWrappers with these labels."""
        return await self.source.labelled(selector)

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first and in order; estimates as they were polled."""
        if self.found is None:
            return await self.source.rows(waiting_only=waiting_only, with_starts=with_starts)
        return [row for row in self.found if is_waiting(row) or not waiting_only]

    async def page(self, query: PageQuery) -> ListPage:
        """One page of the rows, with start time estimates."""
        return await self.source.page(query)

    async def capacity(self) -> Json | None:
        """Capacity per node and in total."""
        return await self.source.capacity()

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full; None if it is not known."""
        return await self.source.detail(namespace, name)

    async def why(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full with what would start it; None if it is not known."""
        return await self.source.why(namespace, name)

    async def what_if(self, question: Question, own: str) -> Json:
        """What would differ."""
        return await self.source.what_if(question, own)

    async def quota(self) -> Json:
        """All quota trees."""
        return self.trees if self.trees is not None else await self.source.quota()

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        return await self.source.quota_node(tree, node)


def read_page(rows: list[Json], answer: Json) -> ListPage:
    """The page of an answer; raises ``ValueError``."""
    about = answer.get("page")
    return ListPage(rows, PageFacts.read(about) if about is not None else None)


class PolledSource(Figures, Protocol):
    """Figures that are asked for each time."""

    async def renewed(self) -> PolledSource:
        """Those of this moment, with its notes: of the dispatcher, if it can be asked now."""
        ...

    async def page(self, query: PageQuery) -> ListPage:
        """One page of the rows, with start time estimates."""
        ...


Poll = Callable[[PolledSource], Awaitable[PolledFigures]]


async def poll_rows(source: PolledSource) -> PolledFigures:
    """Poll all rows."""
    now = await source.renewed()
    return PolledFigures(now, found=await now.rows(waiting_only=False))


def polls_page(query: PageQuery) -> Poll:
    """Poll one page of the rows, with start time estimates."""

    async def poll(source: PolledSource) -> PolledFigures:
        now = await source.renewed()
        return PolledFigures(now, first=await now.page(query))

    return poll


async def poll_trees(source: PolledSource) -> PolledFigures:
    """Poll all quota trees."""
    now = await source.renewed()
    return PolledFigures(now, trees=await now.quota())


class PollingFeed:
    """A stream of figures. ``trouble`` is why the latest may be outdated, "" if they are not."""

    def __init__(self, source: PolledSource, clock: Clock, poll: Poll, pace: Pace = LIVELY) -> None:
        """``poll`` reads what is shown."""
        self.trouble = ""
        self._source = source
        self._clock = clock
        self._poll = poll
        self._pace = pace
        self._latest: PolledFigures | None = None
        self._resting_until = float("-inf")

    async def next(self) -> PolledFigures:
        """Poll after a pause."""
        await self.rest()
        return await self.poll()

    async def rest(self) -> None:
        """Pause for as long as the latest poll demands."""
        await self._clock.sleep(max(self._resting_until - self._clock.monotonic(), 0.0))

    async def poll(self) -> PolledFigures:
        """Poll at once; a failure after the first answer only sets ``trouble``."""
        begun = self._clock.monotonic()
        try:
            self._latest = await self._poll(self._source)
            self._source = self._latest.source
            self.trouble = ""
        except McadError as error:
            if self._latest is None:
                raise
            self.trouble = error.message
        ended = self._clock.monotonic()
        pause_s = FAILED_S if self.trouble else max(POLL_S, self._pace.pause_s(ended - begun))
        self._resting_until = ended + pause_s
        return self._latest
