"""The API port with one timeout for every request: ``--request-timeout``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from mcad.kube.port import Api, Request, Response, nothing


class TimedApi:
    """Implements ``mcad.kube.port.Api``; streams keep their own timeouts."""

    def __init__(self, api: Api, timeout_s: float) -> None:
        """Each request gets ``timeout_s``, whatever its caller says."""
        self._api = api
        self._timeout_s = timeout_s

    async def request(self, request: Request, timeout: float | None = None) -> Response:  # noqa: ARG002
        """One exchange within the timeout."""
        return await self._api.request(request, self._timeout_s)

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """As the port has it."""
        return self._api.stream(request, idle_timeout, opened)
