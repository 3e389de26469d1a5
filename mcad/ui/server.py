"""The addresses of the page, on loopback: GET only, but for a login."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from importlib.resources import files

from aiohttp import web

from mcad.client.errors import McadError
from mcad.controller.http_server import Server
from mcad.ui.guard import NAMES, Gate, add_headers
from mcad.ui.view import VIEW, View

STATIC = {
    "htmx.min.js": "text/javascript",
    "htmx-ext-sse.min.js": "text/javascript",
    "ui.js": "text/javascript",
    "ui.css": "text/css",
}
BODY_MAX = 32 * 1024  # bytes of a request: a login has a token
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Ui:
    """Serves what guards let through; ``application`` is to be served."""

    def __init__(self, guard: Gate) -> None:
        self.guard = guard
        folder = files("mcad.ui") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC}

    def application(self) -> web.Application:
        """The application with all of its addresses."""
        app = web.Application(middlewares=[self.guard.middleware], client_max_size=BODY_MAX)
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._end_streams)
        one = "/appwrappers/{namespace}/{name}"
        for path, answer in (
            ("/", View.page),
            (one, View.appwrapper),
            (f"{one}/why", View.why),
            (f"{one}/facts", View.facts),
            (f"{one}/events", View.told),
            (f"{one}/pods", View.pods),
            (f"{one}/pods/{{pod}}", View.pod),
            (f"{one}/yaml", View.yaml),
            ("/events", View.events),
        ):
            app.router.add_get(path, _of_caller(answer))
        app.router.add_get("/static/{name}", self._file)
        app.router.add_routes(self.guard.routes)
        return app

    async def _end_streams(self, _: web.Application) -> None:
        self.guard.end_streams()

    async def _file(self, request: web.Request) -> web.Response:
        """Scripts and styles."""
        name = request.match_info["name"]
        if name not in self._static:
            raise web.HTTPNotFound(text=f"There is no {name}.\n")
        return web.Response(body=self._static[name], content_type=STATIC[name], charset="utf-8")


def _of_caller(answer: Callable[[View, web.Request], Awaitable[web.StreamResponse]]) -> Handler:
    """The answer of the view of the caller."""

    @wraps(answer)
    async def handle(request: web.Request) -> web.StreamResponse:
        return await answer(request[VIEW], request)

    return handle


@asynccontextmanager
async def served(guard: Gate, port: int) -> AsyncIterator[Ui]:
    """Serve on loopback until the end of the block; ``guard`` has the address then."""
    ui = Ui(guard)
    server = Server(ui.application())
    try:
        try:
            ui.guard.serve_at(await server.start(NAMES[0], port))
        except OSError as error:
            raise McadError(
                f"cannot listen on {NAMES[0]}:{port}: {os.strerror(error.errno or 0)}; choose "
                "another --port"
            ) from error
        yield ui
    finally:
        await server.close()
