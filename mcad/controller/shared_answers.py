"""Answers some seconds old, shared by callers that accept them: pages that stay open all day.

Without, the dispatcher would make the list of all AppWrappers for each page anew. An answer is kept
for a time that grows with its cost, so that all of these callers together cost a bounded share of
the time. Callers that do not ask for it always get an answer of now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable

from aiohttp import web
from msgspec import Struct

SHARE = 0.04  # of the time
KEPT_S_MAX = 60.0


class _Answer(Struct, frozen=True):
    body: bytes
    asked_at: float
    kept_until: float


class SharedAnswers:
    """Answers by what was asked for; they are made one at a time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: dict[Hashable, _Answer] = {}
        self._turn = asyncio.Lock()

    async def get(
        self, asked_for: Hashable, max_age_s: float, make: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """An answer that is at most so old; with 0 it is made now."""
        if max_age_s <= 0:
            return await make()
        async with self._turn:
            now = self._monotonic()
            self._kept = {key: one for key, one in self._kept.items() if now < one.kept_until}
            known = self._kept.get(asked_for)
            if known is not None and now < known.asked_at + max_age_s:
                return known.body
            body = await make()
            ended = self._monotonic()
            kept_s = min((ended - now) / SHARE, KEPT_S_MAX)
            self._kept[asked_for] = _Answer(body, now, ended + kept_s)
            return body


def max_age_s(request: web.Request) -> int:
    """The age that a caller accepts (``?maxAge=10``, in seconds); 0 if it does not say."""
    given = request.query.get("maxAge", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 0
