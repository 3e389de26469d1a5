"""Evictions of the last hour, as the status of the evicted AppWrappers tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from mcad.api.wire import as_int, as_map, as_text, parse_instant

Json = dict[str, Any]

HOUR_US = 3_600_000_000
SHOWN = 20


class Evicted(Struct, frozen=True):
    """The last eviction of one AppWrapper; ``count`` are all of them."""

    at: str
    namespace: str
    name: str
    reason: str
    by: str
    count: int


def evicted_lately(
    objects: Iterable[Mapping[str, Any]], namespace: str | None, now_us: int
) -> list[Evicted]:
    """Those of a namespace (None: all), latest first."""
    found = [
        (at_us, one)
        for obj in objects
        if (last := as_map(as_map(obj.get("status")).get("eviction")))
        and namespace in (None, obj["metadata"]["namespace"])
        and (at_us := parse_instant(last.get("at")) or 0) > now_us - HOUR_US
        and (one := _read(obj, last))
    ]
    return [one for _, one in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]


def _read(obj: Mapping[str, Any], last: Json) -> Evicted:
    return Evicted(
        at=as_text(last.get("at")),
        namespace=obj["metadata"]["namespace"],
        name=obj["metadata"]["name"],
        reason=as_text(last.get("reason")),
        by=as_text(last.get("title")) or as_text(last.get("by")),
        count=as_int(last.get("count")) or 1,
    )
