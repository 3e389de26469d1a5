"""What a page asks for and shows: filters by namespace, quota node, state and name; some rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from mcad.api.list_page import PageFacts, PageQuery

Json = dict[str, Any]

PAGE_ROWS = 100


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

    def asked(self, only: str | None) -> PageQuery:
        """The same for a dispatcher, in one namespace or in all (None)."""
        return PageQuery(**asdict(self), only=only or "", size=PAGE_ROWS)

    def at(self, page: int) -> Self:
        """The same on another page."""
        return replace(self, page=page)


class Shown(Struct, frozen=True):
    """The rows of one page, and the facts about it."""

    rows: list[Json]
    facts: PageFacts
