"""The API port with every exchange reported: what was asked, what came, and how long it took."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from mcad.kube.errors import ApiError, OutcomeUnknown
from mcad.kube.port import Api, Request, Response, nothing

if TYPE_CHECKING:
    from mcad.kube.clock import Clock

Observe = Callable[[Request, str, float], None]
"""Is given a request, the status code of its answer or ``error``, and the seconds it took."""

NO_ANSWER = "error"


class Measured:
    """Implements ``Api``. A watch is reported once, when it is accepted or refused."""

    def __init__(self, api: Api, clock: Clock, observe: Observe) -> None:
        self._api = api
        self._now = clock.monotonic
        self._observe = observe

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One exchange."""
        begun, code = self._now(), NO_ANSWER
        try:
            answer = await self._api.request(request, timeout)
        except OutcomeUnknown:
            self._observe(request, code, self._now() - begun)
            raise
        self._observe(request, str(answer.status), self._now() - begun)
        return answer

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """A watch; only its beginning is reported."""
        begun = self._now()
        is_open = False

        def accepted() -> None:
            nonlocal is_open
            is_open = True
            self._observe(request, "200", self._now() - begun)
            opened()

        async with aclosing(self._api.stream(request, idle_timeout, accepted)) as lines:
            try:
                async for line in lines:
                    yield line
            except (ApiError, OutcomeUnknown) as error:
                if not is_open:
                    code = str(error.status) if isinstance(error, ApiError) else NO_ANSWER
                    self._observe(request, code, self._now() - begun)
                raise
