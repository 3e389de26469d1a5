"""The pages of one consistent list, until it is read to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

from msgspec import Raw, Struct

from mcad.kube.decode import Listed, decode
from mcad.kube.document import HEAD, Document, Picks
from mcad.kube.errors import ApiError, BadAnswer
from mcad.kube.resource import Resource
from mcad.kube.types import Json

PAGE_LIMIT = 500  # objects per list page: client-go's number, bounds the memory of one decode
PAGE_LIMIT_MAX = 4_000  # pages of a long list grow up to so many objects,
PAGE_BYTES = 5_000_000  # or until one has so many bytes: then the largest has twice as many
LIST_RESTARTS_MAX = 2  # expired continue tokens before the list is asked for in one piece

Ask = Callable[[str, int | None], Awaitable[Listed]]
"""Asks for the page at a continue token ("" is the first one), of so many objects (None: all)."""


class Page(Struct, frozen=True):
    """One page of a list. ``first`` is also true when the list had to start again from scratch.

    ``texts`` are the objects as they came; they need not all be read at once.
    """

    resource: Resource
    texts: list[Raw]
    resource_version: str
    first: bool
    last: bool
    remaining: int | None = None  # objects on the pages that follow, where the server counts them

    def documents(self, picks: Picks = HEAD) -> Iterator[Document]:
        """The objects, one after the other; raises ``BadAnswer``."""
        return (Document(text, self.resource, picks) for text in self.texts)

    @property
    def items(self) -> list[Json]:
        """The objects, all read; raises ``BadAnswer``."""
        try:
            return [decode(text) for text in self.texts]
        except ValueError as error:
            raise BadAnswer(f"an object that is no JSON: {error}") from error


async def pages_of(
    resource: Resource, ask: Ask, limit: int, *, ahead: bool
) -> AsyncGenerator[Page, None]:
    """The pages, one after the other.

    When the server forgets the continue token (410), the list starts again: a page with ``first``
    makes all before it void. After ``LIST_RESTARTS_MAX`` of that it is asked for in one piece. With
    ``ahead`` the next page is asked for while the caller reads one, and pages grow while they are
    small, because each costs the server as much as a thousand objects: it is for long lists that
    are read to their end.
    """
    token, restarts = "", 0
    coming: asyncio.Future[Listed] | None = None
    while True:
        size = limit if restarts <= LIST_RESTARTS_MAX else None
        try:
            listed = await (coming or ask(token, size))
        except ApiError as error:
            if not (error.gone and token):
                raise
            token, restarts, coming = "", restarts + 1, None
            continue
        first, token = not token, listed.metadata.token or ""
        version, left = listed.metadata.version or "", listed.metadata.remaining
        page = Page(resource, listed.items or [], version, first, not token, left)
        del listed  # its texts are the caller's
        if ahead and token:
            limit = _grown(limit, page)
            coming = asyncio.ensure_future(ask(token, limit))
        try:
            yield page
        except BaseException:  # the caller reads no further
            if coming is not None:
                coming.add_done_callback(_forgotten)
                coming.cancel()
            raise
        if not token:
            return


def _grown(limit: int, page: Page) -> int:
    is_small = limit < PAGE_LIMIT_MAX and sum(map(len, page.texts)) < PAGE_BYTES
    return 2 * limit if is_small else limit


def _forgotten(page: asyncio.Future[Listed]) -> None:
    """Its failure is of no interest."""
    if not page.cancelled():
        page.exception()
