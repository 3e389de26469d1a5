"""The HTTP port: health, readiness, metrics, and the figures that the CLI asks for with --server.

It changes nothing, and figures about AppWrappers are served on loopback only (loopback.py).
``/healthz`` fails when the event loop has not turned for a while. ``/readyz`` fails while the
objects that every decision rests on cannot be seen, and names the kinds whose AppWrappers have to
wait. While another process leads, standby_http.py answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from mcad.api.wire import to_json
from mcad.controller import loopback
from mcad.controller.answers import BadQuestionError
from mcad.controller.debug_views import configuration, stacks
from mcad.controller.http_server import asked_page, asked_question, asks_for_starts, json_answer
from mcad.controller.leader_figures import FiguresUnavailable, LeaderFigures
from mcad.controller.paged_list import page_answer
from mcad.controller.shared_answers import SharedAnswers, max_age_s
from mcad.controller.standby_http import Standby, metrics_page

if TYPE_CHECKING:
    from mcad.controller.metrics_access import MetricsAccess
    from mcad.controller.replica import Replica
    from mcad.controller.runtime import Controller

Json = dict[str, Any]

STALL_S = 60.0  # the loop turns at least every 20 s (runtime.PULSE_S)


def application(replica: Replica, *, metrics_are_private: bool = False) -> web.Application:
    """The routes of one process."""
    standby = Standby(replica)
    guard = loopback.guard_metrics_too if metrics_are_private else loopback.guard
    app = web.Application(middlewares=[guard, standby.answer, _or_why_not])
    port = _Port(replica)
    app.add_routes(
        [
            web.get("/healthz", port.healthz),
            web.get("/readyz", port.readyz),
            web.get("/metrics", port.metrics),
            web.get("/debug/stacks", port.stacks),
            web.get("/debug/config", port.config),
            web.get("/api/v1/queue", port.queue),
            web.get("/api/v1/appwrappers", port.appwrappers),
            web.get("/api/v1/appwrappers/{namespace}/{name}", port.appwrapper),
            web.get("/api/v1/appwrappers/{namespace}/{name}/why", port.why),
            web.post("/api/v1/what-if/{namespace}", port.what_if),
            web.get("/api/v1/capacity", port.capacity),
            web.get("/api/v1/quota", port.quota),
            web.get("/api/v1/quota/{tree}/{node}", port.quota_node),
        ]
    )
    return app


def metrics_application(replica: Replica, access: MetricsAccess) -> web.Application:
    """Metrics alone, for callers with the right to read them."""
    app = web.Application(middlewares=[access.guard])
    app.add_routes([web.get("/metrics", _Port(replica).any_metrics)])
    return app


class _Port:
    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._figures = LeaderFigures(replica)
        self._shared: SharedAnswers[bytes] = SharedAnswers()

    @property
    def _controller(self) -> Controller:
        """The controller of this process, which leads: requests to a standby do not get here."""
        if self._replica.controller is None:
            raise web.HTTPServiceUnavailable
        return self._replica.controller

    async def healthz(self, _: web.Request) -> web.Response:
        """``ok``; 500 after a minute without a step of the event loop."""
        clock = self._controller.clock
        stalled = clock.monotonic() - self._controller.stepped_at
        if self._controller.watches.is_synced and stalled > STALL_S:
            return web.Response(status=500, text=f"no step for {stalled:.0f} s\n")
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """``ok`` if AppWrappers are dispatched, else 503 with the reason.

        A standby is ready when its copy is complete. Each kind that AppWrappers have to wait for
        has one more line.
        """
        watches, cluster = self._controller.watches, self._controller.dispatcher.cluster
        obstacles = watches.obstacles()
        held = [
            f"{one.title} in namespace {one.namespace}: {one.message}"
            for one in cluster.held_resources()
        ]
        lines = [f"degraded: {one}" for one in (*watches.degraded(), *held)]
        if not watches.is_synced:
            first = f"not synced: {'; '.join(obstacles)}" if obstacles else "not synced"
        elif obstacles:
            first = f"nothing is dispatched: {'; '.join(obstacles)}"
        else:
            first = "ok"
        status = 200 if first == "ok" else 503
        return web.Response(status=status, text="\n".join([first, *lines, ""]))

    async def metrics(self, _: web.Request) -> web.Response:
        """Metrics in the text format of Prometheus."""
        return metrics_page(await self._controller.metrics.page())

    async def any_metrics(self, request: web.Request) -> web.Response:
        """Metrics in the text format of Prometheus, of a leader or of a standby."""
        if self._replica.controller is None:
            return metrics_page(self._replica.metrics.page())
        return await self.metrics(request)

    async def stacks(self, _: web.Request) -> web.Response:
        """The stacks of all threads and tasks, and of errors about single AppWrappers."""
        leader = self._replica.controller
        errors = leader.errors.page() if leader is not None else ""
        return web.Response(text="\n".join([stacks(), errors]))

    async def config(self, _: web.Request) -> web.Response:
        """The version and the configuration in force."""
        return web.json_response(configuration(self._replica.config))

    async def queue(self, request: web.Request) -> web.Response:
        """AppWrappers that wait, in queue order.

        ``?starts=true`` adds start time estimates; with ``?maxAge=10`` an answer that is at most 10
        seconds old will do.
        """
        return await self._rows(request, waiting_only=True)

    async def appwrappers(self, request: web.Request) -> web.Response:
        """All AppWrappers; ``?starts=true`` and ``?maxAge=10`` as above.

        With ``?pageSize=100&page=1`` 100 of them and, as ``page``, counts of all and the evictions
        of the last hour; filters are ``namespace``, ``leaf`` (TREE/NODE), ``state`` (or
        ``waiting``) and ``name`` (a part of it). ``only=NAMESPACE`` leaves out all others, in
        counts too. ``sort`` is ``namespace``, ``name``, ``state``, ``priority`` or
        ``firstSeen``, with ``-`` before it for the greatest first.
        """
        query = asked_page(request)
        if query is None:
            return await self._rows(request, waiting_only=False)
        rows, facts = await self._figures.page(
            to_json,
            query,
            with_starts=asks_for_starts(request),
            max_age_s=max_age_s(request),
        )
        return json_answer(page_answer(rows, facts))

    async def _rows(self, request: web.Request, *, waiting_only: bool) -> web.Response:
        starts = asks_for_starts(request)

        async def make() -> bytes:
            rows = await self._figures.rows(to_json, waiting_only=waiting_only, with_starts=starts)
            return b'{"items":[' + b",".join(rows) + b"]}"

        asked_for = (waiting_only, starts)
        return json_answer(await self._shared.get(asked_for, max_age_s(request), make))

    async def appwrapper(self, request: web.Request) -> web.Response:
        """One AppWrapper in full; 404 if it does not exist."""
        where = request.match_info
        return found(await self._figures.detail(where["namespace"], where["name"]))

    async def why(self, request: web.Request) -> web.Response:
        """One AppWrapper in full, why it waits, and what would start it now."""
        where = request.match_info
        return found(await self._figures.why(where["namespace"], where["name"]))

    async def what_if(self, request: web.Request) -> web.Response:
        """What would differ with the changes of the body, ``{"spec": ...}`` of a WhatIf. Names
        without a namespace are of that in the path."""
        question = await asked_question(request)
        return web.json_response(
            await self._figures.what_if(question, request.match_info["namespace"])
        )

    async def capacity(self, _: web.Request) -> web.Response:
        """Capacity per node and in total."""
        return json_answer(await self._figures.capacity())

    async def quota(self, _: web.Request) -> web.Response:
        """All quota trees."""
        return json_answer(await self._figures.quota())

    async def quota_node(self, request: web.Request) -> web.Response:
        """One quota node with its holders and its queue; 404 if it does not exist."""
        where = request.match_info
        return found(await self._figures.quota_node(where["tree"], where["node"]))


def found(view: Json | None) -> web.Response:
    """The answer about one object: 404 and ``null`` if it does not exist."""
    return web.json_response(view, status=200 if view is not None else 404)


@web.middleware
async def _or_why_not(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 503 with the reason if no figures are available, and 422 to a bad question."""
    try:
        return await handler(request)
    except BadQuestionError as error:
        said = {"message": error.message, "faults": error.faults, "missing": error.missing}
        return web.json_response(said, status=422)
    except FiguresUnavailable as error:
        raise web.HTTPServiceUnavailable(text=f"{error}\n") from error
