"""Metrics for callers with a right: a bearer token, and ``get`` of the path ``/metrics``.

The API server is asked which user a token belongs to (TokenReview) and what this user may do
(SubjectAccessReview), as by the filter of controller-runtime. Without its answer nothing is served.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp import web

from mcad.api.wire import as_list, as_map, as_text
from mcad.controller.access import Access, Caller, PathAttributes, Remembered
from mcad.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcad.kube.client import Client
    from mcad.kube.types import Json

_log = logging.getLogger(__name__)

SCRAPE = PathAttributes("get", "/metrics")
AT_ONCE = 4  # requests that ask the API server: a flood of wrong tokens does not reach it


class MetricsAccess:
    """Answers callers that may read metrics."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._access = Access(client)
        self._callers = Remembered(client.clock, self._authenticate)
        self._turns = asyncio.Semaphore(AT_ONCE)

    @web.middleware
    async def guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """401 without a valid token, 403 without the right, 503 if neither is known."""
        token = _bearer(request.headers.get("Authorization", ""))
        try:
            async with self._turns:
                caller = await self._callers.get(token) if token else None
                allowed = caller is not None and await self._access.allows(caller, SCRAPE)
        except KubeError as error:
            _log.warning("cannot review the right to read metrics error=%s", error)
            raise web.HTTPServiceUnavailable(text="the API server cannot be asked\n") from error
        if caller is None:
            raise web.HTTPUnauthorized(
                text="give a bearer token of this cluster\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not allowed:
            raise web.HTTPForbidden(text=f'User "{caller.user}" cannot get path "/metrics"\n')
        return await handler(request)

    async def _authenticate(self, token: str) -> Caller | None:
        return read_caller(await self._client.token_review(token))


def read_caller(status: Json) -> Caller | None:
    """The user of a TokenReview; None if the token is not valid."""
    user = as_map(status.get("user"))
    name = as_text(user.get("username"))
    if status.get("authenticated") is not True or not name:
        return None
    extra = as_map(user.get("extra"))
    return Caller(
        name,
        _texts(user.get("groups")),
        tuple((key, _texts(values)) for key, values in sorted(extra.items())),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(as_text(one) for one in as_list(value))


def _bearer(header: str) -> str:
    """The token of the header, "" without one."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
