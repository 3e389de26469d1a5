"""The rows that a query asks for: filters by namespace, quota node, state and name; one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from mcad.core.views.rows import Outline
from mcad.ui.listing import Listing

Json = dict[str, Any]

PAGE_ROWS = 200
WAITING = "waiting"
"""The filter by state for all that wait: in the queue, or on hold."""


class Query(Struct, frozen=True):
    """What the address asks for. ``leaf`` is TREE/NODE: all that is charged at or below it."""

    namespace: str = ""
    leaf: str = ""
    state: str = ""
    name: str = ""
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """The query of an address; what is not understood is ignored."""
        page = given.get("page", "")
        number = int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 1
        texts = {key: given.get(key, "").strip() for key in ("namespace", "leaf", "state", "name")}
        return cls(**texts, page=max(number, 1))

    @property
    def text(self) -> str:
        """For links: ``?namespace=x``, "" if nothing is asked for."""
        given = {
            key: value
            for key, value in asdict(self).items()
            if value and (key, value) != ("page", 1)
        }
        return f"?{urlencode(given)}" if given else ""

    def at(self, page: int) -> Self:
        """The same on another page."""
        return replace(self, page=page)


class Shown(Struct, frozen=True):
    """The rows of one page, how many match, and how many pages they take."""

    rows: list[Json]
    count: int
    page: int
    pages: int


def shown(listing: Listing, query: Query, charged: frozenset[tuple[str, str]] | None) -> Shown:
    """The rows of the page; ``charged`` are (namespace, name) at the quota node, if asked for."""
    found = [one for one in listing.outlines if _matches(one, query, charged)]
    pages = max(-(-len(found) // PAGE_ROWS), 1)
    page = min(query.page, pages)
    first = (page - 1) * PAGE_ROWS
    rows = listing.rows(found[first : first + PAGE_ROWS])
    return Shown(rows, len(found), page, pages)


def _matches(one: Outline, query: Query, charged: frozenset[tuple[str, str]] | None) -> bool:
    return (
        query.namespace in ("", one.namespace)
        and (not query.name or query.name in one.name)
        and (query.state in ("", one.state) or (query.state == WAITING and one.waits))
        and (charged is None or (one.namespace, one.name) in charged)
    )
