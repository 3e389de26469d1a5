"""Every exchange is reported once, with its status code or that there was no answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest

from mcad.kube.errors import ApiError, ConnectionLost, KubeError, RequestTimeout
from mcad.kube.measured import Measured
from mcad.kube.port import Request, Response, nothing

REQUEST = Request("GET", "/api/v1/pods")


class Clock:
    """Half a second passes at every look."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 0.5
        return self.now


class Answers:
    """An API that answers as a test says."""

    def __init__(self, answer: Response | KubeError) -> None:
        self._answer = answer

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        if isinstance(self._answer, KubeError):
            raise self._answer
        return self._answer

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        if isinstance(self._answer, KubeError):
            raise self._answer
        opened()
        yield b"{}"
        raise ConnectionLost("later")


def measured(answer: Response | KubeError) -> tuple[Measured, list[tuple[str, str, float]]]:
    seen: list[tuple[str, str, float]] = []
    return Measured(
        Answers(answer), Clock(), lambda request, code, s: seen.append((request.path, code, s))
    ), seen


async def test_an_answer_is_reported_whatever_its_code() -> None:
    api, seen = measured(Response(403, b""))
    assert (await api.request(REQUEST)).status == 403
    assert seen == [("/api/v1/pods", "403", 0.5)]


async def test_no_answer_is_reported_as_an_error() -> None:
    api, seen = measured(RequestTimeout("late"))
    with pytest.raises(RequestTimeout):
        await api.request(REQUEST)
    assert seen == [("/api/v1/pods", "error", 0.5)]


async def test_a_watch_is_reported_when_it_is_accepted_and_not_when_it_breaks() -> None:
    api, seen = measured(Response(200, b""))
    opened: list[bool] = []
    lines = api.stream(REQUEST, 1.0, lambda: opened.append(True))
    assert (await anext(lines), opened) == (b"{}", [True])
    with pytest.raises(ConnectionLost):
        await anext(lines)
    assert seen == [("/api/v1/pods", "200", 0.5)]


@pytest.mark.parametrize(
    ("error", "code"), [(ApiError(410), "410"), (ConnectionLost("refused"), "error")]
)
async def test_a_refused_watch_is_reported(error: KubeError, code: str) -> None:
    api, seen = measured(error)
    with pytest.raises(type(error)):
        await anext(api.stream(REQUEST, 1.0))
    assert seen == [("/api/v1/pods", code, 0.5)]
