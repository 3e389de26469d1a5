"""A page of the list of AppWrappers, as it is asked from a dispatcher and answered.

The answer has the rows of the page as ``items``, and ``PageFacts`` as ``page``. A dispatcher that
does not know pages answers with all rows and without ``page``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import asdict

from mcad.api.wire import Json

SIZE_MAX = 1000
WAITING = "waiting"
"""The filter by state for all that wait: in the queue, or on hold."""

SORTS = ("namespace", "name", "state", "priority", "firstSeen")
"""Fields by which a list may be sorted, the greatest first with a minus before them."""

_TEXTS = ("namespace", "leaf", "state", "name", "only", "sort")


class PageQuery(Struct, frozen=True):
    """Filters, and which page of so many rows. ``leaf`` is TREE/NODE: all that is charged at or
    below it; ``name`` is a part of the name. Other namespaces than ``only`` are not even counted.
    ``sort`` is one of ``SORTS``, "" for the order of the queue.
    """

    namespace: str = ""
    leaf: str = ""
    state: str = ""
    name: str = ""
    only: str = ""
    sort: str = ""
    page: int = 1
    size: int = SIZE_MAX

    @property
    def params(self) -> dict[str, str]:
        """The query parameters."""
        texts = {key: value for key, value in asdict(self).items() if key in _TEXTS and value}
        return texts | {"page": str(self.page), "pageSize": str(self.size)}

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Self | None:
        """Of query parameters; None if no page is asked for. Raises ``ValueError``."""
        if "pageSize" not in params:
            return None
        texts = {key: params.get(key, "") for key in _TEXTS}
        if not sorts(texts["sort"]):
            raise ValueError(f"sort must be one of {', '.join(SORTS)}, or one with - before it")
        page = _number("page", params.get("page", "1"), 10**6)
        return cls(**texts, page=page, size=_number("pageSize", params["pageSize"], SIZE_MAX))


class Counts(Struct, frozen=True, rename="camel", kw_only=True):
    """AppWrappers by what they do; ``others`` has those that do not wait, by state."""

    total: int
    in_line: int
    on_hold: int
    others: dict[str, int]
    states: list[str]
    namespaces: list[str]


class Evicted(Struct, frozen=True):
    """The last eviction of one AppWrapper ``by`` another; ``count`` are all of them so far."""

    at: str
    namespace: str
    name: str
    reason: str
    by: str
    count: int


class Evictions(Struct, frozen=True):
    """AppWrappers that were evicted in the last hour: how many, and the latest of them."""

    count: int = 0
    latest: list[Evicted] = field(default_factory=list)


class Notices(Struct, frozen=True):
    """What a page of the list says besides: why dispatch is paused for the whole cluster ("": it is
    not), and the evictions of the last hour."""

    paused: str = ""
    evictions: Evictions = field(default_factory=Evictions)


class PageFacts(Counts, frozen=True, rename="camel", kw_only=True):
    """Which page it is, of how many, and how many AppWrappers match.

    The counts and the notices are those of all, whatever the filter. An older dispatcher tells no
    evictions, and sorts nothing: ``sort`` is how the rows are sorted.
    """

    number: int
    pages: int
    matching: int
    paused: str = ""
    evictions: Evictions = field(default_factory=Evictions)
    sort: str = ""

    @classmethod
    def read(cls, value: Json) -> Self:
        """Of an answer; raises ``ValueError``."""
        try:
            return convert(value, cls)
        except ValidationError as error:
            raise ValueError(f"page: {error}") from error


def sorts(sort: str) -> bool:
    """Whether it is an order of a list, "" included."""
    return sort == "" or sort.removeprefix("-") in SORTS


def _number(name: str, text: str, most: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 8
    if not is_number or not 1 <= int(text) <= most:
        raise ValueError(f"{name} must be a number from 1 to {most}")
    return int(text)
