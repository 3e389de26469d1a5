"""What an open page is sent: parts of it, as server-sent events, only when they have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from mcad.client.errors import McadError
from mcad.ui.board import Board
from mcad.ui.pages import Pages
from mcad.ui.rows import Query

ALIVE_S = 15.0
ALIVE = b": alive\n\n"
"""A comment: a connection whose other end is gone fails on it."""


def event(name: str, html: str) -> bytes:
    """One event; every line of its data has the prefix that the format asks for."""
    data = "".join(f"data: {line}\n" for line in html.splitlines() or [""])
    return f"event: {name}\n{data}\n".encode()


async def events(
    board: Board, pages: Pages, query: Query, seen: int
) -> AsyncGenerator[bytes, None]:
    """Events for a page that was rendered from version ``seen`` of the figures."""
    sent: dict[str, str] = {}
    latest = board.latest
    if latest is not None and latest.version == seen:
        sent = await pages.parts(latest, query)
    else:
        seen = -1
    while True:
        try:
            async with asyncio.timeout(ALIVE_S):
                moment = await board.after(seen)
            parts = await pages.parts(moment, query)
        except TimeoutError:
            yield ALIVE
            continue
        except McadError:  # of the filter by quota; the next figures say what is wrong
            seen = board.latest.version if board.latest is not None else seen
            continue
        seen = moment.version
        for name, html in parts.items():
            if sent.get(name) != html:
                yield event(name, html)
        yield event("changed", str(seen))  # for the drawer, which asks for its own
        sent = parts
