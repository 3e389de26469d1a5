"""The HTTP port of a standby: its readiness, and figures computed from lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from mcad.controller.http_server import asks_for_starts
from mcad.controller.leader_figures import FiguresUnavailable
from mcad.kube.errors import KubeError

if TYPE_CHECKING:
    from mcad.controller.replica import Replica

Json = dict[str, Any]

ROLE = {"Mcad-Role": "standby"}


class Figures(Protocol):
    """Figures of one instant, in the same form as those of a leader."""

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first and in order."""
        ...

    async def capacity(self) -> Json:
        """Capacity per node and in total."""
        ...

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full; None if it does not exist."""
        ...

    async def quota(self) -> Json:
        """All quota trees."""
        ...

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        ...


class Standby:
    """Answers requests while this process does not lead."""

    def __init__(self, replica: Replica, count: Callable[[], Awaitable[Figures]]) -> None:
        """``count`` returns figures at most a moment old, or raises ``FiguresUnavailable``."""
        self._lease = replica.lease
        self._replica = replica
        self._count = count

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
        response = await self._answer(request)
        response.headers.update(ROLE)
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        match request.path:
            case "/healthz":
                return web.Response(text="ok\n")
            case "/readyz":
                return self._readyz()
            case "/metrics":
                return metrics_page(self._replica.metrics.page())
            case _:
                return await self._figures(request)

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

    async def _figures(self, request: web.Request) -> web.Response:
        try:
            figures = await self._count()
            where = request.match_info
            if "name" in where:
                return found(await figures.detail(where["namespace"], where["name"]))
            if "node" in where:
                return found(await figures.quota_node(where["tree"], where["node"]))
            if request.path.endswith("/quota"):
                return web.json_response(await figures.quota())
            if request.path.endswith("/capacity"):
                return web.json_response(await figures.capacity())
            rows = await figures.rows(
                waiting_only=request.path.endswith("/queue"), with_starts=asks_for_starts(request)
            )
        except (FiguresUnavailable, KubeError) as error:
            raise web.HTTPServiceUnavailable(text=f"{error}\n", headers=ROLE) from error
        return web.json_response({"items": rows})


def metrics_page(text: bytes) -> web.Response:
    """The answer with a page of metrics."""
    return web.Response(
        body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    )


def found(view: Json | None) -> web.Response:
    """The answer about one object: 404 and ``null`` if it does not exist."""
    return web.json_response(view, status=200 if view is not None else 404)
