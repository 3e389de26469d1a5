"""The API port: the two calls behind which an API server stands, real or simulated.

Status codes are answers here, not exceptions, so that a simulator can be served over HTTP and
compared with a real server answer by answer. Turning them into errors is the client's job.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from mcad.kube.decode import decode
from mcad.kube.errors import BadAnswer
from mcad.kube.types import Json

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')  # RFC 9111, 5.5
NOTHING: Mapping[str, str] = MappingProxyType({})


def nothing() -> None:
    """A callback that does nothing."""


class Request(Struct, frozen=True):
    """One request. ``path`` starts with a slash and is quoted; ``params`` are not quoted yet."""

    method: str
    path: str
    params: Mapping[str, str] = NOTHING
    body: Json | bytes | None = None
    content_type: str = JSON
    headers: Mapping[str, str] = NOTHING


class Response(Struct, frozen=True):
    """One answer. ``headers`` are looked up as ``Retry-After``, in that spelling."""

    status: int
    body: Json | bytes
    headers: Mapping[str, str] = NOTHING

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the server says beside its answer, in headers ``Warning: 299 - "text"``."""
        told = (value for name, value in self.headers.items() if name.lower() == "warning")
        texts = (match[1] for value in told for match in _WARNING.finditer(value))
        return tuple(re.sub(r"\\(.)", r"\1", text) for text in texts)

    def json(self) -> Json:
        """The body as a JSON object, decoded at each call; raises ``BadAnswer``."""
        if isinstance(self.body, dict):
            return self.body
        try:
            decoded = decode(self.body)
        except ValueError as error:
            raise BadAnswer(f"the body of a {self.status} answer is not JSON: {error}") from error
        if not isinstance(decoded, dict):
            raise BadAnswer(f"the body of a {self.status} answer is not a JSON object")
        return decoded


class Api(Protocol):
    """The port. Implementations never retry, never follow redirects, and decide nothing."""

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One exchange: any status is returned, 500 as well as 200.

        ``timeout`` is in seconds, for all of it; None takes the implementation's default, there
        always is one. Raises an ``OutcomeUnknown``, or ``Fenced`` where a fence stands before it.
        """
        ...

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """A GET as lines without their line ends; close it with ``contextlib.aclosing``.

        ``opened`` is called when the server has accepted it, which may be long before a line comes.

        Raises ``ApiError`` if the answer is no 200, ``RequestTimeout`` after ``idle_timeout``
        seconds without a byte, ``ConnectionLost`` if it breaks. It ends without an error only
        where the server ended it; a last line that was cut short is not delivered.
        """
        ...
