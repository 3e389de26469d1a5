"""The API port behind a permit: no write leaves without one, and none outlasts it.

It is put around the port itself, so that no writer has to think of it.
"""

from collections.abc import AsyncGenerator, Callable

from mcad.kube.errors import Fenced
from mcad.kube.port import Api, Request, Response, nothing

READS = frozenset({"GET", "HEAD"})


class Fence:
    """Implements ``Api``: reads pass, a write needs time that is left for it."""

    def __init__(self, api: Api, left: Callable[[], float]) -> None:
        """``left`` tells for how many seconds a write that begins now may last; 0: not at all."""
        self._api = api
        self._left = left

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One exchange; a write ends with the permit at the latest, and ``Fenced`` is without."""
        if request.method in READS:
            return await self._api.request(request, timeout)
        left = self._left()
        if left <= 0:
            raise Fenced(f"{request.method} {request.path} was not sent: nothing may be written")
        return await self._api.request(request, left if timeout is None else min(timeout, left))

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """A watch, which writes nothing."""
        return self._api.stream(request, idle_timeout, opened)
