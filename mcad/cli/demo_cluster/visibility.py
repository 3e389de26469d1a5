"""The visibility API of the embedded cluster: its API server forwards requests to the dispatcher.

The embedded cluster has no rights and no certificates. A name that is drawn at each start stands
for the certificate of the API server, so nothing else in this machine is answered.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from mcad.controller.access import Access, Attributes, Caller, PathAttributes
from mcad.controller.http_server import Server
from mcad.controller.leader_figures import LeaderFigures
from mcad.controller.replica import Replica
from mcad.controller.visibility.front_proxy import FrontProxy, Headers
from mcad.controller.visibility.routes import application
from mcad.kube import plain
from mcad.kube.client import Client
from mcad.kube.port import JSON, Request, Response

LOOPBACK = "127.0.0.1"
USER_HEADER = "x-remote-user"
CONTENT_TYPE = "Content-Type"
ANSWER_S = 30.0

Forward = Callable[[Request], Awaitable[Response]]


class _OpenAccess(Access):
    """Everything is allowed."""

    async def allows(self, caller: Caller, what: Attributes | PathAttributes) -> bool:  # noqa: ARG002
        return True


class _Embedded(FrontProxy, frozen=True):
    """Known by the name that it gives to all callers."""

    name: str

    def is_shown(self, certificate: Mapping[str, Any] | None) -> bool:  # noqa: ARG002 - it has none
        return True

    def caller(self, headers: Headers) -> Caller | None:
        """The caller; None if the request is not of the embedded API server."""
        found = super().caller(headers)
        is_ours = found is not None and secrets.compare_digest(found.user, self.name)
        return found if is_ours else None


async def unavailable(_: Request) -> Response:
    """The answer of an API server whose APIService has no endpoint: no dispatcher leads."""
    return Response(503, b"service unavailable\n", {CONTENT_TYPE: "text/plain"})


@asynccontextmanager
async def forwarding(replica: Replica, client: Client) -> AsyncIterator[Forward]:
    """Serve the visibility API of a replica on loopback; yields what forwards requests to it."""
    proxy = _Embedded("", (), (USER_HEADER,), (), (), secrets.token_hex(16))
    server = Server(application(LeaderFigures(replica), _OpenAccess(client), proxy))
    url = f"http://{LOOPBACK}:{await server.start(LOOPBACK, 0)}"

    async def forward(request: Request) -> Response:
        headers = {**request.headers, USER_HEADER: proxy.name}
        answer = await plain.send(url, replace(request, headers=headers), ANSWER_S)
        kept = {CONTENT_TYPE: answer.headers.get(CONTENT_TYPE, JSON)}
        return Response(answer.status, answer.body, kept)

    try:
        yield forward
    finally:
        await server.close()
