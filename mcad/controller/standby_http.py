"""The HTTP port of a standby: its readiness, and the name of the leader.

A standby decides nothing, so it has no figures: a core cannot follow another dispatcher.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from mcad.controller.replica import Replica


class Standby:
    """Answers requests while this process does not lead."""

    def __init__(self, replica: Replica) -> None:
        self._lease = replica.lease
        self._replica = replica

    @web.middleware
    async def answer(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """A middleware: answers every known path while this process does not lead."""
        is_served = self._replica.controller is not None or request.path.startswith("/debug/")
        if is_served or request.match_info.http_exception is not None:
            return await handler(request)
        match request.path:
            case "/healthz":
                return web.Response(text="ok\n")
            case "/readyz":
                return self._readyz()
            case "/metrics":
                return metrics_page(self._replica.metrics.page())
        leader = self._lease.leader
        asks = f"{leader} leads: forward its port and ask it" if leader else "no process leads yet"
        raise web.HTTPServiceUnavailable(text=f"this process stands by; {asks}\n")

    def _readyz(self) -> web.Response:
        """Ready to take over if another process leads, the Lease can be used, and the copy is
        complete: a rolling update ends the leader when this one is ready."""
        lease = self._lease
        if lease.trouble:
            return web.Response(status=503, text=f"not leading: {lease.trouble}\n")
        if not lease.leader or lease.leader == lease.identity:
            return web.Response(status=503, text="not synced: no leader yet\n")
        if not self._is_copied:
            return web.Response(status=503, text="standby: its copy is not complete yet\n")
        return web.Response(text=f"standby; {lease.leader} leads\n")

    @property
    def _is_copied(self) -> bool:
        standby = self._replica.standby
        return standby is not None and standby.watches.is_copied


def metrics_page(text: bytes) -> web.Response:
    """The answer with a page of metrics."""
    return web.Response(
        body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    )
