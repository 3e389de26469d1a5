"""docs/reference/http.md: every path that mcad serves, with the docstrings of its handlers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from aiohttp import web

from mcad.client.scope import Source
from mcad.controller import http_port, loopback
from mcad.controller.visibility import routes
from mcad.ui.login import Login
from mcad.ui.server import Ui
from tests.documents.pages import DOCS, code, table, wrapped

PAGE = DOCS / "reference" / "http.md"

PORT = (
    "`mcad run --http HOST:PORT`, 8080 in the chart. Paths under {private} are answered on "
    "loopback only, that is through `kubectl port-forward`. A standby answers those under `/api/` "
    "with 503 and the name of the leader. A question is POSTed as `application/json`."
)
SECURE = (
    "`mcad run --metrics HOST:PORT`, 8444 in the chart with `metrics.secure.enabled`. The caller "
    "shows a token of the cluster and needs the right to `get` the path: 401 or 403 without, 503 "
    "if the API server cannot be asked. With it, the port above serves `/metrics` on loopback only."
)
API = (
    "The API server forwards these requests, after authentication and audit, if "
    "`visibility.enabled` is set in the chart, as it is by default. The caller needs the "
    "verb `get` or `list` for the resource; see [figures for all users](../operate/visibility.md)."
)
UI = (
    "`mcad ui` on loopback, for the browser in which the printed address was opened. With "
    "`--login`, for browsers that have logged in by `POST /login`, and for requests with "
    "`Authorization: Bearer`."
)


def generated() -> str:
    """The generated part of the page."""
    guard = web.middleware
    nothing: Any = SimpleNamespace(lease=None, middleware=guard, guard=guard)  # only routes count
    private = " and ".join(map(code, loopback.PRIVATE))
    port = http_port.application(nothing)
    api, page = routes.application(nothing, nothing, nothing), Ui(Login(nothing, Source()))
    return "\n".join(
        (
            *_section("Port of the dispatcher", PORT.format(private=private), port),
            *_section("Metrics over TLS", SECURE, http_port.metrics_application(nothing, nothing)),
            *_section("Visibility API", API, api),
            *_section("Page of mcad ui", UI, page.application()),
        )
    )


def _section(title: str, text: str, app: web.Application) -> Iterator[str]:
    yield from (f"## {title}", "", *wrapped(text), "")
    yield from (*table(("path", "answer to GET"), _rows(app)), "")


def _rows(app: web.Application) -> Iterator[tuple[str, str]]:
    for route in app.router.routes():
        if route.method == "GET" and route.resource is not None:
            text = inspect.getdoc(route.handler)
            assert text, route
            yield code(route.resource.canonical), text.replace("``", "`")
