"""All AppWrappers of one moment. The dispatcher counts and filters them, and makes the rows of a
page; what is stored is counted and filtered here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from mcad.api.list_page import Notices, PageFacts, PageQuery
from mcad.api.wire import parse_instant
from mcad.client.errors import McadError
from mcad.client.figures.figures import Figures
from mcad.client.figures.polled import PolledFigures
from mcad.client.figures.row import is_in_line, is_waiting, within
from mcad.controller.paged_list import counts_of, page_of
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.views.rows import Outline
from mcad.ui.rows import Query, Shown

Json = dict[str, Any]

PAUSED = str(WaitingReason.DISPATCH_PAUSED)
EVERYWHERE = DispatchPause("", "").title


class Listing(Protocol):
    """The AppWrappers that are shown, the queue first and in its order."""

    @property
    def facts(self) -> PageFacts:
        """Counts of all of them."""
        ...

    async def shown(self, query: Query) -> Shown:
        """The rows of a page, with start time estimates; raises ``McadError``."""
        ...


class ListedRows:
    """Rows that are there already: what is stored, or those of an older dispatcher."""

    def __init__(self, figures: Figures, rows: Sequence[Json], namespace: str | None) -> None:
        self._rows = {row["uid"]: row for row in rows}
        self._outlines = [
            Outline(
                place,
                row["uid"],
                row["namespace"],
                row["name"],
                row["state"],
                is_in_line(row),
                is_waiting(row),
                row["priority"],
                parse_instant(row["firstSeen"]),
            )
            for place, row in enumerate(rows, 1)
        ]
        self._asked = figures
        self._namespace = namespace
        self._notices = Notices(_pause(rows))
        self._counts = counts_of(self._outlines)
        self._charged: dict[str, frozenset[str]] = {}  # by quota node

    @cached_property
    def facts(self) -> PageFacts:
        """Counts of all of them."""
        return self._find(Query().asked(None), None)[1]

    async def shown(self, query: Query) -> Shown:
        """The rows of a page."""
        uids = await self._charged_at(query.leaf) if query.leaf else None
        chosen, facts = self._find(query.asked(self._namespace), uids)
        return Shown([self._rows[one.uid] for one in chosen], facts)

    def _find(
        self, query: PageQuery, uids: frozenset[str] | None
    ) -> tuple[Sequence[Outline], PageFacts]:
        return page_of(self._outlines, self._counts, query, uids, self._notices)

    async def _charged_at(self, leaf: str) -> frozenset[str]:
        """The uids of the AppWrappers that count at a quota node, TREE/NODE."""
        if leaf not in self._charged:
            tree, _, node = leaf.partition("/")
            view = await self._asked.quota_node(tree, node) or {"queue": [], "holders": []}
            both = [*view["queue"], *view["holders"]]
            self._charged[leaf] = frozenset(one["uid"] for one in both)
        return self._charged[leaf]


class AskedRows:
    """Pages that a dispatcher makes, each asked for once.

    One that is not answered is shown as it was: the next figures say what is wrong.
    """

    def __init__(
        self,
        figures: PolledFigures,
        first: Shown,
        namespace: str | None,
        earlier: Mapping[PageQuery, Shown],
    ) -> None:
        """``earlier`` are the pages of the figures before these."""
        self.facts = first.facts
        self.known = {Query().asked(namespace): first}
        self._figures = figures
        self._namespace = namespace
        self._earlier = earlier
        self._turn = asyncio.Lock()

    async def shown(self, query: Query) -> Shown:
        """The rows of a page."""
        asked = query.asked(self._namespace)
        async with self._turn:
            if asked not in self.known:
                self.known[asked] = await self._ask(asked)
            return self.known[asked]

    async def _ask(self, asked: PageQuery) -> Shown:
        try:
            page = await self._figures.page(asked)
            if page.facts is None:
                raise McadError("the dispatcher does not know pages of its list")
        except McadError:
            if asked not in self._earlier:
                raise
            return self._earlier[asked]
        return Shown(page.rows, page.facts)


async def listing_of(
    figures: PolledFigures, namespace: str | None, before: Listing | None
) -> Listing:
    """The AppWrappers of figures; ``before`` are those of the figures before these."""
    first = figures.first
    if first is None:
        raise McadError("the figures have no page of AppWrappers")
    if first.facts is None:
        return ListedRows(figures, within(first.rows, namespace), namespace)
    earlier = before.known if isinstance(before, AskedRows) else {}
    return AskedRows(figures, Shown(first.rows, first.facts), namespace, earlier)


def _pause(rows: Sequence[Json]) -> str:
    """Why nothing is dispatched in the whole cluster, as AppWrappers that wait for it say."""
    texts = (row["why"] for row in rows if row["waitsFor"] == PAUSED)
    return next((text for text in texts if text.startswith(EVERYWHERE)), "")
