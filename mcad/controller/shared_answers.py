"""Answers some seconds old, shared by callers that accept them: pages that stay open all day.

Without, the dispatcher would make the list of all AppWrappers for each page anew. An answer is kept
for a time that grows with its cost, so that all of these callers together cost a bounded share of
the time. Callers that do not ask for it always get an answer of now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

T = TypeVar("T")

SHARE = 0.04  # of the time
KEPT_S_MAX = 60.0


class _Answer(Struct, Generic[T], frozen=True):
    content: T
    asked_at: float
    kept_until: float


class SharedAnswers(Generic[T]):
    """Answers by what was asked for; they are made one at a time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: dict[Hashable, _Answer[T]] = {}
        self._turn = asyncio.Lock()

    async def get(
        self, asked_for: Hashable, max_age_s: float, make: Callable[[], Awaitable[T]]
    ) -> T:
        """An answer that is at most so old; with 0 it is made now."""
        if max_age_s <= 0:
            return await make()
        async with self._turn:
            now = self._monotonic()
            self._kept = {key: one for key, one in self._kept.items() if now < one.kept_until}
            known = self._kept.get(asked_for)
            if known is not None and now < known.asked_at + max_age_s:
                return known.content
            content = await make()
            ended = self._monotonic()
            kept_s = min((ended - now) / SHARE, KEPT_S_MAX)
            self._kept[asked_for] = _Answer(content, now, ended + kept_s)
            return content

    def charge(self, asked_for: Hashable, spent_s: float) -> None:
        """More time was spent on an answer that is kept, which is kept longer for it."""
        known = self._kept.get(asked_for)
        if known is not None:
            until = min(known.kept_until + spent_s / SHARE, known.asked_at + KEPT_S_MAX)
            self._kept[asked_for] = replace(known, kept_until=max(until, known.kept_until))


def max_age_s(request: web.Request) -> int:
    """The age that a caller accepts (``?maxAge=10``, in seconds); 0 if it does not say."""
    given = request.query.get("maxAge", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 0
