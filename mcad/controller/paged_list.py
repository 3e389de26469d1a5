"""The list of AppWrappers in pages: rows for those that are shown, and counts of all.

A row needs a verdict and costs many times its outline, and a page has 100 of maybe 10,000. A list
serves several pages; each row is made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import asdict

from mcad.api.list_page import WAITING, Counts, Notices, PageFacts, PageQuery
from mcad.api.wire import to_json
from mcad.controller.reservation_views import evictions_view
from mcad.controller.start_time_views import starts_of_line
from mcad.controller.views import row_view
from mcad.core.cluster import Cluster
from mcad.core.views import holders
from mcad.core.views.rows import Outline, Picture

Json = dict[str, Any]


class PagedList:
    """The AppWrappers of one moment; see ``Picture`` for what is of that moment."""

    def __init__(self, cluster: Cluster, picture: Picture) -> None:
        self._cluster = cluster
        self.picture = picture
        self._within: dict[str, tuple[Sequence[Outline], Counts]] = {}
        self._rows: dict[int, Json] = {}  # by place
        self._notices: dict[str, Notices] = {}  # by namespace, "" for all

    def find(self, query: PageQuery) -> tuple[Sequence[Outline], PageFacts]:
        """The AppWrappers of the page, in order, and the facts about it."""
        outlines, counts = self._in(query.only)
        uids = self._charged(query.leaf) if query.leaf else None
        return page_of(outlines, counts, query, uids, self._notices_in(query.only))

    def row_steps(self, chosen: Sequence[Outline], *, with_starts: bool) -> Iterator[Json]:
        """The rows of some of them, one by one."""
        for one in chosen:
            if one.place not in self._rows:
                self._rows[one.place] = row_view(self.picture.row(one.place))
            row = self._rows[one.place]
            yield row | {"starts": self._starts.get(one.uid)} if with_starts else row

    @cached_property
    def _starts(self) -> dict[str, Json]:
        return starts_of_line(self._cluster, self.picture)

    @property
    def _paused(self) -> str:
        pauses = self._cluster.waiting.dispatch_pauses.by_uid.values()
        return next((one.text for one in pauses if one.is_everywhere), "")

    def _in(self, namespace: str) -> tuple[Sequence[Outline], Counts]:
        if namespace not in self._within:
            outlines = self.picture.outlines()
            if namespace:
                outlines = [one for one in outlines if one.namespace == namespace]
            self._within[namespace] = outlines, counts_of(outlines)
        return self._within[namespace]

    def _notices_in(self, namespace: str) -> Notices:
        if namespace not in self._notices:
            evictions = evictions_view(self._cluster, self.picture.now, namespace)
            self._notices[namespace] = Notices(self._paused, evictions)
        return self._notices[namespace]

    def _charged(self, leaf: str) -> Collection[str]:
        tree, _, node = leaf.partition("/")
        return holders.counted(self._cluster, tree, node)


def counts_of(outlines: Sequence[Outline]) -> Counts:
    """Of all of them."""
    by_kind = Counter((one.state, one.in_line, one.waits) for one in outlines)
    others: Counter[str] = Counter()
    in_line = on_hold = 0
    for (state, is_in_line, waits), count in by_kind.items():
        if is_in_line:
            in_line += count
        elif waits:
            on_hold += count
        else:
            others[state] += count
    return Counts(
        total=len(outlines),
        in_line=in_line,
        on_hold=on_hold,
        others=dict(sorted(others.items())),
        states=sorted({state for state, _, _ in by_kind}),
        namespaces=sorted({one.namespace for one in outlines}),
    )


def page_of(
    outlines: Sequence[Outline],
    counts: Counts,
    query: PageQuery,
    uids: Collection[str] | None,
    notices: Notices,
) -> tuple[Sequence[Outline], PageFacts]:
    """The AppWrappers of a page, and the facts about it; the last page if there is no such page.

    ``uids`` are those that the filter by quota lets through, None without one.
    """
    found = [one for one in outlines if _matches(one, query, uids)] if _filters(query) else outlines
    found = _sorted(found, query.sort)
    pages = max(-(-len(found) // query.size), 1)
    number = min(query.page, pages)
    first = (number - 1) * query.size
    facts = PageFacts(
        **asdict(counts),
        **asdict(notices),
        number=number,
        pages=pages,
        matching=len(found),
        sort=query.sort,
    )
    return found[first : first + query.size], facts


_SORT_KEYS: dict[str, Callable[[Outline], str | int]] = {
    "namespace": lambda one: one.namespace,
    "name": lambda one: one.name,
    "state": lambda one: one.state,
    "priority": lambda one: one.priority,
    "firstSeen": lambda one: one.first_seen,
}


def _sorted(found: Sequence[Outline], sort: str) -> Sequence[Outline]:
    """Equal ones stay in the order of the queue."""
    key = _SORT_KEYS.get(sort.removeprefix("-"))
    return sorted(found, key=key, reverse=sort.startswith("-")) if key is not None else found


def _filters(query: PageQuery) -> bool:
    return bool(query.namespace or query.leaf or query.state or query.name)


def _matches(one: Outline, query: PageQuery, uids: Collection[str] | None) -> bool:
    return (
        query.namespace in ("", one.namespace)
        and (not query.name or query.name in one.name)
        and (query.state in ("", one.state) or (query.state == WAITING and one.waits))
        and (uids is None or one.uid in uids)
    )


def page_answer(rows: Sequence[bytes], facts: PageFacts) -> bytes:
    """The JSON text of a page."""
    return b'{"items":[' + b",".join(rows) + b'],"page":' + to_json(facts) + b"}"
