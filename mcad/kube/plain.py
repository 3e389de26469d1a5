"""One GET with only the standard library, for commands that must be fast.

Programs that stay use ``rest.RestApi``; its libraries take longer to import than this takes to
answer.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import gaierror
from threading import Thread
from urllib.parse import urlencode, urlsplit

from mcad.kube.errors import ConnectionLost, RequestTimeout
from mcad.kube.kubeconfig import Plain
from mcad.kube.port import JSON, Request, Response


async def get(
    base_url: str,
    path: str,
    timeout_s: float,
    headers: Mapping[str, str],
    context: ssl.SSLContext | None = None,
) -> Response:
    """The answer, whatever its status; raises ``OutcomeUnknown``. No redirects, no proxies."""

    def exchange() -> Response:
        url = urlsplit(base_url)
        connection = _connection(base_url, timeout_s, context)
        try:
            connection.request("GET", url.path.rstrip("/") + path, headers=dict(headers))
            answer = connection.getresponse()
            return Response(answer.status, answer.read(), dict(answer.headers.items()))
        finally:
            connection.close()

    try:
        return await _beside(exchange)
    except TimeoutError as error:
        raise RequestTimeout(f"no answer within {timeout_s:g} s") from error
    except OSError as error:
        raise ConnectionLost(words(error)) from error
    except (HTTPException, ValueError) as error:
        raise ConnectionLost(f"no answer in HTTP ({str(error) or type(error).__name__})") from error


async def _beside(work: Callable[[], Response]) -> Response:
    """The outcome of work in a thread that is not waited for any more once its asker has gone.

    ``asyncio.to_thread`` would keep the process alive until its timeout: a person has left by then.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Response] = loop.create_future()

    def tell(answer: Response | None, error: Exception | None) -> None:
        if outcome.done():  # the asker has given up
            return
        if error is not None:
            outcome.set_exception(error)
        elif answer is not None:
            outcome.set_result(answer)

    def run() -> None:
        answer, failure = None, None
        try:
            answer = work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, answer, failure)

    Thread(target=run, daemon=True).start()
    return await outcome


class PlainApi:
    """Reads of one API server; see ``Api.request``."""

    def __init__(self, server: Plain) -> None:
        self._server = server

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One GET; ``timeout`` is in seconds."""
        server = self._server
        headers = {"Accept": JSON, **server.headers, **request.headers}
        query = f"?{urlencode(request.params)}" if request.params else ""
        return await get(
            server.url,
            request.path + query,
            10.0 if timeout is None else timeout,
            headers,
            server.ssl_context,
        )


def words(error: Exception) -> str:
    """What went wrong with a connection, in plain words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    number = error.errno if isinstance(error, OSError) else None
    if number and not isinstance(error, gaierror):
        return os.strerror(number)  # asyncio's own text repeats the address
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _connection(base_url: str, timeout_s: float, context: ssl.SSLContext | None) -> HTTPConnection:
    url = urlsplit(base_url)
    if url.scheme != "https":
        return HTTPConnection(url.hostname or "", url.port, timeout=timeout_s)
    return HTTPSConnection(url.hostname or "", url.port, timeout=timeout_s, context=context)
