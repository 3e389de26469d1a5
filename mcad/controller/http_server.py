"""Shared parts of the HTTP port and the visibility API: server, query and answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from mcad.api.list_page import PageQuery

if TYPE_CHECKING:
    import ssl


class Server:
    """Serves an application until closed."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port, a free one for 0."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening and end open requests."""
        await self._runner.cleanup()


def asks_for_starts(request: web.Request) -> bool:
    """Whether start time estimates are requested (``?starts=true``), which take more work."""
    return request.query.get("starts") == "true"


def asked_page(request: web.Request) -> PageQuery | None:
    """The page that is requested (``?pageSize=100``), None for the whole list."""
    try:
        return PageQuery.of(request.query)
    except ValueError as error:
        raise web.HTTPBadRequest(reason=str(error)) from error


def json_answer(body: bytes) -> web.Response:
    """An answer with the text of a JSON value."""
    return web.Response(body=body, content_type="application/json", charset="utf-8")
