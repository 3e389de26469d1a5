"""What a page asks for and shows: sorted rows, filtered by namespace, quota, state and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from mcad.api.list_page import PageFacts, PageQuery, sorts

Json = dict[str, Any]

PAGE_ROWS = 100


FILTERS = ("namespace", "leaf", "state", "name")


class Query(Struct, frozen=True):
    """What the address asks for. ``leaf`` is TREE/NODE: all that is charged at or below it.
    ``sort`` is as ``PageQuery`` has it."""

    namespace: str = ""
    leaf: str = ""
    state: str = ""
    name: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """The query of an address; what is not understood is ignored."""
        page = given.get("page", "")
        number = int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 1
        filters = {key: given.get(key, "").strip() for key in FILTERS}
        sort = given.get("sort", "")
        return cls(**filters, sort=sort if sorts(sort) else "", page=max(number, 1))

    @property
    def text(self) -> str:
        """For links: ``?namespace=x``, "" if nothing is asked for."""
        given = {
            key: value
            for key, value in asdict(self).items()
            if value and (key, value) != ("page", 1)
        }
        return f"?{urlencode(given)}" if given else ""

    def asked(self, only: str | None) -> PageQuery:
        """The same for a dispatcher, in one namespace or in all (None)."""
        return PageQuery(**asdict(self), only=only or "", size=PAGE_ROWS)

    def at(self, page: int) -> Self:
        """The same on another page."""
        return replace(self, page=page)

    def by(self, field: str) -> Self:
        """The same in the order of a field, the other way round if that is its order already."""
        return replace(self, sort=f"-{field}" if field and self.sort == field else field, page=1)

    @property
    def is_filtered(self) -> bool:
        """Whether rows are left out."""
        return any(getattr(self, one) for one in FILTERS)


class Shown(Struct, frozen=True):
    """The rows of one page, and the facts about it."""

    rows: list[Json]
    facts: PageFacts
